// Things that C++ does not have: small vectors of doubles, arrays known not to overlap,
// prefetching.
#pragma once

#include <cstddef>
#include <cstring>
#include <utility>

#ifdef __FMA__
#include <immintrin.h>
#endif

#if defined(_MSC_VER)
#define CALTREE_RESTRICT __restrict
#else
#define CALTREE_RESTRICT __restrict__
#endif

namespace caltree {

// The rows of a node lie far apart: that many further on are sent for while others are worked on.
inline constexpr std::size_t rows_ahead = 16;

// Tells the processor that some memory will be read soon.
inline void prefetch([[maybe_unused]] const void* address) {
#if defined(__GNUC__)
    __builtin_prefetch(address);
#endif
}

#if defined(__GNUC__)

typedef double Pack2 __attribute__((vector_size(16)));
typedef double Pack4 __attribute__((vector_size(32)));
typedef double Pack8 __attribute__((vector_size(64)));

#else

template <std::size_t N>
struct Pack {
    double v[N];
    Pack operator+(const Pack& o) const {
        return zip(o, [](double a, double b) { return a + b; });
    }
    Pack operator-(const Pack& o) const {
        return zip(o, [](double a, double b) { return a - b; });
    }
    Pack operator*(const Pack& o) const {
        return zip(o, [](double a, double b) { return a * b; });
    }
    template <class F>
    Pack zip(const Pack& o, F f) const {
        Pack result;
        for (std::size_t i = 0; i < N; ++i) result.v[i] = f(v[i], o.v[i]);
        return result;
    }
};
using Pack2 = Pack<2>;
using Pack4 = Pack<4>;

#endif

}  // namespace caltree
