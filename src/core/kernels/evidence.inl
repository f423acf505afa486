// Sums of what rows say, by bin; see kernels.inl.

template <std::size_t packs>
static void add_packs(const std::uint16_t* CALTREE_RESTRICT codes,
                      const std::uint32_t* CALTREE_RESTRICT rows, std::size_t n,
                      const double* CALTREE_RESTRICT evidence, double* CALTREE_RESTRICT sums,
                      std::uint8_t* CALTREE_RESTRICT seen) {
    constexpr std::size_t stride = packs * pack_size;
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t code = codes[rows[i]];
        double* to = sums + code * stride;
        for (std::size_t k = 0; k < stride; k += pack_size) {
            store(to + k, load<Pack4>(to + k) + load<Pack4>(evidence + i * stride + k));
        }
        seen[code] = 1;
    }
}

static void add_to_bins(const std::uint16_t* codes, const std::uint32_t* rows, std::size_t n,
                        const double* evidence, std::size_t stride, double* sums,
                        std::uint8_t* seen) {
    if (stride == pack_size) return add_packs<1>(codes, rows, n, evidence, sums, seen);
    if (stride == 2 * pack_size) return add_packs<2>(codes, rows, n, evidence, sums, seen);
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t code = codes[rows[i]];
        double* to = sums + code * stride;
        for (std::size_t k = 0; k < stride; k += pack_size) {
            store(to + k, load<Pack4>(to + k) + load<Pack4>(evidence + i * stride + k));
        }
        seen[code] = 1;
    }
}

static void cut_gains(CutSums left, double residual, double variance, double penalty,
                      double* CALTREE_RESTRICT gains, std::size_t n) {
    n = whole_vectors(n);
    const double* CALTREE_RESTRICT first = left.residual;
    const double* CALTREE_RESTRICT varies = left.variance;
    for (std::size_t i = 0; i < n; ++i) {
        // Over one denominator, since divisions take time.
        const double here = varies[i] + penalty;
        const double there = variance - varies[i] + penalty;
        const double other = residual - first[i];
        gains[i] = (first[i] * first[i] * there + other * other * here) / (here * there);
    }
}
