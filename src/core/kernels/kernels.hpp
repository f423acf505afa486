// The inner loops of the node models, compiled once for every instruction set worth having.
//
// Sums run in row order, one accumulator a score or one for every fourth row, and nothing is
// contracted: every instruction set gives the same bits. Vectors run across scores (moments) or
// across rows (everything else).
#pragma once

#include <cstddef>
#include <cstdint>

namespace caltree {

// Rows are worked off in blocks that fit the first-level cache.
inline constexpr std::size_t block_rows = 256;

// Boosting has many columns at work at once, so that fewer rows fit.
inline constexpr std::size_t boosting_rows = 64;

// The number of rows is padded to a multiple of this, with rows of weight 0.
inline constexpr std::size_t row_multiple = 4;

// Up to so many rows, sorting them is cheaper than looking at every bin.
inline constexpr std::size_t few_rows = 32;

inline std::size_t padded_rows(std::size_t n) {
    return (n + row_multiple - 1) / row_multiple * row_multiple;
}

inline constexpr double largest_response = 3.0;

// The scores of a row stand side by side, then a one, then zeros, and last a place for the
// response, so that sums of weights and of responses are sums like all others.
inline std::size_t padded(std::size_t n_scores) { return (n_scores + 2 + 3) / 4 * 4; }

// A sum as NumPy makes it of a short row: if there are eight numbers or more, in eight sums.
inline double sum_in_eights(const double* first, std::size_t stride, std::size_t n) {
    const std::size_t whole = n / 8 * 8;
    double total = 0.0;
    if (whole > 0) {
        double sum[8];
        for (std::size_t k = 0; k < 8; ++k) sum[k] = first[k * stride];
        for (std::size_t k = 8; k < whole; ++k) sum[k % 8] += first[k * stride];
        total = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
    }
    for (std::size_t k = whole; k < n; ++k) total += first[k * stride];
    return total;
}

// The scores of a block of rows.
struct ScoreRows {
    const double* first;
    std::size_t width;  // padded(n_scores)
};

// Some of the classes, by index.
struct ClassList {
    const std::size_t* index;
    std::size_t count;
};

// A block of rows; what there is of each class stands `stride` apart.
struct BoostedRows {
    const double* labels;
    const double* weights;
    std::size_t stride;
};

// Rows of two classes whose log-odds are a line over a score and its bend. Padding has weight 0.
struct LogisticRows {
    const double* offset;
    const double* score;
    const double* bend;
    const double* weight;
    const double* is_second;  // 1 for rows of the second class, 0 for others
};

// The working responses of some classes, their weights, and the sums of these so far.
struct Responses {
    double* w;
    double* z;
    double* sum_w;
};

// A block of rows: residuals of some classes, weighted, and the weights of their working responses.
// What there is of each class stands `stride` apart.
struct Residuals {
    double* w;
    double* r;
    std::size_t stride;
};

// Sums of residuals and of their variances over the rows to the left of each of several cuts.
struct CutSums {
    const double* residual;
    const double* variance;
};

// Bins one after the other, and sums over all rows up to each of them.
struct CutColumns {
    std::uint32_t* bin;
    double* rows;
    double* residual;
    double* variance;
};

// The weight of some rows and the sum of their weighted responses, or those of one row.
struct alignas(16) Evidence {
    double weight = 0.0;
    double response = 0.0;

    Evidence operator+(const Evidence& o) const {
        return {weight + o.weight, response + o.response};
    }
    Evidence operator-(const Evidence& o) const {
        return {weight - o.weight, response - o.response};
    }
};

inline constexpr std::size_t four = 4;

// The evidence of four regressions.
struct alignas(64) FourEvidence {
    double weight[four] = {};
    double response[four] = {};

