// Bagged local trees: the rows of each, and what all of them together predict.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "data/data.hpp"
#include "data/random.hpp"
#include "published/models.hpp"
#include "shrunken/node_model.hpp"
#include "tree/predict.hpp"
#include "tree/structure.hpp"

namespace caltree {

// As many rows as there are, drawn with replacement.
struct Bootstrap {
    std::vector<double> weights;  // one a row: its own, times how often it was drawn
    std::vector<Row> in_bag, out_of_bag;
};

inline Bootstrap bootstrap(const Data& data, Random& random) {
    const std::size_t n = data.n_rows();
    Bootstrap result;
    result.weights.assign(n, 0.0);
    for (std::size_t draw = 0; draw < n; ++draw) result.weights[random.below(n)] += 1.0;
    for (std::size_t i = 0; i < n; ++i) {
        const Row row = static_cast<Row>(i);
        (result.weights[i] > 0.0 ? result.in_bag : result.out_of_bag).push_back(row);
        result.weights[i] *= data.weight(row);
    }
    return result;
}

// What a split gains on the rows that it was not made for; less than nothing, if it fits noise.
inline void judge_splits(Structure& tree, const NodeModels& models) {
    for (std::size_t v = 0; v < tree.size(); ++v) {
        if (tree.is_leaf(v)) continue;
        tree.gain[v] = models.held_out_error[v];
        for (std::int32_t b = 0; b < tree.n_children[v]; ++b) {
            tree.gain[v] -=
                models.held_out_error[static_cast<std::size_t>(tree.first_child[v] + b)];
        }
    }
}

// A fitted forest, borrowed; the nodes of all trees in a row. What it says is the sum of what the
// nodes on a row's ways say, each times its weight.
struct FittedForest {
    Routes routes;
    std::span<const double> weight;      // one a node
    std::span<const double> parameters;  // n_nodes x n_states x width
    std::span<const std::int32_t> roots;
    std::size_t n_states, width;
};

class ForestPredictor {
  public:
    explicit ForestPredictor(const FittedForest& forest)
        : forest_(forest), router_(forest.routes) {}

    // Adds up what the trees say. scores and offset: column-major, offset may be null;
    // probabilities: row-major, a column a log-odds.
    void add(const Table& table, const double* scores, const double* offset,
             double* probabilities) const {
        std::vector<double> F(forest_.n_states), p(forest_.n_states), x(n_scores());
        for (std::size_t row = 0; row < table.n_rows; ++row) {
            for (std::size_t c = 0; c < x.size(); ++c) x[c] = scores[c * table.n_rows + row];
            for (const std::int32_t root : forest_.roots) {
                walk(root, table, row, x, [&](std::size_t node) {
                    log_odds(node, x, F);
                    if (offset != nullptr) {
                        for (std::size_t j = 0; j < F.size(); ++j) {
                            F[j] += offset[j * table.n_rows + row];
                        }
                    }
                    probabilities_of(F.data(), p.data(), F.size());
                    double* to = probabilities + row * F.size();
                    for (std::size_t j = 0; j < F.size(); ++j) to[j] += forest_.weight[node] * p[j];
                });
            }
        }
    }

    std::size_t n_scores() const { return forest_.n_states * (forest_.width - 1); }

  private:
    // Visits the nodes on a row's way that count for something.
    template <class Visit>
    void walk(std::int32_t root, const Table& table, std::size_t row, const std::vector<double>& x,
              Visit&& visit) const {
        const double* values = table.first + static_cast<std::ptrdiff_t>(row) * table.row_stride;
        auto node = static_cast<std::size_t>(root);
        while (true) {
            if (forest_.weight[node] > 0.0) visit(node);
            if (router_.is_leaf(node)) return;
            const auto a = static_cast<std::size_t>(router_.attribute(node));
            const double value = a < table.n_columns
                                     ? values[static_cast<std::ptrdiff_t>(a) * table.column_stride]
                                     : x[a - table.n_columns];
            node = router_.child(node, value);
        }
    }

    void log_odds(std::size_t node, const std::vector<double>& x, std::vector<double>& F) const {
        const double* beta = forest_.parameters.data() + node * forest_.n_states * forest_.width;
        for (std::size_t j = 0; j < forest_.n_states; ++j) {
            double sum = *beta++;
            for (std::size_t k = 0; k + 1 < forest_.width; ++k) {
                sum += *beta++ * x[k * forest_.n_states + j];
            }
            F[j] = sum;
        }
    }

    FittedForest forest_;
    Router router_;
};

}  // namespace caltree
