// The training data as the core sees it: plain arrays, borrowed from the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "data/columns.hpp"

namespace caltree {

using Row = std::uint32_t;
using Label = std::uint16_t;

// A row's deviance counts no smaller probability than this, as scikit-learn's log loss.
inline constexpr double smallest_likelihood = std::numeric_limits<double>::epsilon();

struct Data {
    const Columns& columns;
    std::span<const Label> labels;    // class index of every row
    std::span<const double> weights;  // empty: every row counts once
    const double* scores = nullptr;   // column-major, n_rows x n_scores
    std::size_t n_scores = 0;
    std::size_t n_classes = 0;

    std::size_t n_rows() const { return labels.size(); }
    bool weighted() const { return !weights.empty(); }
    double weight(Row row) const { return weighted() ? weights[row] : 1.0; }
    const double* score_column(std::size_t column) const { return scores + column * n_rows(); }
};

inline double total_weight(const Data& data, std::span<const Row> rows) {
    if (!data.weighted()) return static_cast<double>(rows.size());
    double total = 0.0;
    for (const Row row : rows) total += data.weights[row];
    return total;
}

// Of all rows, those held out from a fold's tree included.
inline double total_weight(const Data& data) {
    if (!data.weighted()) return static_cast<double>(data.n_rows());
    double total = 0.0;
    for (const double weight : data.weights) total += weight;
    return total;
}

}  // namespace caltree
