// The kernels, to be included once per instruction set, in a namespace of its own.
// Loops over rows are plain: the compiler makes vectors of them, and whole ones only, since it is
// told that there are no odd rows at the end.

static inline std::size_t whole_vectors(std::size_t n) { return n / row_multiple * row_multiple; }

static inline double power_of_two(double shifted) {
    return std::bit_cast<double>((std::bit_cast<std::uint64_t>(shifted) + 1023) << 52);
}

// exp(x) for x <= 0, within one unit in the last place, 0 where the true value rounds to it.
// The same on every machine, which the C library's is not.
static inline double exp_of_nonpositive(double x) {
    // exp(x) = 2^k exp(r), k the nearest integer to x / ln 2, |r| <= ln 2 / 2.
    constexpr double shift = 0x1.8p52;  // adding it rounds to an integer, kept in the low bits
    constexpr double ln2_high = 6.93147180369123816490e-01;
    constexpr double ln2_low = 1.90821492927058770002e-10;
    const double inside = x > -746.0 ? x : -746.0;
    const double k = (inside * 1.44269504088896338700e+00 + shift) - shift;
    const double r = (inside - k * ln2_high) - k * ln2_low;
    // (exp(r) - 1 - r) / r^2, interpolated at Chebyshev's points: relative error of exp 2e-17.
    // Summed in pairs, for the sake of many short chains instead of one long one.
    const double r2 = r * r;
    const double r4 = r2 * r2;
    const double low = (0x1.0000000000001p-1 + 0x1.5555555555556p-3 * r) +
                       (0x1.5555555553d64p-5 + 0x1.11111111109b4p-7 * r) * r2;
    const double middle = (0x1.6c16c1788b646p-10 + 0x1.a01a01a7c3d59p-13 * r) +
                          (0x1.a019b90eefe8ep-16 + 0x1.71de0daf7a6ccp-19 * r) * r2;
    const double high = 0x1.2891834686c7ep-22 + 0x1.af38a71a18cb9p-26 * r;
    const double q = low + (middle + high * r4) * r4;
    const double fraction = 1.0 + (r + r2 * q);
    // In two steps: 2^k alone may lie below the normal numbers.
    const double upper = k > -1000.0 ? k : -1000.0;
    return fraction * power_of_two(upper + shift) * power_of_two((k - upper) + shift);
}

static void add_line(double* CALTREE_RESTRICT F, const double* CALTREE_RESTRICT x,
                     std::size_t stride, double intercept, double slope, std::size_t n) {
    n = whole_vectors(n);
    for (std::size_t i = 0; i < n; ++i) F[i] += intercept + slope * x[i * stride];
}

static void set_line(double* CALTREE_RESTRICT F, const double* CALTREE_RESTRICT x,
                     std::size_t stride, double intercept, double slope, std::size_t n) {
    n = whole_vectors(n);
    for (std::size_t i = 0; i < n; ++i) F[i] = intercept + slope * x[i * stride];
}

static void highest(const double* CALTREE_RESTRICT F, ClassList classes, std::size_t F_stride,
                    double* CALTREE_RESTRICT largest, std::size_t n) {
    n = whole_vectors(n);
    const double* first = F + classes.index[0] * F_stride;
    for (std::size_t i = 0; i < n; ++i) largest[i] = first[i];
    for (std::size_t k = 1; k < classes.count; ++k) {
        const double* Fk = F + classes.index[k] * F_stride;
        for (std::size_t i = 0; i < n; ++i) largest[i] = Fk[i] > largest[i] ? Fk[i] : largest[i];
    }
}

static bool all_between(const double* CALTREE_RESTRICT Fj, const double* CALTREE_RESTRICT largest,
                        double low, double high, std::size_t n) {
    n = whole_vectors(n);
    std::uint64_t outside = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const double below = Fj[i] - largest[i];
        outside += static_cast<std::uint64_t>(!(below > low)) |
                   static_cast<std::uint64_t>(!(below < high));
    }
    return outside == 0;
}

