// The same kernels, compiled for AVX2.
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/kernels.hpp"
#include "kernels/marks.hpp"
#include "kernels/simd.hpp"

namespace caltree {

namespace avx2 {
#include "kernels/kernels.inl"
}  // namespace avx2

extern const Kernels avx2_kernels;
constexpr Kernels avx2_kernels = avx2::all_kernels("avx2");

}  // namespace caltree
