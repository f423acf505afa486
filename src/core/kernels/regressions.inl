// Sums over rows for four regressions side by side; see kernels.inl.

// Four columns, or parts of them that are as wide as vectors are.
using Columns = OddRows;

// Calls `work` with the numbers of four columns in each of n rows: as packs, made of four rows of
// the columns if there are vectors of that size.
template <class Rows, class Work>
static inline void for_each_row(std::size_t n, Rows&& rows_of, Work&& work) {
    std::size_t i = 0;
#ifdef __AVX__
    const auto across = [](Pack4(&p)[four]) {
        const Pack4 a = __builtin_shufflevector(p[0], p[1], 0, 4, 2, 6);
        const Pack4 b = __builtin_shufflevector(p[0], p[1], 1, 5, 3, 7);
        const Pack4 c = __builtin_shufflevector(p[2], p[3], 0, 4, 2, 6);
        const Pack4 d = __builtin_shufflevector(p[2], p[3], 1, 5, 3, 7);
        p[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
        p[1] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
        p[2] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
        p[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
    };
    for (; i + four <= n; i += four) {
        Pack4 w[four], z[four];
        for (std::size_t j = 0; j < four; ++j) {
            w[j] = load<Pack4>(rows_of.weight[j] + i);
            z[j] = load<Pack4>(rows_of.response[j] + i);
        }
        across(w);
        across(z);
        for (std::size_t k = 0; k < four; ++k) work(i + k, std::size_t{0}, w[k], z[k]);
    }
#endif
    for (; i < n; ++i) {
        double w[four], z[four];
        for (std::size_t j = 0; j < four; ++j) {
            w[j] = rows_of.weight[j][i];
            z[j] = rows_of.response[j][i];
        }
        for (std::size_t j = 0; j < four; j += lanes<Columns>) {
            work(i, j, load<Columns>(w + j), load<Columns>(z + j));
        }
    }
}

static void add_up_moments(const FourRegressions& of, std::size_t n, FourMoments& sums) {
    constexpr std::size_t parts = four / lanes<Columns>;
    Columns total[parts] = {}, first[parts] = {}, second[parts] = {};
    for_each_row(n, of, [&](std::size_t, std::size_t j, Columns w, Columns z) {
        const std::size_t part = j / lanes<Columns>;
        const Columns weighted = w * z;
        total[part] = total[part] + w;
        first[part] = first[part] + weighted;
        second[part] = second[part] + weighted * z;
    });
    for (std::size_t part = 0; part < parts; ++part) {
        store(sums.total + part * lanes<Columns>, total[part]);
        store(sums.first + part * lanes<Columns>, first[part]);
        store(sums.second + part * lanes<Columns>, second[part]);
    }
}

static void centre(const FourRegressions& of, std::size_t n, const double* means,
                   FourEvidence* to) {
    for_each_row(n, of, [&](std::size_t i, std::size_t j, Columns w, Columns z) {
        store(to[i].weight + j, w);
        store(to[i].response + j, w * (z - load<Columns>(means + j)));
    });
}

static void add_up_orders(const FourEvidence* evidence, FourSums& one, FourSums& other) {
    // In one vector if there is one of that size, or else in several.
#if defined(__AVX512F__)
    using Wide = Pack8;
#elif defined(__AVX__)
    using Wide = Pack4;
#else
    using Wide = Pack2;
#endif
    constexpr std::size_t parts = sizeof(FourEvidence) / sizeof(Wide);
    const FourSums p = one, q = other;  // copies, which no sum can change
    const auto step = [&](const FourSums& of, std::size_t i, Wide(&sum)[parts],
                          std::size_t& count) {
        const double* from = evidence[of.rows[i]].weight;
        double* to = of.below[count].weight;
        for (std::size_t part = 0; part < parts; ++part) {
            sum[part] = sum[part] + load<Wide>(from + part * lanes<Wide>);
            store(to + part * lanes<Wide>, sum[part]);
        }
        count += of.changes[i];
    };
    Wide a[parts] = {}, b[parts] = {};
    std::size_t n_a = 0, n_b = 0, i = 0;
    const std::size_t both = p.n < q.n ? p.n : q.n;
    for (; i < both; ++i) {
        step(p, i, a, n_a);
        step(q, i, b, n_b);
    }
    for (std::size_t k = i; k < p.n; ++k) step(p, k, a, n_a);
    for (std::size_t k = i; k < q.n; ++k) step(q, k, b, n_b);
    one.count = n_a;
    other.count = n_b;
    static_assert(sizeof a == sizeof one.sum);
    std::memcpy(static_cast<void*>(&one.sum), a, sizeof a);
    std::memcpy(static_cast<void*>(&other.sum), b, sizeof b);
}

static unsigned which_gain(const FourEvidence* below, const FourEvidence& all, const double* gains,
                           std::size_t n) {
    unsigned found = 0;
    for (std::size_t j = 0; j < four; j += lanes<Columns>) {
        const Columns weight = load<Columns>(all.weight + j), gain = load<Columns>(gains + j);
        const Columns mean = load<Columns>(all.response + j) / weight;
        Columns most = Columns{} - 1.0;
        for (std::size_t i = 0; i < n; ++i) {
            const Columns w = load<Columns>(below[i].weight + j);
            const Columns around = load<Columns>(below[i].response + j) - w * mean;
            // What is no number comes first here, and is then left out.
            most = larger_of(around * around - w * (weight - w) * gain, most);
        }
        double gained[lanes<Columns>];
        store(gained, most);
        for (std::size_t k = 0; k < lanes<Columns>; ++k) {
            found |= static_cast<unsigned>(gained[k] >= 0.0) << (j + k);
        }
    }
    return found;
}

static void add_up_sides(const FourEvidence* evidence, std::size_t n, const double* const* columns,
                         std::ptrdiff_t stride, const double* cuts, FourEvidence& low,
                         FourEvidence& high) {
    constexpr std::size_t parts = four / lanes<Columns>;
    const double *a = columns[0], *b = columns[1], *c = columns[2], *d = columns[3];
    Columns w_low[parts] = {}, z_low[parts] = {}, w_high[parts] = {}, z_high[parts] = {};
    for (std::size_t i = 0; i < n; ++i) {
        const std::ptrdiff_t place = static_cast<std::ptrdiff_t>(i) * stride;
        const double values[four] = {a[place], b[place], c[place], d[place]};
        for (std::size_t part = 0; part < parts; ++part) {
            const std::size_t j = part * lanes<Columns>;
            const Columns w = load<Columns>(evidence[i].weight + j);
            const Columns z = load<Columns>(evidence[i].response + j);
            const Columns none{};
            const auto is_high = load<Columns>(values + j) >= load<Columns>(cuts + j);
            w_low[part] = w_low[part] + choose(is_high, none, w);
            z_low[part] = z_low[part] + choose(is_high, none, z);
            w_high[part] = w_high[part] + choose(is_high, w, none);
            z_high[part] = z_high[part] + choose(is_high, z, none);
        }
    }
    for (std::size_t part = 0; part < parts; ++part) {
        const std::size_t j = part * lanes<Columns>;
        store(low.weight + j, w_low[part]);
        store(low.response + j, z_low[part]);
        store(high.weight + j, w_high[part]);
        store(high.response + j, z_high[part]);
    }
}
