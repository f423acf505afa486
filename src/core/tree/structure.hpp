// The shape of a tree: which attribute splits which node, and where its children are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace caltree {

// The threshold of a split that divides missing values from all others; JSON has no infinity.
inline constexpr double only_missing = std::numeric_limits<double>::max();

// Structure of arrays, one entry per node. The children of a node stand side by side, after it.
struct Structure {
    std::vector<std::int32_t> attribute;    // -1 in a leaf
    std::vector<std::uint32_t> cut;         // numeric: rows of code <= cut go to the first child
    std::vector<double> threshold;          // numeric: the value of that code
    std::vector<std::int32_t> parent;       // -1 at the root
    std::vector<std::int32_t> first_child;  // -1 in a leaf
    std::vector<std::int32_t> n_children;
    std::vector<double> n_rows;            // total weight of the training rows that reach the node
    std::vector<double> gain;              // what the split gains; 0 where that is of no use
    std::vector<std::int32_t> missing;     // the child, counted from the first, of missing values
    std::vector<double> missing_rows;      // weight of the training rows of which that was learned
    std::vector<std::int32_t> table;       // nominal: where the node begins in `branches`, else -1
    std::vector<std::int32_t> table_size;  // and how many categories it has there
    std::vector<std::int32_t> branches;    // by category: the child, counted from the first

    std::size_t size() const { return attribute.size(); }
    bool is_leaf(std::size_t node) const { return attribute[node] < 0; }

    // Adds the table of a nominal split, every category going to `branch` at first.
    std::int32_t* add_table(std::size_t node, std::size_t n_categories, std::int32_t branch) {
        table[node] = static_cast<std::int32_t>(branches.size());
        table_size[node] = static_cast<std::int32_t>(n_categories);
        branches.resize(branches.size() + n_categories, branch);
        return branches.data() + table[node];
    }

    // Returns the index of the first of `count` new leaves.
    std::size_t add_leaves(std::int32_t parent_node, std::size_t count) {
        const std::size_t first = size();
        const std::size_t total = first + count;
        attribute.resize(total, -1);
        cut.resize(total, 0);
        threshold.resize(total, 0.0);
        parent.resize(total, parent_node);
        first_child.resize(total, -1);
        n_children.resize(total, 0);
        n_rows.resize(total, 0.0);
        gain.resize(total, 0.0);
        missing.resize(total, 0);
        missing_rows.resize(total, 0.0);
        table.resize(total, -1);
        table_size.resize(total, 0);
        return first;
    }
};

}  // namespace caltree
