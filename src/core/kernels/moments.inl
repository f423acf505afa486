// LogitBoost in one pass: residuals, and moments of regressions on them; see kernels.inl.

// From exponentials of a pack of rows in p and their totals to residuals.
template <bool weighted, class Pack>
static inline void residuals_of(const double* CALTREE_RESTRICT p, Pack total, ClassList classes,
                                BoostedRows rows, Residuals to, std::size_t i) {
    const Pack smallest = Pack{} + 1.0 / largest_response;
    const Pack per_total = 1.0 / total;
    const Pack labels = load<Pack>(rows.labels + i);
    for (std::size_t k = 0; k < classes.count; ++k) {
        const Pack share = load<Pack>(p + k * lanes<Pack>) * per_total;
        const auto hit = labels == Pack{} + static_cast<double>(classes.index[k]);
        const Pack residual = choose(hit, Pack{} + 1.0, Pack{}) - share;
        const Pack wrong = size_of(residual);
        const Pack w = wrong * larger_of(1.0 - wrong, smallest);
        if constexpr (weighted) {
            const Pack weights = load<Pack>(rows.weights + i);
            store(to.w + k * to.stride + i, w * weights);
            store(to.r + k * to.stride + i, residual * weights);
        } else {
            store(to.w + k * to.stride + i, w);
            store(to.r + k * to.stride + i, residual);
        }
    }
}

template <bool exact, bool weighted>
static bool residuals_by_softmax(const double* CALTREE_RESTRICT F, ClassList classes,
                                 BoostedRows rows, double* CALTREE_RESTRICT p, Residuals to,
                                 std::size_t n) {
    double lowest[boosting_rows];
    for_rows(n, [&]<class Pack>(std::size_t i) {
        Pack most = load<Pack>(F + classes.index[0] * rows.stride + i);
        Pack least = most;
        for (std::size_t k = 1; k < classes.count; ++k) {
            const Pack Fk = load<Pack>(F + classes.index[k] * rows.stride + i);
            most = larger_of(Fk, most);
            least = smaller_of(Fk, least);
        }
        store(lowest + i, least - most);
        // In two loops of short chains, many of which are under way at a time.
        for (std::size_t k = 0; k < classes.count; ++k) {
            const Pack Fk = load<Pack>(F + classes.index[k] * rows.stride + i);
            const Reduced<Pack> reduced = reduce<!exact>(Fk - most);
            store(p + k * lanes<Pack>, reduced.rest);
            store(to.w + k * to.stride + i, reduced.shifted);
        }
        Pack total{};
        for (std::size_t k = 0; k < classes.count; ++k) {
            const Pack shifted = load<Pack>(to.w + k * to.stride + i);
            const Pack rest = load<Pack>(p + k * lanes<Pack>);
            const Pack e = exp_of_reduced<!exact>(Reduced<Pack>{shifted, rest});
            store(p + k * lanes<Pack>, e);
            total = total + e;
        }
        residuals_of<weighted>(p, total, classes, rows, to, i);
    });
    std::uint64_t outside = 0;
    for (std::size_t i = 0; i < whole_vectors(n); ++i) {
        outside += static_cast<std::uint64_t>(!(lowest[i] > tame_exponent));
    }
    return outside == 0;
}

static bool residuals(const double* CALTREE_RESTRICT F, ClassList classes, BoostedRows rows,
                      bool exact, bool weighted, double* CALTREE_RESTRICT p, Residuals to,
                      std::size_t n) {
    const auto work =
        weighted ? (exact ? residuals_by_softmax<true, true> : residuals_by_softmax<false, true>)
                 : (exact ? residuals_by_softmax<true, false> : residuals_by_softmax<false, false>);
    return work(F, classes, rows, p, to, n);
}