    Evidence operator[](std::size_t j) const { return {weight[j], response[j]}; }
    FourEvidence operator+(const FourEvidence& o) const {
        FourEvidence sum;
        for (std::size_t j = 0; j < four; ++j) sum.weight[j] = weight[j] + o.weight[j];
        for (std::size_t j = 0; j < four; ++j) sum.response[j] = response[j] + o.response[j];
        return sum;
    }
    FourEvidence operator-(const FourEvidence& o) const {
        FourEvidence rest;
        for (std::size_t j = 0; j < four; ++j) rest.weight[j] = weight[j] - o.weight[j];
        for (std::size_t j = 0; j < four; ++j) rest.response[j] = response[j] - o.response[j];
        return rest;
    }
};

// Weights and responses of four regressions, a column each.
struct FourRegressions {
    const double* weight[four];
    const double* response[four];
};

// Sums over rows for four regressions: of weights, of weighted responses, and of weighted squares.
struct FourMoments {
    double total[four] = {};
    double first[four] = {};
    double second[four] = {};
};

// An order of rows, with a 1 where the next value is another one. The evidence below each such
// place is added up, and so is all of it.
struct FourSums {
    const std::uint32_t* rows;
    const std::uint8_t* changes;
    std::size_t n;
    FourEvidence* below;  // room for n
    std::size_t count = 0;
    FourEvidence sum{};
};

// A row in the order of a numeric attribute, and the rank of its value: equal for equal values.
template <class Index>
struct Ranked {
    Index row;
    Index rank;
};

// Orders are divided so many places at a time, and need as many more behind their end.
inline constexpr std::size_t spare_places = 16;

struct Kernels {
    const char* name;

    // F += intercept + slope * x
    void (*add_line)(double* F, const double* x, double intercept, double slope, std::size_t n);

    // F = intercept + slope * x
    void (*set_line)(double* F, const double* x, double intercept, double slope, std::size_t n);

    // F += (f - its mean over the m class columns) * (m-1)/m; columns of f are boosting_rows apart.
    void (*add_centred)(double* F, std::size_t F_stride, const double* f, std::size_t m,
                        std::size_t n);

    // The largest of F over some classes, whose columns are F_stride apart; n <= block_rows.
    void (*highest)(const double* F, ClassList classes, std::size_t F_stride, double* largest,
                    std::size_t n);

    // Whether Fj - largest lies strictly between low and high in every row.
    bool (*all_between)(const double* Fj, const double* largest, double low, double high,
                        std::size_t n);

    // p = softmax over some classes of F, a column of block_rows each, in the order of the list.
    void (*softmax)(const double* F, ClassList classes, std::size_t F_stride, double* p,
                    std::size_t n);

    // The two-class softmax of d = F_1 - F_0.
    void (*sigmoid)(const double* d, double* p0, double* p1, std::size_t n);

    // p = 1 / (1 + exp(-d)), and norm = log(1 + exp(d)).
    void (*logistic)(const double* d, double* p, double* norm, std::size_t n);

    // The loss of each row under an intercept and two slopes, and its probability of the second
    // class. Returns the weighted sum of the losses.
    double (*logistic_losses)(const LogisticRows& rows, const double* parameters, double* p,
                              double* loss, std::size_t n);

    // By the probabilities of rows: minus the gradient of their loss by intercept and slopes, and
    // the lower triangle of its Hessian, row by row.
    void (*logistic_derivatives)(const LogisticRows& rows, const double* p, double* gradient,
                                 double* triangle, std::size_t n);

    // The working responses of some classes, by the softmax of F; p has room for
    // their probabilities. Returns whether all of these are tame, which means far from the smallest
    // numbers there are. Unless `exact`, others are held at the smallest tame one.
    bool (*respond_to_all)(const double* F, ClassList classes, BoostedRows rows, bool exact,
                           double* p, Responses to, std::size_t n);

    // The same, exact, by a softmax whose total is a sum in eights.
    void (*respond_in_eights)(const double* F, ClassList classes, BoostedRows rows, double* p,
                              Responses to, std::size_t n);

    // Those of one of two classes, by d = F_1 - F_0.
    bool (*respond_to_two)(const double* d, std::size_t label, BoostedRows rows, bool exact,
                           Responses to, std::size_t n);

    // w = w * total / sum_w, in this order; then, for each of m classes, sums += w x.
    void (*first_moments)(Responses of, std::size_t m, std::size_t stride, ScoreRows x,
                          double total, bool exact, double* sums, std::size_t n);

    // Around the means, for each of m classes: sums += w dx dx for each score, then w dx dz.
    void (*second_moments)(Responses of, std::size_t m, std::size_t stride, ScoreRows x,
                           const double* means, double* sums, std::size_t n);

