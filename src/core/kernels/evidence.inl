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

static std::size_t take_bins(double* CALTREE_RESTRICT sums, std::uint8_t* CALTREE_RESTRICT marks,
                             std::size_t n_bins, CutColumns to) {
    Pack4 left{};
    std::size_t count = 0;
    for_marks(marks, n_bins, [&](std::size_t bin) {
        double* at = sums + bin * pack_size;
        left = left + load<Pack4>(at);
        store(at, Pack4{});
        double each[pack_size];
        store(each, left);
        to.bin[count] = static_cast<std::uint32_t>(bin);
        to.rows[count] = each[0];
        to.residual[count] = each[1];
        to.variance[count] = each[2];
        ++count;
    });
    std::memset(marks, 0, n_bins);
    return count;
}

static double cut_gains(CutSums left, double residual, double variance, double penalty,
                        double* CALTREE_RESTRICT gains, std::size_t n) {
    const double* CALTREE_RESTRICT residuals = left.residual;
    const double* CALTREE_RESTRICT variances = left.variance;
    RowPack most = RowPack{} - std::numeric_limits<double>::infinity();
    OddRows most_of_odd = OddRows{} - std::numeric_limits<double>::infinity();
    for_rows(n, [&]<class Pack>(std::size_t i) {
        // Over one denominator, since divisions take time.
        const Pack first = load<Pack>(residuals + i), varies = load<Pack>(variances + i);
        const Pack here = varies + penalty;
        const Pack there = variance - varies + penalty;
        const Pack other = residual - first;
        const Pack gain = (first * first * there + other * other * here) / (here * there);
        store(gains + i, gain);
        if constexpr (lanes<Pack> == lanes<RowPack>) {
            most = larger_of(gain, most);
        } else {
            most_of_odd = larger_of(gain, most_of_odd);
        }
    });
    double all[lanes<RowPack> + lanes<OddRows>];
    store(all, most);
    store(all + lanes<RowPack>, most_of_odd);
    double result = all[0];
    for (const double each : all) result = each > result ? each : result;
    return result;
}

static void sort_few(const std::int16_t* CALTREE_RESTRICT keys, std::size_t n,
                     std::int16_t* CALTREE_RESTRICT sorted) {
    std::int16_t places[few_rows] = {};
    for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t i = 0; i < few_rows; ++i) {
            places[i] = static_cast<std::int16_t>(places[i] + (keys[i] > keys[j]));
        }
    }
    for (std::size_t i = 0; i < n; ++i) sorted[static_cast<std::size_t>(places[i])] = keys[i];
}