// The moments of `packs` neighbouring packs of scores for some classes at once.
template <class Pack, std::size_t packs, std::size_t classes>
static void moments_of_packs(Residuals of, const double* CALTREE_RESTRICT x, std::size_t width,
                             double* CALTREE_RESTRICT sums, std::size_t n) {
    Pack sum_wx[classes][packs], sum_wxx[classes][packs], sum_rx[classes][packs];
    for (std::size_t j = 0; j < classes; ++j) {
        for (std::size_t k = 0; k < packs; ++k) {
            const double* from = sums + 3 * j * width + k * lanes<Pack>;
            sum_wx[j][k] = load<Pack>(from);
            sum_wxx[j][k] = load<Pack>(from + width);
            sum_rx[j][k] = load<Pack>(from + 2 * width);
        }
    }
    for (std::size_t i = 0; i < n; ++i, x += width) {
        for (std::size_t j = 0; j < classes; ++j) {
            const double w = of.w[j * of.stride + i];
            const double r = of.r[j * of.stride + i];
            for (std::size_t k = 0; k < packs; ++k) {
                const Pack pack = load<Pack>(x + k * lanes<Pack>);
                const Pack wx = w * pack;
                sum_wx[j][k] = sum_wx[j][k] + wx;
                sum_wxx[j][k] = sum_wxx[j][k] + wx * pack;
                sum_rx[j][k] = sum_rx[j][k] + r * pack;
            }
        }
    }
    for (std::size_t j = 0; j < classes; ++j) {
        for (std::size_t k = 0; k < packs; ++k) {
            double* to = sums + 3 * j * width + k * lanes<Pack>;
            store(to, sum_wx[j][k]);
            store(to + width, sum_wxx[j][k]);
            store(to + 2 * width, sum_rx[j][k]);
        }
    }
}

// The widest packs first.
template <std::size_t classes>
static void moments_of_classes(Residuals of, ScoreRows x, std::size_t used,
                               double* CALTREE_RESTRICT sums, std::size_t n) {
    std::size_t first = 0;
    const auto add = [&]<class Pack, std::size_t packs>() {
        moments_of_packs<Pack, packs, classes>(of, x.first + first, x.width, sums + first, n);
        first += packs * lanes<Pack>;
    };
#if defined(__AVX512F__)
    while (used - first >= 2 * lanes<Pack8>) add.template operator()<Pack8, 2>();
    if (used - first >= lanes<Pack8>) add.template operator()<Pack8, 1>();
#endif
    while (used - first >= 3 * pack_size) add.template operator()<Pack4, 3>();
    if (used - first == 2 * pack_size) add.template operator()<Pack4, 2>();
    if (used - first == pack_size) add.template operator()<Pack4, 1>();
}

static void moments(Residuals of, std::size_t m, ScoreRows x, std::size_t used,
                    double* CALTREE_RESTRICT sums, std::size_t n) {
#if defined(__AVX512F__)
    constexpr std::size_t some = 2;  // as many as there are registers for
#else
    constexpr std::size_t some = 1;
#endif
    std::size_t j = 0;
    for (; j + some <= m; j += some) {
        const Residuals these{of.w + j * of.stride, of.r + j * of.stride, of.stride};
        moments_of_classes<some>(these, x, used, sums + 3 * j * x.width, n);
    }
    for (; j < m; ++j) {
        const Residuals these{of.w + j * of.stride, of.r + j * of.stride, of.stride};
        moments_of_classes<1>(these, x, used, sums + 3 * j * x.width, n);
    }
}

static void respond_by_residuals(const double* CALTREE_RESTRICT r, std::size_t label,
                                 BoostedRows rows, Responses to, std::size_t n) {
    n = whole_vectors(n);
    double sum = *to.sum_w;
    for (std::size_t i = 0; i < n; ++i) {
        const double weight = rows.weights[i];
        const bool hit = rows.labels[i] == static_cast<double>(label);
        const double wrong = weight > 0.0 ? (r[i] < 0.0 ? -r[i] : r[i]) / weight : 0.0;
        const double unclipped = 1.0 / (1.0 - wrong);
        const double size = unclipped < largest_response ? unclipped : largest_response;
        to.w[i] = weight * (wrong / size);
        to.z[i] = hit ? size : -size;
        sum += to.w[i];
    }
    *to.sum_w = sum;
}

static void slopes_and_gains(const double* CALTREE_RESTRICT moments, std::size_t m,
                             std::size_t width, std::size_t used, std::size_t one,
                             double* CALTREE_RESTRICT sum_xx, double* CALTREE_RESTRICT slopes,
                             double* CALTREE_RESTRICT gains) {
    used = whole_vectors(used);
    for (std::size_t j = 0; j < m; ++j) {
        const double* wx = moments + 3 * j * width;
        const double* wxx = wx + width;
        const double* rx = wxx + width;
        const double per_w = 1.0 / wx[one];
        const double sum_r = rx[one];
        double* xx = sum_xx + j * width;
        for (std::size_t c = 0; c < used; ++c) {
            const double mean = wx[c] * per_w;
            const double xz = rx[c] - mean * sum_r;
            xx[c] = wxx[c] - mean * wx[c];
            slopes[j * width + c] = xz / xx[c];
            gains[j * width + c] = slopes[j * width + c] * xz;
        }
    }
}