static void softmax(const double* CALTREE_RESTRICT F, ClassList classes, std::size_t F_stride,
                    double* CALTREE_RESTRICT p, std::size_t n) {
    n = whole_vectors(n);
    double largest[block_rows];
    double total[block_rows];
    highest(F, classes, F_stride, largest, n);
    for (std::size_t i = 0; i < n; ++i) total[i] = 0.0;
    for (std::size_t k = 0; k < classes.count; ++k) {
        const double* Fk = F + classes.index[k] * F_stride;
        double* pk = p + k * block_rows;
        for (std::size_t i = 0; i < n; ++i) {
            pk[i] = exp_of_nonpositive(Fk[i] - largest[i]);
            total[i] += pk[i];
        }
    }
    for (std::size_t k = 0; k < classes.count; ++k) {
        double* pk = p + k * block_rows;
        for (std::size_t i = 0; i < n; ++i) pk[i] /= total[i];
    }
}

static void sigmoid(const double* CALTREE_RESTRICT d, double* CALTREE_RESTRICT p0,
                    double* CALTREE_RESTRICT p1, std::size_t n) {
    n = whole_vectors(n);
    for (std::size_t i = 0; i < n; ++i) {
        const double e = exp_of_nonpositive(d[i] > 0.0 ? -d[i] : d[i]);
        const double larger = 1.0 / (1.0 + e);
        const double smaller = e * larger;
        p1[i] = d[i] > 0.0 ? larger : smaller;
        p0[i] = d[i] > 0.0 ? smaller : larger;
    }
}

// log(1 + e) for e from 0 to 1, by 2 atanh(e / (2 + e)): interpolated at Chebyshev's points, with a
// relative error of 3e-18 before rounding.
static inline double log_of_one_plus(double e) {
    const double s = e / (2.0 + e);
    const double t = s * s;
    const double t2 = t * t;
    const double t4 = t2 * t2;
    const double low = (0x1.0000000000000p+0 + 0x1.5555555555527p-2 * t) +
                       (0x1.99999999a1c4fp-3 + 0x1.249249201beacp-3 * t) * t2;
    const double middle = (0x1.c71c7445b2127p-4 + 0x1.745caf74cbe5ep-4 * t) +
                          (0x1.3b1e2bc8a12dep-4 + 0x1.106443d797a85p-4 * t) * t2;
    const double high =
        (0x1.f00852a5c69fap-5 + 0x1.54f8c703ce149p-5 * t) + 0x1.5d1081172f887p-4 * t2;
    return 2.0 * s * (low + (middle + high * t4) * t4);
}

static void logistic(const double* CALTREE_RESTRICT d, double* CALTREE_RESTRICT p,
                     double* CALTREE_RESTRICT norm, std::size_t n) {
    n = whole_vectors(n);
    for (std::size_t i = 0; i < n; ++i) {
        const double positive = d[i] > 0.0 ? d[i] : 0.0;
        const double e = exp_of_nonpositive(d[i] > 0.0 ? -d[i] : d[i]);
        const double larger = 1.0 / (1.0 + e);
        p[i] = d[i] > 0.0 ? larger : e * larger;
        norm[i] = positive + log_of_one_plus(e);
    }
}

static void respond(const double* CALTREE_RESTRICT p, const double* CALTREE_RESTRICT labels,
                    double label, const double* CALTREE_RESTRICT weights,
                    double* CALTREE_RESTRICT w, double* CALTREE_RESTRICT z, std::size_t n) {
    n = whole_vectors(n);
    for (std::size_t i = 0; i < n; ++i) {
        const bool hit = labels[i] == label;
        const double rest = 1.0 - p[i];
        const double right = hit ? p[i] : rest;
        const double wrong = hit ? rest : p[i];
        const double unclipped = 1.0 / right;
        const double size = unclipped < largest_response ? unclipped : largest_response;
        z[i] = hit ? size : -size;
        w[i] = weights[i] * (wrong / size);
    }
}

