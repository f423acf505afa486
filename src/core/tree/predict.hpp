// Leaves and calibrated probabilities of new rows.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "data/columns.hpp"
#include "data/stop.hpp"
#include "kernels/kernels.hpp"
#include "kernels/simd.hpp"
#include "tree/structure.hpp"
#include "tree/ways.hpp"

namespace caltree {

// Where one row goes, a node at a time.
class Router {
  public:
    explicit Router(const Routes& routes) : branches_(routes.branches) {
        for (std::size_t v = 0; v < routes.attribute.size(); ++v) {
            const std::int32_t a = routes.attribute[v];
            const std::size_t known = routes.n_categories.size();
            const bool nominal = a >= 0 && static_cast<std::size_t>(a) < known;
            const std::int32_t count =
                nominal ? routes.n_categories[static_cast<std::size_t>(a)] : 0;
            const double threshold = routes.threshold[v] == only_missing
                                         ? std::numeric_limits<double>::infinity()
                                         : routes.threshold[v];
            nodes_.push_back({threshold, a, routes.first_child[v], routes.missing[v],
                              routes.table[v], static_cast<std::uint32_t>(count)});
        }
    }

    std::size_t size() const { return nodes_.size(); }
    bool is_leaf(std::size_t node) const { return nodes_[node].attribute < 0; }
    std::int32_t attribute(std::size_t node) const { return nodes_[node].attribute; }

    std::size_t child(std::size_t node, double value) const {
        const Node& at = nodes_[node];
        std::int32_t branch;
        if (at.n_categories > 0) {
            branch = is_category(value, at.n_categories)
                         ? branches_[static_cast<std::size_t>(at.table) +
                                     static_cast<std::size_t>(value)]
                         : at.missing;
        } else {
            branch =
                std::isnan(value) ? at.missing : static_cast<std::int32_t>(value > at.threshold);
        }
        return static_cast<std::size_t>(at.first_child + branch);
    }

  private:
    struct Node {
        double threshold;
        std::int32_t attribute, first_child, missing, table;
        std::uint32_t n_categories;
    };
    std::span<const std::int32_t> branches_;
    std::vector<Node> nodes_;
};

// How many log-odds a logistic model has, how many parameters each of them, and of which scores.
struct ModelShape {
    std::size_t n_states, width, n_scores;

    std::size_t n_classes() const { return n_states == 1 ? 2 : n_states; }
    // Whether each log-odds sees all scores, or those of its own class alone.
    bool sees_all() const { return width == n_scores + 1; }
};

// Fitted trees, borrowed; their nodes stand one after the other. What they say is the sum of what
// the nodes on a row's ways say, each times its weight.
struct FittedTrees {
    Routes routes;                        // splits may be on scores, too, which follow attributes
    std::span<const double> weight;       // one per node
    std::span<const double> parameters;   // n_nodes x n_states x width
    std::span<const std::int32_t> roots;  // the first node of each tree
    ModelShape shape;
};

// One of the log-odds that a logistic model gives a row. With many classes, take one after the
// other for all rows of a block: the scores of a class lie side by side, those of a row far apart.
inline double log_odds_of(const double* beta, const ModelShape& shape, const NewRows& rows,
                          std::size_t row, std::size_t state) {
    const std::size_t stride = rows.table.n_rows;
    const double* scores = rows.scores + row + (shape.sees_all() ? 0 : state * stride);
    const std::size_t step = shape.sees_all() ? stride : stride * shape.n_states;
    beta += state * shape.width;
    double sum = beta[0];
    for (std::size_t k = 0; k + 1 < shape.width; ++k) sum += beta[1 + k] * scores[k * step];
    if (rows.offset != nullptr) sum += rows.offset[state * stride + row];
    return sum;
}

// The log-odds of a block of rows, and their probabilities; columns are `block_rows` apart.
struct BlockOdds {
    explicit BlockOdds(std::size_t n_states)
        : states(n_states),
          F(n_states * block_rows),
          p(std::max<std::size_t>(2, n_states) * block_rows) {
        std::iota(states.begin(), states.end(), std::size_t{0});
    }

    void evaluate(std::size_t count) {
        if (states.size() == 1) {
            kernels().sigmoid(F.data(), p.data(), p.data() + block_rows, padded_rows(count));
        } else {
            kernels().softmax(F.data(), {states.data(), states.size()}, block_rows, p.data(),
                              padded_rows(count));
        }
    }

    // Adds the probabilities of row i, times a weight, to those of a row of the result.
    void add(std::size_t i, double weight, double* row) const {
        const std::size_t m = p.size() / block_rows;
        for (std::size_t j = 0; j < m; ++j) row[j] += weight * p[j * block_rows + i];
    }

