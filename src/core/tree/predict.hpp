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
#include "kernels/kernels.hpp"

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
            // The largest number stands for infinity, which JSON has not: all but missing values.
            const bool all_known = routes.threshold[v] == std::numeric_limits<double>::max();
            const double threshold =
                all_known ? std::numeric_limits<double>::infinity() : routes.threshold[v];
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

    // The next node on the way of a row.
    std::size_t next(std::size_t node, const Table& table, std::size_t row) const {
        const double* values = table.first + static_cast<std::ptrdiff_t>(row) * table.row_stride;
        return child(node, values[attribute(node) * table.column_stride]);
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

// A fitted tree, borrowed: coefficients n_nodes x m x (1 + n_scores). What it says is the sum of
// what the nodes on a row's way say, each times its weight.
struct FittedTree {
    Routes routes;
    std::span<const double> weight;  // one a node
    std::span<const double> coefficients;
    std::size_t n_classes, n_scores;
};

class Predictor {
  public:
    explicit Predictor(const FittedTree& tree) : tree_(tree), router_(tree.routes) {}

    std::int32_t leaf(const Table& table, std::size_t row) const {
        std::size_t node = 0;
        while (!router_.is_leaf(node)) node = router_.next(node, table, row);
        return static_cast<std::int32_t>(node);
    }

    // scores: column-major, table.n_rows x n_scores; offset: likewise, a column a log-odds, or
    // null; probabilities: row-major, n_rows x m.
    void probabilities(const Table& table, const double* scores, const double* offset,
                       double* probabilities) const {
        const std::size_t m = tree_.n_classes;
        const std::vector<double> models = state_models();
        std::fill_n(probabilities, table.n_rows * m, 0.0);
        Block block(m);
        for (std::size_t begin = 0; begin < table.n_rows; begin += block_rows) {
            block.start(begin, std::min(block_rows, table.n_rows - begin));
            // Each pass takes every row to the next node that counts for something.
            while (advance(table, block)) {
                const std::size_t columns = block.columns();
                for (const std::size_t i : block.at) {
                    const double* model =
                        models.data() + block.node[i] * columns * (tree_.n_scores + 1);
                    state(model, scores + begin + i, table.n_rows, columns, block.F.data() + i);
                    for (std::size_t j = 0; offset != nullptr && j < columns; ++j) {
                        block.F[j * block_rows + i] += offset[j * table.n_rows + begin + i];
                    }
                }
                block.evaluate();
                for (const std::size_t i : block.at) {
                    const double weight = tree_.weight[block.node[i]];
                    double* row = probabilities + (begin + i) * m;
                    for (std::size_t j = 0; j < m; ++j) {
                        row[j] += weight * block.p[j * block_rows + i];
                    }
                }
            }
        }
    }

  private:
    // For two classes the difference of the two rows is all that counts.
    std::vector<double> state_models() const {
        const std::size_t width = tree_.n_scores + 1;
        if (tree_.n_classes != 2) return {tree_.coefficients.begin(), tree_.coefficients.end()};
        std::vector<double> differences(router_.size() * width);
        for (std::size_t v = 0; v < router_.size(); ++v) {
            const double* rows = tree_.coefficients.data() + v * 2 * width;
            for (std::size_t t = 0; t < width; ++t) {
                differences[v * width + t] = rows[width + t] - rows[t];
            }
        }
        return differences;
    }

    void state(const double* model, const double* scores, std::size_t score_stride,
               std::size_t columns, double* F) const {
        for (std::size_t j = 0; j < columns; ++j) {
            double sum = *model++;
            for (std::size_t c = 0; c < tree_.n_scores; ++c) {
                sum += *model++ * scores[c * score_stride];
            }
            F[j * block_rows] = sum;
        }
    }

    // Some rows on their way down the tree.
    struct Block {
        explicit Block(std::size_t n_classes)
            : m(n_classes),
              node(block_rows),
              classes(m),
              F(columns() * block_rows),
              p(m * block_rows) {
            std::iota(classes.begin(), classes.end(), std::size_t{0});
        }

        std::size_t columns() const { return m == 2 ? 1 : m; }

        void start(std::size_t first, std::size_t count) {
            begin = first;
            started = false;
            at.resize(count);
            std::iota(at.begin(), at.end(), std::size_t{0});
            std::fill(node.begin(), node.end(), 0);
        }

        void evaluate() {
            const std::size_t padded = padded_rows(at.back() + 1);
            if (m == 2) {
                kernels().sigmoid(F.data(), p.data(), p.data() + block_rows, padded);
            } else {
                kernels().softmax(F.data(), {classes.data(), m}, block_rows, p.data(), padded);
            }
        }

        std::size_t m;
        std::size_t begin = 0;
        bool started = false;
        std::vector<std::size_t> at;    // the rows that have not reached their end
        std::vector<std::size_t> node;  // where each is
        std::vector<std::size_t> classes;
        std::vector<double> F, p;
    };

    // Takes the rows to their next nodes that count; those that have none are done. False if all
    // are.
    bool advance(const Table& table, Block& block) const {
        std::size_t kept = 0;
        for (const std::size_t i : block.at) {
            std::size_t& node = block.node[i];
            bool more = !block.started || !router_.is_leaf(node);
            if (more && block.started) node = router_.next(node, table, block.begin + i);
            while (more && !(tree_.weight[node] > 0.0)) {
                more = !router_.is_leaf(node);
                if (more) node = router_.next(node, table, block.begin + i);
            }
            if (more) block.at[kept++] = i;
        }
        block.at.resize(kept);
        block.started = true;
        return kept > 0;
    }

    FittedTree tree_;
    Router router_;
};

}  // namespace caltree
