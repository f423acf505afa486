// LogitBoost: lines, working responses, and the moments of their regressions; see kernels.inl.

static void add_line(double* CALTREE_RESTRICT F, const double* CALTREE_RESTRICT x, double intercept,
                     double slope, std::size_t n) {
    n = whole_vectors(n);
    for (std::size_t i = 0; i < n; ++i) F[i] += intercept + slope * x[i];
}

static void set_line(double* CALTREE_RESTRICT F, const double* CALTREE_RESTRICT x, double intercept,
                     double slope, std::size_t n) {
    n = whole_vectors(n);
    for (std::size_t i = 0; i < n; ++i) F[i] = intercept + slope * x[i];
}

static void add_centred(double* CALTREE_RESTRICT F, std::size_t F_stride,
                        const double* CALTREE_RESTRICT f, std::size_t m, std::size_t n) {
    n = whole_vectors(n);
    double mean[boosting_rows];
    for (std::size_t i = 0; i < n; ++i) mean[i] = f[i];
    for (std::size_t j = 1; j < m; ++j) {
        for (std::size_t i = 0; i < n; ++i) mean[i] += f[j * boosting_rows + i];
    }
    const double classes = static_cast<double>(m);
    const double per_class = 1.0 / classes;
    for (std::size_t i = 0; i < n; ++i) mean[i] /= classes;
    for (std::size_t j = 0; j < m; ++j) {
        const double* fj = f + j * boosting_rows;
        double* Fj = F + j * F_stride;
        for (std::size_t i = 0; i < n; ++i) {
            Fj[i] += quotient((fj[i] - mean[i]) * (classes - 1.0), classes, per_class);
        }
    }
}

// wrong / size, given about 1 / size. One step of Newton's method makes that the nearest number.
template <class Pack>
static inline Pack over_response(Pack wrong, Pack size, [[maybe_unused]] Pack per_size) {
#ifdef __FMA__
    const Pack nearest = fused(fused(-size, per_size, Pack{} + 1.0), per_size, per_size);
    return quotient(wrong, size, nearest);
#else
    return wrong / size;
#endif
}

template <class Pack>
struct Response {
    Pack w, z;
};

// `hit` says for each row whether it is of the class.
template <bool tame, class Pack, class Hit>
static inline Response<Pack> respond(Pack p, Hit hit) {
    const Pack most = Pack{} + largest_response;
    const Pack rest = 1.0 - p;
    const Pack right = choose(hit, p, rest);
    const Pack wrong = choose(hit, rest, p);
    const Pack unclipped = 1.0 / right;
    const auto inside = unclipped < most;
    const Pack size = choose(inside, unclipped, most);
    const Pack per_size = choose(inside, right, Pack{} + 1.0 / largest_response);
    return {tame ? over_response(wrong, size, per_size) : wrong / size, choose(hit, size, -size)};
}

// Several classes at once: one sum alone would wait for each of its additions.
template <std::size_t classes>
static void sum_columns(const double* CALTREE_RESTRICT w, std::size_t stride,
                        double* CALTREE_RESTRICT sums, std::size_t n) {
    double sum[classes];
    for (std::size_t k = 0; k < classes; ++k) sum[k] = sums[k];
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t k = 0; k < classes; ++k) sum[k] += w[k * stride + i];
    }
    for (std::size_t k = 0; k < classes; ++k) sums[k] = sum[k];
}

static void sum_weights(const double* CALTREE_RESTRICT w, std::size_t m, std::size_t stride,
                        double* CALTREE_RESTRICT sums, std::size_t n) {
    while (m > 0) {
        const std::size_t some = m > 6 || m == 5 ? 5 : m;
        if (some == 6) sum_columns<6>(w, stride, sums, n);
        if (some == 5) sum_columns<5>(w, stride, sums, n);
        if (some == 4) sum_columns<4>(w, stride, sums, n);
        if (some == 3) sum_columns<3>(w, stride, sums, n);
        if (some == 2) sum_columns<2>(w, stride, sums, n);
        if (some == 1) sum_columns<1>(w, stride, sums, n);
        w += some * stride;
        sums += some;
        m -= some;
    }
}

// From exponentials in p and their total to working responses.
template <bool tame>
static void respond_by_shares(const double* CALTREE_RESTRICT p,
                              const double* CALTREE_RESTRICT total, ClassList classes,
                              BoostedRows rows, Responses to, std::size_t n) {
    double per_total[boosting_rows];
    for (std::size_t i = 0; i < n; ++i) per_total[i] = 1.0 / total[i];
    for (std::size_t k = 0; k < classes.count; ++k) {
        const double* pk = p + k * boosting_rows;
        const auto label = static_cast<double>(classes.index[k]);
        double* w = to.w + k * rows.stride;
        double* z = to.z + k * rows.stride;
        for_rows(n, [&]<class Pack>(std::size_t i) {
            const Pack share = share_of<tame>(load<Pack>(pk + i), load<Pack>(total + i),
                                              load<Pack>(per_total + i));
            const auto response =
                respond<tame>(share, load<Pack>(rows.labels + i) == Pack{} + label);
            store(w + i, load<Pack>(rows.weights + i) * response.w);
            store(z + i, response.z);
        });
    }
}