    std::vector<std::size_t> states;
    std::vector<double> F, p;
};

class Predictor {
  public:
    explicit Predictor(const FittedTrees& trees)
        : trees_(trees),
          router_(trees.routes),
          ways_(trees.routes, trees.roots),
          counting_(trees.weight.size()) {
        for (std::size_t v = 0; v < counting_.size(); ++v) {
            counting_[v] = trees.weight[v] > 0.0 ? static_cast<std::int32_t>(v) : -1;
        }
        above_.assign(counting_.size(), -1);
        // Children come after their parents.
        for (std::size_t v = 0; v < counting_.size(); ++v) {
            if (counting_[v] < 0) counting_[v] = above_[v];
            for (const std::size_t child : children_of(trees.routes, v)) {
                above_[child] = counting_[v];
            }
        }
    }

    std::int32_t leaf(const NewRows& rows, std::size_t row, std::int32_t root) const {
        auto node = static_cast<std::size_t>(root);
        while (!router_.is_leaf(node)) {
            const auto attribute = static_cast<std::size_t>(router_.attribute(node));
            node = router_.child(node, rows.value(row, attribute));
        }
        return static_cast<std::int32_t>(node);
    }

    // probabilities: row-major, n_rows x n_classes.
    void probabilities(const NewRows& rows, double* probabilities) const {
        const std::size_t m = trees_.shape.n_classes();
        const std::size_t n_rows = rows.table.n_rows;
        const std::size_t width = rows.table.n_columns + trees_.shape.n_scores;
        std::fill_n(probabilities, n_rows * m, 0.0);
        BlockOdds odds(trees_.shape.n_states);
        const std::size_t size = chunk_rows(width);
        std::vector<double> values(std::min(size, n_rows + Ways::lanes) * width, 0.0);
        StopCheck stop_check;
        for (std::size_t chunk = 0; chunk < n_rows; chunk += size) {
            const std::size_t end = std::min(n_rows, chunk + size);
            copy_rows(rows, chunk, end - chunk, width, values.data());
            for (std::size_t tree = 0; tree < ways_.n_trees(); ++tree) {
                stop_check.count(end - chunk);
                for (std::size_t begin = chunk; begin < end; begin += block_rows) {
                    const double* block = values.data() + (begin - chunk) * width;
                    add_tree(tree, rows, {block, width, begin, std::min(block_rows, end - begin)},
                             odds, probabilities + begin * m);
                }
            }
        }
    }

  private:
    // A tree stays in the cache while a chunk of rows goes down in it. The more rows, the seldomer
    // the trees are fetched from memory; but the rows have to be fetched for every tree.
    static constexpr std::size_t chunk_bytes = std::size_t{3} << 19;
    static std::size_t chunk_rows(std::size_t width) {
        const std::size_t fitting =
            chunk_bytes / (std::max<std::size_t>(width, 1) * sizeof(double));
        return std::clamp<std::size_t>(fitting / block_rows, 4, 64) * block_rows;
    }

    // Some rows, the values of each side by side.
    struct Block {
        const double* values;
        std::size_t width, begin, count;
    };

    // Adds what the nodes on the ways of some rows say, from their leaves upwards.
    void add_tree(std::size_t tree, const NewRows& rows, const Block& block, BlockOdds& odds,
                  double* result) const {
        const std::size_t m = trees_.shape.n_classes();
        const std::size_t size = trees_.shape.n_states * trees_.shape.width;
        std::array<std::int32_t, block_rows> at;
        std::array<std::uint32_t, block_rows> row;
        ways_.leaves(tree, block.values, block.width, block.count, at.data());
        std::size_t count = 0;
        // The rows for which a node counts stand together, so that no step is taken in vain.
        const auto keep = [&](std::int32_t node, std::uint32_t of_row) {
            at[count] = node;
            row[count] = of_row;
            const auto known = static_cast<std::size_t>(std::max(node, 0));
            prefetch(trees_.parameters.data() + known * size);
            prefetch(trees_.weight.data() + known);
            count += node >= 0 ? 1 : 0;
        };
        for (std::uint32_t i = 0; i < block.count; ++i) {
            keep(counting_[static_cast<std::size_t>(at[i])], i);
        }
        while (count > 0) {
            for (std::size_t j = 0; j < trees_.shape.n_states; ++j) {
                for (std::size_t k = 0; k < count; ++k) {
                    const double* beta =
                        trees_.parameters.data() + static_cast<std::size_t>(at[k]) * size;
                    odds.F[j * block_rows + k] =
                        log_odds_of(beta, trees_.shape, rows, block.begin + row[k], j);
                }
            }
            odds.evaluate(count);
            const std::size_t n_said = std::exchange(count, 0);
            for (std::size_t k = 0; k < n_said; ++k) {
                const auto node = static_cast<std::size_t>(at[k]);
                odds.add(k, trees_.weight[node], result + row[k] * m);
                keep(above_[node], row[k]);
            }
        }
    }

    FittedTrees trees_;
    Router router_;
    Ways ways_;
    // The node, or the nearest above it, that counts for something; -1 if there is none. And the
    // nearest of those above.
    std::vector<std::int32_t> counting_, above_;
};

}  // namespace caltree
