// Node models of two classes, a score and its bend: losses and their derivatives; see kernels.inl.

static inline double sum_of_lanes(const Pack4& pack) {
    double each[pack_size];
    store(each, pack);
    return (each[0] + each[1]) + (each[2] + each[3]);
}

static double logistic_losses(const LogisticRows& rows, const double* CALTREE_RESTRICT parameters,
                              double* CALTREE_RESTRICT p, double* CALTREE_RESTRICT loss,
                              std::size_t n) {
    const double intercept = parameters[0], slope = parameters[1], bends = parameters[2];
    double log_odds[block_rows];
    Pack4 sum{};
    for (std::size_t first = 0; first < n; first += block_rows) {
        const std::size_t size = whole_vectors(n - first < block_rows ? n - first : block_rows);
        const double* CALTREE_RESTRICT offset = rows.offset + first;
        const double* CALTREE_RESTRICT score = rows.score + first;
        const double* CALTREE_RESTRICT bend = rows.bend + first;
        const double* CALTREE_RESTRICT is_second = rows.is_second + first;
        double* CALTREE_RESTRICT losses = loss + first;
        for (std::size_t i = 0; i < size; ++i) {
            log_odds[i] = offset[i] + intercept + slope * score[i] + bends * bend[i];
        }
        logistic(log_odds, p + first, losses, size);
        for (std::size_t i = 0; i < size; ++i) {
            losses[i] -= is_second[i] > 0.0 ? log_odds[i] : 0.0;
        }
        for (std::size_t i = 0; i < size; i += pack_size) {
            sum = sum + load<Pack4>(rows.weight + first + i) * load<Pack4>(losses + i);
        }
    }
    return sum_of_lanes(sum);
}

static void logistic_derivatives(const LogisticRows& rows, const double* CALTREE_RESTRICT p,
                                 double* CALTREE_RESTRICT gradient,
                                 double* CALTREE_RESTRICT triangle, std::size_t n) {
    Pack4 g[3]{}, h[6]{};
    const Pack4 one = Pack4{1.0, 1.0, 1.0, 1.0};
    for (std::size_t i = 0; i < n; i += pack_size) {
        const Pack4 weight = load<Pack4>(rows.weight + i), chance = load<Pack4>(p + i);
        const Pack4 score = load<Pack4>(rows.score + i), bend = load<Pack4>(rows.bend + i);
        const Pack4 own = weight * (load<Pack4>(rows.is_second + i) - chance);
        const Pack4 variance = weight * chance * (one - chance);
        const Pack4 first = variance * score, second = variance * bend;
        g[0] = g[0] + own;
        g[1] = g[1] + own * score;
        g[2] = g[2] + own * bend;
        h[0] = h[0] + variance;
        h[1] = h[1] + first;
        h[2] = h[2] + first * score;
        h[3] = h[3] + second;
        h[4] = h[4] + second * score;
        h[5] = h[5] + second * bend;
    }
    for (std::size_t t = 0; t < 3; ++t) gradient[t] = sum_of_lanes(g[t]);
    for (std::size_t t = 0; t < 6; ++t) triangle[t] = sum_of_lanes(h[t]);
}
