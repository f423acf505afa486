// The same kernels, compiled for AVX-512.
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/kernels.hpp"
#include "kernels/marks.hpp"
#include "kernels/simd.hpp"

namespace caltree {

namespace avx512 {
#include "kernels/kernels.inl"
}  // namespace avx512

extern const Kernels avx512_kernels;
constexpr Kernels avx512_kernels = avx512::all_kernels("avx512");

}  // namespace caltree
