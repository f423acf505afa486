// Leaves and calibrated probabilities of new rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "data/columns.hpp"
#include "data/stop.hpp"
#include "kernels/kernels.hpp"
#include "tree/structure.hpp"

namespace caltree {

// An encoded table: numbers and category codes, NaN where missing; rows and columns may be strided.
struct Table {
    const double* first;
    std::size_t n_rows, n_columns;
    std::ptrdiff_t row_stride, column_stride;

    ColumnView column(std::size_t c) const {
        return {first + static_cast<std::ptrdiff_t>(c) * column_stride, row_stride};
    }
};

// Where rows go, borrowed: one entry a node.
struct Routes {
    std::span<const std::int32_t> attribute;  // -1 in a leaf
    std::span<const double> threshold;        // numeric: values above it go to the second child
    std::span<const std::int32_t> first_child;
    std::span<const std::int32_t> missing;       // the child of missing values
    std::span<const std::int32_t> table;         // nominal: where the node begins in `branches`
    std::span<const std::int32_t> branches;      // by category: the child
    std::span<const std::int32_t> n_categories;  // by attribute; 0: numeric
};

// The same, an inner node in 32 bytes.
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
    std::span<const double> weight;       // one a node
    std::span<const double> parameters;   // n_nodes x n_states x width
    std::span<const std::int32_t> roots;  // the first node of each tree
    ModelShape shape;
};

// New rows: encoded attributes; scores, and an offset or null, column by column.
struct NewRows {
    Table table;
    const double* scores = nullptr;
    const double* offset = nullptr;

    double value(std::size_t row, std::size_t attribute) const {
        if (attribute >= table.n_columns) {
            return scores[(attribute - table.n_columns) * table.n_rows + row];
        }
        return table.first[static_cast<std::ptrdiff_t>(row) * table.row_stride +
                           static_cast<std::ptrdiff_t>(attribute) * table.column_stride];
    }
};

// What a logistic model says about a row: its log-odds, `block_rows` apart.
inline void log_odds_of(const double* beta, const ModelShape& shape, const NewRows& rows,
                        std::size_t row, double* F) {
    const std::size_t stride = rows.table.n_rows;
    const double* scores = rows.scores + row;
    const std::size_t step = shape.sees_all() ? stride : stride * shape.n_states;
    const std::size_t shift = shape.sees_all() ? 0 : stride;
    for (std::size_t j = 0; j < shape.n_states; ++j) {
        const double* x = scores + j * shift;
        double sum = *beta++;
        for (std::size_t k = 0; k + 1 < shape.width; ++k) sum += *beta++ * x[k * step];
        if (rows.offset != nullptr) sum += rows.offset[j * stride + row];
        F[j * block_rows] = sum;
    }
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
    explicit Predictor(const FittedTrees& trees) : trees_(trees), router_(trees.routes) {}

    std::int32_t leaf(const NewRows& rows, std::size_t row, std::int32_t root) const {
        auto node = static_cast<std::size_t>(root);
        while (!router_.is_leaf(node)) node = next(node, rows, row);
        return static_cast<std::int32_t>(node);
    }

    // probabilities: row-major, n_rows x n_classes.
    void probabilities(const NewRows& rows, double* probabilities) const {
        const std::size_t m = trees_.shape.n_classes();
        const std::size_t n_rows = rows.table.n_rows;
        std::fill_n(probabilities, n_rows * m, 0.0);
        Block block(trees_.shape.n_states);
        StopCheck stop_check;
        for (std::size_t begin = 0; begin < n_rows; begin += block_rows) {
            stop_check.count(block_rows * trees_.roots.size());
            for (const std::int32_t root : trees_.roots) {
                block.start(begin, std::min(block_rows, n_rows - begin), root);
                // Each pass takes every row to the next node that counts for something.
                while (advance(rows, block)) {
                    for (const std::size_t i : block.at) {
                        const double* beta = trees_.parameters.data() + block.node[i] *
                                                                            trees_.shape.n_states *
                                                                            trees_.shape.width;
                        log_odds_of(beta, trees_.shape, rows, begin + i, block.odds.F.data() + i);
                    }
                    block.odds.evaluate(block.at.back() + 1);
                    for (const std::size_t i : block.at) {
                        const double weight = trees_.weight[block.node[i]];
                        block.odds.add(i, weight, probabilities + (begin + i) * m);
                    }
                }
            }
        }
    }

  private:
    // Some rows on their way down a tree.
    struct Block {
        explicit Block(std::size_t n_states) : node(block_rows), odds(n_states) {}

        void start(std::size_t first, std::size_t count, std::int32_t root) {
            begin = first;
            started = false;
            at.resize(count);
            std::iota(at.begin(), at.end(), std::size_t{0});
            std::fill(node.begin(), node.end(), static_cast<std::size_t>(root));
        }

        std::size_t begin = 0;
        bool started = false;
        std::vector<std::size_t> at;    // the rows that have not reached their end
        std::vector<std::size_t> node;  // where each is
        BlockOdds odds;
    };

    std::size_t next(std::size_t node, const NewRows& rows, std::size_t row) const {
        return router_.child(node,
                             rows.value(row, static_cast<std::size_t>(router_.attribute(node))));
    }

    // Takes the rows to their next nodes that count; those that have none are done. False if all
    // are.
    bool advance(const NewRows& rows, Block& block) const {
        std::size_t kept = 0;
        for (const std::size_t i : block.at) {
            std::size_t& node = block.node[i];
            bool more = !block.started || !router_.is_leaf(node);
            if (more && block.started) node = next(node, rows, block.begin + i);
            while (more && !(trees_.weight[node] > 0.0)) {
                more = !router_.is_leaf(node);
                if (more) node = next(node, rows, block.begin + i);
            }
            if (more) block.at[kept++] = i;
        }
        block.at.resize(kept);
        block.started = true;
        return kept > 0;
    }

    FittedTrees trees_;
    Router router_;
};

}  // namespace caltree
