// Fitted regression trees and stumps as plain arrays, and their predictions.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "tree/ways.hpp"

namespace caltree {

// One entry per node; the children of a node stand side by side, behind it.
template <template <class> class Entries>
struct RegressionNodes {
    Entries<std::int32_t> attribute;    // -1 in a leaf
    Entries<std::int32_t> category;     // it goes to the first child, all others to the second;
                                        // -1: each category goes to a child of its own
    Entries<double> cut;                // numbers below it go to the first child, NaN if nominal
    Entries<std::int32_t> first_child;  // 0 in a leaf
    Entries<std::int32_t> n_children;   // 0 in a leaf
    Entries<double> share;              // of the rows without a value, that which a child gets
    Entries<double> value;
    Entries<std::int32_t> roots;  // one per tree
};

template <class T>
using Growing = std::vector<T>;
template <class T>
using Borrowed = std::span<const T>;

using BorrowedRegressions = RegressionNodes<Borrowed>;

// Weights and responses of all rows of a table, and a place for what is predicted for them.
struct Regression {
    std::span<const double> weight;
    std::span<const double> response;
    std::span<double> predicted;
};

// The child of a value, counted from 0; -1 for a missing one.
inline std::int32_t branch(double value, double cut, std::int32_t category) {
    if (std::isnan(value)) return -1;
    if (!std::isnan(cut)) return value >= cut ? 1 : 0;
    const auto code = static_cast<std::int32_t>(value);
    if (category < 0) return code;
    return code == category ? 0 : 1;
}

struct RegressionTrees : RegressionNodes<Growing> {
    std::size_t add_leaves(std::size_t count, double of_value) {
        const std::size_t first = value.size();
        attribute.resize(first + count, -1);
        category.resize(first + count, -1);
        cut.resize(first + count, std::numeric_limits<double>::quiet_NaN());
        first_child.resize(first + count, 0);
        n_children.resize(first + count, 0);
        share.resize(first + count, 0.0);
        value.resize(first + count, of_value);
        return first;
    }

    std::size_t add_tree(double of_value) {
        const std::size_t root = add_leaves(1, of_value);
        roots.push_back(static_cast<std::int32_t>(root));
        return root;
    }

    void set_children(std::size_t node, std::size_t of_attribute, std::size_t first,
                      std::size_t count) {
        attribute[node] = static_cast<std::int32_t>(of_attribute);
        first_child[node] = static_cast<std::int32_t>(first);
        n_children[node] = static_cast<std::int32_t>(count);
    }

    BorrowedRegressions view() const {
        return {attribute, category, cut, first_child, n_children, share, value, roots};
    }
};

// What a tree says about a row. A row without a value goes to all children, by their shares.
inline double predict(const BorrowedRegressions& trees, std::size_t node, const Table& table,
                      std::size_t row) {
    while (trees.attribute[node] >= 0) {
        const auto a = static_cast<std::size_t>(trees.attribute[node]);
        const std::int32_t b = branch(table.column(a)[row], trees.cut[node], trees.category[node]);
        const auto first = static_cast<std::size_t>(trees.first_child[node]);
        if (b < 0) {
            double sum = 0.0;
            const auto count = static_cast<std::size_t>(trees.n_children[node]);
            for (std::size_t child = first; child < first + count; ++child) {
                const double share = trees.share[child];
                if (share > 0.0) sum += share * predict(trees, child, table, row);
            }
            return sum;
        }
        node = first + static_cast<std::size_t>(b);
    }
    return trees.value[node];
}

}  // namespace caltree