// Several classes at once: one sum alone would wait for each of its additions.
static void sum_weights(const double* CALTREE_RESTRICT w, std::size_t m, std::size_t stride,
                        double* CALTREE_RESTRICT sums, std::size_t n) {
    std::size_t j = 0;
    for (; j + 4 <= m; j += 4) {
        const double* wj = w + j * stride;
        double sum[4] = {sums[j], sums[j + 1], sums[j + 2], sums[j + 3]};
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t k = 0; k < 4; ++k) sum[k] += wj[k * stride + i];
        }
        for (std::size_t k = 0; k < 4; ++k) sums[j + k] = sum[k];
    }
    for (; j < m; ++j) {
        double sum = sums[j];
        for (std::size_t i = 0; i < n; ++i) sum += w[j * stride + i];
        sums[j] = sum;
    }
}

static void centre(double* CALTREE_RESTRICT f, std::size_t m, std::size_t n) {
    n = whole_vectors(n);
    double mean[block_rows];
    for (std::size_t i = 0; i < n; ++i) mean[i] = f[i];
    for (std::size_t j = 1; j < m; ++j) {
        for (std::size_t i = 0; i < n; ++i) mean[i] += f[j * block_rows + i];
    }
    const double classes = static_cast<double>(m);
    for (std::size_t i = 0; i < n; ++i) mean[i] /= classes;
    for (std::size_t j = 0; j < m; ++j) {
        for (std::size_t i = 0; i < n; ++i) {
            f[j * block_rows + i] = (f[j * block_rows + i] - mean[i]) * (classes - 1.0) / classes;
        }
    }
}

static void add_columns(double* CALTREE_RESTRICT F, std::size_t F_stride,
                        const double* CALTREE_RESTRICT f, std::size_t m, std::size_t n) {
    n = whole_vectors(n);
    for (std::size_t j = 0; j < m; ++j) {
        for (std::size_t i = 0; i < n; ++i) F[j * F_stride + i] += f[j * block_rows + i];
    }
}

template <class Pack>
static inline Pack load(const double* from) {
    Pack pack;
    std::memcpy(&pack, from, sizeof(Pack));
    return pack;
}

template <class Pack>
static inline void store(double* to, const Pack& pack) {
    std::memcpy(to, &pack, sizeof(Pack));
}

// The moments of `packs` neighbouring packs of scores; those of the response along with the first.
template <class Pack, std::size_t packs, bool leading>
static void first_of_packs(const double* CALTREE_RESTRICT w, const double* CALTREE_RESTRICT z,
                           const double* CALTREE_RESTRICT x, std::size_t width,
                           double* CALTREE_RESTRICT response_sums,
                           double* CALTREE_RESTRICT score_sums, std::size_t n) {
    constexpr std::size_t size = sizeof(Pack) / sizeof(double);
    double sum_w = response_sums[0];
    double sum_wz = response_sums[1];
    Pack sum[packs];
    for (std::size_t k = 0; k < packs; ++k) sum[k] = load<Pack>(score_sums + k * size);
    for (std::size_t i = 0; i < n; ++i, x += width) {
        if (leading) {
            sum_w += w[i];
            sum_wz += w[i] * z[i];
        }
        for (std::size_t k = 0; k < packs; ++k) sum[k] = sum[k] + w[i] * load<Pack>(x + k * size);
    }
    response_sums[0] = sum_w;
    response_sums[1] = sum_wz;
    for (std::size_t k = 0; k < packs; ++k) store(score_sums + k * size, sum[k]);
}

