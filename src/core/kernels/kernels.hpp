// The inner loops of the node models, compiled once for every instruction set worth having.
//
// Sums run in row order, one accumulator a score, and nothing is contracted: every instruction set
// gives the same bits. Vectors run across scores (moments) or across rows (everything else).
#pragma once

#include <cstddef>

namespace caltree {

// Rows are worked off in blocks that fit the first-level cache.
inline constexpr std::size_t block_rows = 256;

// The number of rows is padded to a multiple of this, with rows of weight 0.
inline constexpr std::size_t row_multiple = 4;

inline std::size_t padded_rows(std::size_t n) {
    return (n + row_multiple - 1) / row_multiple * row_multiple;
}

inline constexpr double largest_response = 3.0;

// The scores of a row stand side by side, padded with zeros to this many.
inline std::size_t padded(std::size_t n_scores) {
    return n_scores <= 2 ? 2 : (n_scores + 3) / 4 * 4;
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

struct Kernels {
    const char* name;

    // F[i] += intercept + slope * x[i * stride]
    void (*add_line)(double* F, const double* x, std::size_t stride, double intercept, double slope,
                     std::size_t n);

    // F[i] = intercept + slope * x[i * stride]
    void (*set_line)(double* F, const double* x, std::size_t stride, double intercept, double slope,
                     std::size_t n);

    // f = (f - its mean over the m class columns) * (m-1)/m; columns are block_rows apart.
    void (*centre)(double* f, std::size_t m, std::size_t n);

    // F += f, for m class columns that are F_stride and block_rows apart.
    void (*add_columns)(double* F, std::size_t F_stride, const double* f, std::size_t m,
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

    // The working response z of one class and its weight w.
    void (*respond)(const double* p, const double* labels, double label, const double* weights,
                    double* w, double* z, std::size_t n);

    // sums[j] += w for each of m columns that are `stride` apart.
    void (*sum_weights)(const double* w, std::size_t m, std::size_t stride, double* sums,
                        std::size_t n);

    // w = w * total / sum_w, in this order; then sums += w, w z, and w x for each score.
    void (*first_moments)(double* w, const double* z, ScoreRows x, double total, double sum_w,
                          double* sums, std::size_t n);

    // Around the means: sums += w dz dz, then w dx dx for each score, then w dx dz for each.
    void (*second_moments)(const double* w, const double* z, ScoreRows x, double mean_z,
                           const double* mean_x, double* sums, std::size_t n);

    // The sum of weight * (target - p)^2, the target being 1 where labels equal label.
    double (*squared_error)(const double* p, const double* labels, double label,
                            const double* weights, std::size_t n);
};

// The kernels for the machine at hand.
const Kernels& kernels();

}  // namespace caltree
