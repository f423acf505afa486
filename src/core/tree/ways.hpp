// The ways of new rows down trees, several rows side by side.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "data/columns.hpp"
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

// Where rows go, borrowed: one entry per node.
struct Routes {
    std::span<const std::int32_t> attribute;  // -1 in a leaf
    std::span<const double> threshold;        // numeric: values above it go to the second child
    std::span<const std::int32_t> first_child;
    std::span<const std::int32_t> missing;       // the child of missing values
    std::span<const std::int32_t> table;         // nominal: where the node begins in `branches`
    std::span<const std::int32_t> branches;      // by category: the child
    std::span<const std::int32_t> n_categories;  // by attribute; 0: numeric
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

// The attributes and scores of some rows, `width` a row, side by side.
inline void copy_rows(const NewRows& rows, std::size_t begin, std::size_t count, std::size_t width,
                      double* values) {
    for (std::size_t c = 0; c < width; ++c) {
        for (std::size_t i = 0; i < count; ++i) values[i * width + c] = rows.value(begin + i, c);
    }
}

// How many categories the split of a node divides; 0 of a numeric one, and of a leaf.
inline std::uint32_t n_categories_of(const Routes& routes, std::size_t node) {
    const std::int32_t a = routes.attribute[node];
    const bool known = a >= 0 && static_cast<std::size_t>(a) < routes.n_categories.size();
    return known ? static_cast<std::uint32_t>(routes.n_categories[static_cast<std::size_t>(a)]) : 0;
}

// Nodes one after another. Not std::views::iota, which Clang below 16 cannot read in libstdc++.
class NodeRange {
  public:
    struct Iterator {
        std::size_t node;
        std::size_t operator*() const { return node; }
        Iterator& operator++() {
            ++node;
            return *this;
        }
        bool operator==(const Iterator&) const = default;
    };

    NodeRange(std::size_t first, std::size_t count) : first_(first), count_(count) {}
    [[nodiscard]] Iterator begin() const { return {first_}; }
    [[nodiscard]] Iterator end() const { return {first_ + count_}; }

  private:
    std::size_t first_;
    std::size_t count_;
};

// The children of a node that any row can reach, and those between them.
inline NodeRange children_of(const Routes& routes, std::size_t node) {
    std::int32_t count = routes.attribute[node] < 0 ? 0 : 2;
    for (std::uint32_t c = 0; c < n_categories_of(routes, node); ++c) {
        const auto at = static_cast<std::size_t>(routes.table[node]) + c;
        count = std::max({count, routes.branches[at] + 1, routes.missing[node] + 1});
    }
    const auto first = static_cast<std::size_t>(count > 0 ? routes.first_child[node] : 0);
    return {first, static_cast<std::size_t>(count)};
}

// Where rows go, a node in 16 bytes. Rows go down a tree side by side, so that none waits for the
// memory of another.
class Ways {
  public:
    // So many at a time.
    static constexpr std::size_t lanes = 8;

    Ways(const Routes& routes, std::span<const std::int32_t> roots) {
        nodes_.reserve(routes.attribute.size());
        for (std::size_t v = 0; v < routes.attribute.size(); ++v) nodes_.push_back(node(routes, v));
        std::vector<bool> has_categories(nodes_.size());
        for (std::size_t v = nodes_.size(); v-- > 0;) {
            has_categories[v] = nodes_[v].has_categories;
            for (const std::size_t child : children_of(routes, v)) {
                has_categories[v] = has_categories[v] || has_categories[child];
            }
        }
        for (const std::int32_t root : roots) {
            roots_.push_back({root, has_categories[static_cast<std::size_t>(root)]});
        }
    }

    std::size_t n_trees() const { return roots_.size(); }

    // Writes the leaves of some rows in a tree. The values stand side by side, `width` a row; they
    // and the leaves have room for a multiple of `lanes`.
    void leaves(std::size_t tree, const double* values, std::size_t width, std::size_t count,
                std::int32_t* leaves) const {
        if (roots_[tree].has_categories) {
            descend<true>(roots_[tree].node, values, width, count, leaves);
        } else {
            descend<false>(roots_[tree].node, values, width, count, leaves);
        }
    }

  private:
    // A leaf leads to itself. A nominal node has no threshold, but the place in `branches_` of the
    // number of its categories, their children, and the child of missing values.
    struct Node {
        union {
            double threshold;
            std::uint64_t table;
        };
        std::int32_t first_child;
        std::uint32_t column : 30, has_categories : 1, missing_is_second : 1;
    };
    static_assert(sizeof(Node) == 16);
    struct Root {
        std::int32_t node;
        bool has_categories;
    };

    Node node(const Routes& routes, std::size_t v) {
        const double endless = std::numeric_limits<double>::infinity();
        const auto self = static_cast<std::int32_t>(v);
        if (routes.attribute[v] < 0) return {{endless}, self, 0, 0, 0};
        const std::uint32_t n_categories = n_categories_of(routes, v);
        Node result{{routes.threshold[v] == only_missing ? endless : routes.threshold[v]},
                    routes.first_child[v],
                    static_cast<std::uint32_t>(routes.attribute[v]),
                    n_categories > 0,
                    routes.missing[v] == 1};
        if (n_categories > 0) {
            result.table = branches_.size();
            const auto from = routes.branches.begin() + routes.table[v];
            branches_.push_back(static_cast<std::int32_t>(n_categories));
            branches_.insert(branches_.end(), from, from + n_categories);
            branches_.push_back(routes.missing[v]);
        }
        return result;
    }

    template <bool has_categories>
    void descend(std::int32_t root, const double* values, std::size_t width, std::size_t count,
                 std::int32_t* leaves) const {
        for (std::size_t i = 0; i < count; i += lanes) {
            std::array<std::int32_t, lanes> at;
            at.fill(root);
            const double* row = values + i * width;
            for (bool moving = true; moving;) {
                std::int32_t moved = 0;
                for (std::size_t l = 0; l < lanes; ++l) {
                    const std::int32_t to = next<has_categories>(at[l], row + l * width);
                    moved |= to ^ at[l];
                    at[l] = to;
                }
                moving = moved != 0;
            }
            std::copy(at.begin(), at.end(), leaves + i);
        }
    }

    template <bool has_categories>
    std::int32_t next(std::int32_t from, const double* row) const {
        const Node& at = nodes_[static_cast<std::size_t>(from)];
        const double value = row[at.column];
        if constexpr (has_categories) {
            if (at.has_categories) {
                const std::int32_t* table = branches_.data() + at.table;
                const auto n_categories = static_cast<std::uint32_t>(table[0]);
                const std::size_t code = is_category(value, n_categories)
                                             ? static_cast<std::size_t>(value)
                                             : std::size_t{n_categories};
                return at.first_child + table[1 + code];
            }
        }
        const bool is_second =
            (value > at.threshold) | (std::isnan(value) & static_cast<bool>(at.missing_is_second));
        return at.first_child + static_cast<std::int32_t>(is_second);
    }

    std::vector<Node> nodes_;
    std::vector<std::int32_t> branches_;
    std::vector<Root> roots_;
};

}  // namespace caltree