    // The residuals of some classes, y - p, by the softmax of F; p has room for their
    // probabilities. They are weights times working responses, so that no response is needed.
    // Returns whether all are tame, as above. Unless `weighted`, all weights are 1.
    bool (*residuals)(const double* F, ClassList classes, BoostedRows rows, bool exact,
                      bool weighted, double* p, Residuals to, std::size_t n);

    // For each of m classes, over the first `used` scores: sums += w x, w x x and r x.
    void (*moments)(Residuals of, std::size_t m, ScoreRows x, std::size_t used, double* sums,
                    std::size_t n);

    // The working responses of one class, by its residuals.
    void (*respond_by_residuals)(const double* r, std::size_t label, BoostedRows rows, Responses to,
                                 std::size_t n);

    // From the moments of m classes, the sum of w dx dx for each score, the slope of the response
    // on it, and by how much that lowers the squared error; `one` is the place of the ones.
    void (*slopes_and_gains)(const double* moments, std::size_t m, std::size_t width,
                             std::size_t used, std::size_t one, double* sum_xx, double* slopes,
                             double* gains);

    // From sums around means, the slope of the response on each score, and the squared error it
    // leaves.
    void (*slopes_and_errors)(const double* sums, std::size_t width, double* slopes,
                              double* errors);

    // The sum of weight * (target - p)^2, the target being 1 where labels equal label.
    double (*squared_error)(const double* p, const double* labels, double label,
                            const double* weights, std::size_t n);

    // Adds the evidence of n rows, `stride` numbers each, to the sums of their bins, and marks
    // these as seen. `codes` are those of all rows.
    void (*add_to_bins)(const std::uint16_t* codes, const std::uint32_t* rows, std::size_t n,
                        const double* evidence, std::size_t stride, double* sums,
                        std::uint8_t* seen);

    // Adds up the sums of bins that have a mark, four numbers each of which the last is nothing,
    // and leaves sums and marks of 0 behind. Returns how many have one. Marks are read by whole
    // words.
    std::size_t (*take_bins)(double* sums, std::uint8_t* marks, std::size_t n_bins, CutColumns to);

    // What cuts of a node gain in deviance, times 2: penalised Newton steps on either side. n is a
    // multiple of row_multiple. Returns the largest, of which there may be one beyond the last cut.
    double (*cut_gains)(CutSums left, double residual, double variance, double penalty,
                        double* gains, std::size_t n);

    // Sorts n keys, all different; there is room for few_rows of them. Each is placed behind those
    // that are smaller: comparing all with all takes less time than branches that cannot be
    // foreseen.
    void (*sort_few)(const std::int16_t* keys, std::size_t n, std::int16_t* sorted);

    // Whether one of some cuts, given the evidence below each and that of all, lowers the squared
    // error by that much or more, in units of the weight; n is a multiple of row_multiple.
    bool (*any_cut_gains)(const Evidence* below, Evidence all, double gain, std::size_t n);

    // Adds up n rows.
    void (*add_up_moments)(const FourRegressions& of, std::size_t n, FourMoments& sums);

    // The evidence of n rows, with responses around their means.
    void (*centre)(const FourRegressions& of, std::size_t n, const double* means, FourEvidence* to);

    // Adds up along two orders at once, since each sum waits for all its additions.
    void (*add_up_orders)(const FourEvidence* evidence, FourSums& one, FourSums& other);

    // A bit for each regression of which one of n cuts lowers the squared error by that much or
    // more, in units of the weight.
    unsigned (*which_gain)(const FourEvidence* below, const FourEvidence& all, const double* gains,
                           std::size_t n);

    // Adds up n rows on either side of a cut, which each of the regressions has in a column of its
    // own; values of a column are `stride` apart.
    void (*add_up_sides)(const FourEvidence* evidence, std::size_t n, const double* const* columns,
                         std::ptrdiff_t stride, const double* cuts, FourEvidence& low,
                         FourEvidence& high);

    // Divides an order of n places in two by a 0 or 1 for each row. Returns how many are
    // in the second.
    std::size_t (*divide_order)(const Ranked<std::uint16_t>* order, std::size_t n,
                                const std::uint8_t* is_high, Ranked<std::uint16_t>* low,
                                Ranked<std::uint16_t>* high);
};

// The kernels for the machine at hand.
const Kernels& kernels();

}  // namespace caltree
