// Leaves and calibrated probabilities of new rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "columns.hpp"
#include "kernels.hpp"

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

// A fitted tree, borrowed: one entry a node, coefficients n_nodes x m x (1 + n_scores).
struct FittedTree {
    std::span<const std::int32_t> attribute;
    std::span<const double> threshold;
    std::span<const std::int32_t> first_child;
    std::span<const double> coefficients;
    std::span<const std::int32_t> n_categories;  // by attribute; 0: numeric
    std::span<const double> fills;
    std::size_t n_classes, n_scores;
};

class Predictor {
  public:
    explicit Predictor(const FittedTree& tree) : tree_(tree) {
        for (std::size_t v = 0; v < tree.attribute.size(); ++v) {
            nodes_.push_back({tree.threshold[v], tree.attribute[v], tree.first_child[v]});
        }
    }

    std::int32_t leaf(const Table& table, std::size_t row) const {
        const double* values = table.first + static_cast<std::ptrdiff_t>(row) * table.row_stride;
        std::int32_t node = 0;
        while (nodes_[static_cast<std::size_t>(node)].attribute >= 0) {
            node = child(nodes_[static_cast<std::size_t>(node)], values, table.column_stride);
        }
        return node;
    }

    // scores: column-major, table.n_rows x n_scores; probabilities: row-major, n_rows x m.
    void probabilities(const Table& table, const double* scores, double* probabilities) const {
        const std::size_t m = tree_.n_classes;
        const std::size_t columns = m == 2 ? 1 : m;
        const std::vector<double> models = state_models();
        std::vector<double> F(columns * block_rows);
        std::vector<double> p(m * block_rows);
        std::vector<std::size_t> classes(m);
        std::iota(classes.begin(), classes.end(), std::size_t{0});
        for (std::size_t begin = 0; begin < table.n_rows; begin += block_rows) {
            const std::size_t count = std::min(block_rows, table.n_rows - begin);
            for (std::size_t i = 0; i < count; ++i) {
                const auto node = static_cast<std::size_t>(leaf(table, begin + i));
                const double* model = models.data() + node * columns * (tree_.n_scores + 1);
                state(model, scores + begin + i, table.n_rows, columns, F.data() + i);
            }
            const std::size_t padded = padded_rows(count);
            if (m == 2) {
                kernels().sigmoid(F.data(), p.data(), p.data() + block_rows, padded);
            } else {
                kernels().softmax(F.data(), {classes.data(), m}, block_rows, p.data(), padded);
            }
            for (std::size_t i = 0; i < count; ++i) {
                double* row = probabilities + (begin + i) * m;
                for (std::size_t j = 0; j < m; ++j) row[j] = p[j * block_rows + i];
            }
        }
    }

  private:
    struct Node {
        double threshold;
        std::int32_t attribute, first_child;
    };

    std::int32_t child(const Node& node, const double* values, std::ptrdiff_t stride) const {
        const auto a = static_cast<std::size_t>(node.attribute);
        const double value = values[node.attribute * stride];
        if (tree_.n_categories[a] > 0) {
            const auto n_categories = static_cast<std::uint32_t>(tree_.n_categories[a]);
            const std::uint32_t code = category_code(value, n_categories, tree_.fills[a]);
            return node.first_child + static_cast<std::int32_t>(code);
        }
        const double known = std::isnan(value) ? tree_.fills[a] : value;
        return node.first_child + static_cast<std::int32_t>(known > node.threshold);
    }

    // For two classes the difference of the two rows is all that counts.
    std::vector<double> state_models() const {
        const std::size_t width = tree_.n_scores + 1;
        if (tree_.n_classes != 2) return {tree_.coefficients.begin(), tree_.coefficients.end()};
        std::vector<double> differences(nodes_.size() * width);
        for (std::size_t v = 0; v < nodes_.size(); ++v) {
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

    FittedTree tree_;
    std::vector<Node> nodes_;
};

}  // namespace caltree
