// Compiled for the baseline of the architecture; chooses among all that were compiled.
#include "kernels/kernels.hpp"

#include <bit>
#include <cstdint>

#include "kernels/simd.hpp"

namespace caltree {

namespace baseline {
#include "kernels/kernels.inl"
}  // namespace baseline

#ifdef CALTREE_WITH_AVX2
extern const Kernels avx2_kernels;
#endif

const Kernels& kernels() {
    static constexpr Kernels baseline_kernels = baseline::all_kernels("baseline");
#ifdef CALTREE_WITH_AVX2
    static const bool has_avx2 =
        __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
    if (has_avx2) return avx2_kernels;
#endif
    return baseline_kernels;
}

}  // namespace caltree