template <class Pack, std::size_t packs, bool leading>
static void second_of_packs(const double* CALTREE_RESTRICT w, const double* CALTREE_RESTRICT dz,
                            const double* CALTREE_RESTRICT wdz, const double* CALTREE_RESTRICT x,
                            std::size_t width, const double* CALTREE_RESTRICT mean_x,
                            double* CALTREE_RESTRICT zz, double* CALTREE_RESTRICT xx,
                            double* CALTREE_RESTRICT xz, std::size_t n) {
    constexpr std::size_t size = sizeof(Pack) / sizeof(double);
    double sum_zz = *zz;
    Pack mean[packs], sum_xx[packs], sum_xz[packs];
    for (std::size_t k = 0; k < packs; ++k) {
        mean[k] = load<Pack>(mean_x + k * size);
        sum_xx[k] = load<Pack>(xx + k * size);
        sum_xz[k] = load<Pack>(xz + k * size);
    }
    for (std::size_t i = 0; i < n; ++i, x += width) {
        if (leading) sum_zz += wdz[i] * dz[i];
        for (std::size_t k = 0; k < packs; ++k) {
            const Pack dx = load<Pack>(x + k * size) - mean[k];
            sum_xx[k] = sum_xx[k] + w[i] * dx * dx;
            sum_xz[k] = sum_xz[k] + dx * wdz[i];
        }
    }
    *zz = sum_zz;
    for (std::size_t k = 0; k < packs; ++k) {
        store(xx + k * size, sum_xx[k]);
        store(xz + k * size, sum_xz[k]);
    }
}

// Calls `work<Pack, packs, leading>(first)` until `width` scores are covered.
template <class Work>
static inline void for_packs(std::size_t width, Work&& work) {
    if (width == 2) return work.template operator()<Pack2, 1, true>(std::size_t{0});
    if (width == 4) return work.template operator()<Pack4, 1, true>(std::size_t{0});
    if (width == 8) return work.template operator()<Pack4, 2, true>(std::size_t{0});
    work.template operator()<Pack4, 3, true>(std::size_t{0});
    std::size_t first = 12;
    for (; width - first >= 12; first += 12) work.template operator()<Pack4, 3, false>(first);
    if (width - first == 8) work.template operator()<Pack4, 2, false>(first);
    if (width - first == 4) work.template operator()<Pack4, 1, false>(first);
}

static void first_moments(double* CALTREE_RESTRICT w, const double* CALTREE_RESTRICT z, ScoreRows x,
                          double total, double sum_w, double* CALTREE_RESTRICT sums,
                          std::size_t n) {
    n = whole_vectors(n);
    for (std::size_t i = 0; i < n; ++i) w[i] = w[i] * total / sum_w;
    for_packs(x.width, [&]<class Pack, std::size_t packs, bool leading>(std::size_t first) {
        first_of_packs<Pack, packs, leading>(w, z, x.first + first, x.width, sums, sums + 2 + first,
                                             n);
    });
}

static void second_moments(const double* CALTREE_RESTRICT w, const double* CALTREE_RESTRICT z,
                           ScoreRows x, double mean_z, const double* CALTREE_RESTRICT mean_x,
                           double* CALTREE_RESTRICT sums, std::size_t n) {
    n = whole_vectors(n);
    double dz[block_rows];
    double wdz[block_rows];
    for (std::size_t i = 0; i < n; ++i) {
        dz[i] = z[i] - mean_z;
        wdz[i] = w[i] * dz[i];
    }
    for_packs(x.width, [&]<class Pack, std::size_t packs, bool leading>(std::size_t first) {
        second_of_packs<Pack, packs, leading>(w, dz, wdz, x.first + first, x.width, mean_x + first,
                                              sums, sums + 1 + first, sums + 1 + x.width + first,
                                              n);
    });
}

static double squared_error(const double* CALTREE_RESTRICT p, const double* CALTREE_RESTRICT labels,
                            double label, const double* CALTREE_RESTRICT weights, std::size_t n) {
    n = whole_vectors(n);
    double squares[block_rows];
    for (std::size_t i = 0; i < n; ++i) {
        const double difference = (labels[i] == label ? 1.0 : 0.0) - p[i];
        squares[i] = weights[i] * (difference * difference);
    }
    double sum = 0.0;
    for (std::size_t i = 0; i < n; ++i) sum += squares[i];
    return sum;
}

static constexpr Kernels all_kernels(const char* name) {
    return {name,    add_line,    set_line,      centre,         add_columns,
            highest, all_between, softmax,       sigmoid,        logistic,
            respond, sum_weights, first_moments, second_moments, squared_error};
}