template <bool exact, bool eights = false>
static bool respond_by_softmax(const double* CALTREE_RESTRICT F, ClassList classes,
                               BoostedRows rows, double* CALTREE_RESTRICT p, Responses to,
                               std::size_t n) {
    double total[boosting_rows];
    const bool tame =
        exponentials<!exact, boosting_rows, eights>(F, classes, rows.stride, p, total, n);
    const auto respond_to_them =
        exact && !tame ? respond_by_shares<false> : respond_by_shares<true>;
    respond_to_them(p, total, classes, rows, to, n);
    sum_weights(to.w, classes.count, rows.stride, to.sum_w, n);
    return tame;
}

static bool respond_to_all(const double* CALTREE_RESTRICT F, ClassList classes, BoostedRows rows,
                           bool exact, double* CALTREE_RESTRICT p, Responses to, std::size_t n) {
    return (exact ? respond_by_softmax<true> : respond_by_softmax<false>)(F, classes, rows, p, to,
                                                                          n);
}

static void respond_in_eights(const double* CALTREE_RESTRICT F, ClassList classes, BoostedRows rows,
                              double* CALTREE_RESTRICT p, Responses to, std::size_t n) {
    respond_by_softmax<true, true>(F, classes, rows, p, to, n);
}

// Of the second of two classes, or else the first.
template <bool tame, bool second>
static inline void respond_to_one(const double* CALTREE_RESTRICT d, BoostedRows rows,
                                  double* CALTREE_RESTRICT w, double* CALTREE_RESTRICT z,
                                  std::size_t n) {
    for_rows(n, [&]<class Pack>(std::size_t i) {
        const Pack di = load<Pack>(d + i);
        const auto positive = di > Pack{};
        const Pack e = exp_of_nonpositive<tame>(choose(positive, -di, di));
        const Pack larger = 1.0 / (1.0 + e);
        const Pack smaller = e * larger;
        const Pack p =
            second ? choose(positive, larger, smaller) : choose(positive, smaller, larger);
        const auto hit = load<Pack>(rows.labels + i) == Pack{} + (second ? 1.0 : 0.0);
        const Response<Pack> response = respond<tame>(p, hit);
        store(w + i, load<Pack>(rows.weights + i) * response.w);
        store(z + i, response.z);
    });
}

template <bool tame, bool second>
static void respond_and_sum(const double* CALTREE_RESTRICT d, BoostedRows rows, Responses to,
                            std::size_t n) {
    // A few rows at a time: the sum, which waits for each addition, goes on beside what follows.
    constexpr std::size_t few = 16;
    double sum = *to.sum_w;
    std::size_t begin = 0;
    for (; begin + few <= n; begin += few) {
        respond_to_one<tame, second>(d + begin, rows, to.w + begin, to.z + begin, few);
        for (std::size_t i = 0; i < few; ++i) sum += to.w[begin + i];
        rows.labels += few;
        rows.weights += few;
    }
    const std::size_t rest = whole_vectors(n - begin);
    respond_to_one<tame, second>(d + begin, rows, to.w + begin, to.z + begin, rest);
    for (std::size_t i = 0; i < rest; ++i) sum += to.w[begin + i];
    *to.sum_w = sum;
}

static bool respond_to_two(const double* CALTREE_RESTRICT d, std::size_t label, BoostedRows rows,
                           bool exact, Responses to, std::size_t n) {
    n = whole_vectors(n);
    std::uint64_t outside = 0;
    for (std::size_t i = 0; i < n; ++i) {
        outside += static_cast<std::uint64_t>(!(d[i] > tame_exponent)) |
                   static_cast<std::uint64_t>(!(d[i] < -tame_exponent));
    }
    if (label == 1) {
        (exact ? respond_and_sum<false, true> : respond_and_sum<true, true>)(d, rows, to, n);
    } else {
        (exact ? respond_and_sum<false, false> : respond_and_sum<true, false>)(d, rows, to, n);
    }
    return outside == 0;
}

// The moments of `packs` neighbouring packs of scores for some classes at once. In the last place
// of the last pack stands the response.
template <std::size_t packs, bool last, std::size_t classes>
static void first_of_packs(const double* CALTREE_RESTRICT w, const double* CALTREE_RESTRICT z,
                           std::size_t stride, const double* CALTREE_RESTRICT x, std::size_t width,
                           double* CALTREE_RESTRICT sums, std::size_t n) {
    Pack4 sum[classes][packs];
    for (std::size_t j = 0; j < classes; ++j) {
        for (std::size_t k = 0; k < packs; ++k) {
            sum[j][k] = load<Pack4>(sums + j * width + k * pack_size);
        }
    }
    for (std::size_t i = 0; i < n; ++i, x += width) {
        for (std::size_t j = 0; j < classes; ++j) {
            const double wj = w[j * stride + i];
            for (std::size_t k = 0; k < packs; ++k) {
                Pack4 pack = load<Pack4>(x + k * pack_size);
                if (last && k + 1 == packs) pack = with_last(pack, z[j * stride + i]);
                sum[j][k] = sum[j][k] + wj * pack;
            }
        }
    }
    for (std::size_t j = 0; j < classes; ++j) {
        for (std::size_t k = 0; k < packs; ++k) {
            store(sums + j * width + k * pack_size, sum[j][k]);
        }
    }
}

