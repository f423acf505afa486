// Compiled for the baseline of the architecture; chooses among all that were compiled.
#include "kernels/kernels.hpp"

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/marks.hpp"
#include "kernels/simd.hpp"

namespace caltree {

namespace baseline {
#include "kernels/kernels.inl"
}  // namespace baseline

#ifdef CALTREE_WITH_AVX2
extern const Kernels avx2_kernels;
#endif
#ifdef CALTREE_WITH_AVX512
extern const Kernels avx512_kernels;
#endif

const Kernels& kernels() {
    static constexpr Kernels baseline_kernels = baseline::all_kernels("baseline");
#ifdef CALTREE_WITH_AVX512
    static const bool has_avx512 =
        __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
        __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("fma") != 0;
    if (has_avx512) return avx512_kernels;
#endif
#ifdef CALTREE_WITH_AVX2
    static const bool has_avx2 =
        __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
    if (has_avx2) return avx2_kernels;
#endif
    return baseline_kernels;
}

}  // namespace caltree