template <std::size_t packs, bool last>
static void second_of_packs(const double* CALTREE_RESTRICT w, const double* CALTREE_RESTRICT z,
                            const double* CALTREE_RESTRICT wdz, const double* CALTREE_RESTRICT x,
                            std::size_t width, const double* CALTREE_RESTRICT means,
                            double* CALTREE_RESTRICT xx, double* CALTREE_RESTRICT xz,
                            std::size_t n) {
    Pack4 mean[packs], sum_xx[packs], sum_xz[packs];
    for (std::size_t k = 0; k < packs; ++k) {
        mean[k] = load<Pack4>(means + k * pack_size);
        sum_xx[k] = load<Pack4>(xx + k * pack_size);
        sum_xz[k] = load<Pack4>(xz + k * pack_size);
    }
    for (std::size_t i = 0; i < n; ++i, x += width) {
        for (std::size_t k = 0; k < packs; ++k) {
            Pack4 pack = load<Pack4>(x + k * pack_size);
            if (last && k + 1 == packs) pack = with_last(pack, z[i]);
            const Pack4 dx = pack - mean[k];
            sum_xx[k] = sum_xx[k] + w[i] * dx * dx;
            sum_xz[k] = sum_xz[k] + dx * wdz[i];
        }
    }
    for (std::size_t k = 0; k < packs; ++k) {
        store(xx + k * pack_size, sum_xx[k]);
        store(xz + k * pack_size, sum_xz[k]);
    }
}

// Calls `work<packs, last>(first)` until `width` scores are covered.
template <class Work>
static inline void for_packs(std::size_t width, Work&& work) {
    std::size_t first = 0;
    for (; width - first > 3 * pack_size; first += 3 * pack_size) {
        work.template operator()<3, false>(first);
    }
    if (width - first == pack_size) work.template operator()<1, true>(first);
    if (width - first == 2 * pack_size) work.template operator()<2, true>(first);
    if (width - first == 3 * pack_size) work.template operator()<3, true>(first);
}

template <bool tame>
static void rescale(double* CALTREE_RESTRICT w, double total, double sum_w, std::size_t n) {
    n = whole_vectors(n);
    const double per_sum = 1.0 / sum_w;
    for (std::size_t i = 0; i < n; ++i) {
        w[i] = tame ? quotient(w[i] * total, sum_w, per_sum) : w[i] * total / sum_w;
    }
}

static void first_moments(Responses of, std::size_t m, std::size_t stride, ScoreRows x,
                          double total, bool exact, double* CALTREE_RESTRICT sums, std::size_t n) {
    n = whole_vectors(n);
    for (std::size_t j = 0; j < m; ++j) {
        (exact ? rescale<false> : rescale<true>)(of.w + j * stride, total, of.sum_w[j], n);
    }
    for (std::size_t j = 0; j < m; j += 2) {
        const double* w = of.w + j * stride;
        const double* z = of.z + j * stride;
        double* to = sums + j * x.width;
        for_packs(x.width, [&]<std::size_t packs, bool last>(std::size_t first) {
            const auto add =
                j + 1 < m ? first_of_packs<packs, last, 2> : first_of_packs<packs, last, 1>;
            add(w, z, stride, x.first + first, x.width, to + first, n);
        });
    }
}

static void second_moments(Responses of, std::size_t m, std::size_t stride, ScoreRows x,
                           const double* CALTREE_RESTRICT means, double* CALTREE_RESTRICT sums,
                           std::size_t n) {
    n = whole_vectors(n);
    double wdz[boosting_rows];
    for (std::size_t j = 0; j < m; ++j) {
        const double* w = of.w + j * stride;
        const double* z = of.z + j * stride;
        const double* mean = means + j * x.width;
        double* to = sums + j * 2 * x.width;
        for (std::size_t i = 0; i < n; ++i) wdz[i] = w[i] * (z[i] - mean[x.width - 1]);
        for_packs(x.width, [&]<std::size_t packs, bool last>(std::size_t first) {
            second_of_packs<packs, last>(w, z, wdz, x.first + first, x.width, mean + first,
                                         to + first, to + x.width + first, n);
        });
    }
}

static void slopes_and_errors(const double* CALTREE_RESTRICT sums, std::size_t width,
                              double* CALTREE_RESTRICT slopes, double* CALTREE_RESTRICT errors) {
    width = whole_vectors(width);
    const double* xx = sums;
    const double* xz = sums + width;
    const double zz = xz[width - 1];
    for (std::size_t c = 0; c < width; ++c) {
        slopes[c] = xz[c] / xx[c];
        errors[c] = zz - slopes[c] * xz[c];
    }
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
