// The nodes of a tree that stay, renumbered.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tree/fitted_nodes.hpp"
#include "tree/structure.hpp"

namespace caltree {

struct CollapsedTree {
    Structure tree;
    std::vector<double> parameters;
    std::vector<double> weight;  // what the node's model counts for in what the tree says
};

// A tree says several things, and each counts for its share: what it does at some levels, of which
// each splits the nodes of at least some rank.
class Levels {
  public:
    // rank: one per node, not above that of its parent; lowest and share: one per level. A level
    // without a share is left out.
    Levels(const Structure& tree, std::span<const double> rank, std::span<const double> lowest,
           std::span<const double> shares)
        : tree_(tree), rank_(rank), lowest_(lowest), shares_(shares) {}

    // Whether any level goes below the node.
    bool is_inner(std::size_t node) const {
        bool found = false;
        for (std::size_t k = 0; k < shares_.size() && !found; ++k) {
            found = shares_[k] > 0.0 && goes_below(k, node);
        }
        return found;
    }

    // The shares of the levels that end here.
    double weight(std::size_t node) const {
        double sum = 0.0;
        for (std::size_t k = 0; k < shares_.size(); ++k) {
            const bool reached =
                node == 0 || goes_below(k, static_cast<std::size_t>(tree_.parent[node]));
            if (reached && !goes_below(k, node)) sum += shares_[k];
        }
        return sum;
    }

    // The shares of the levels that go below the node.
    double share_below(std::size_t node) const {
        double sum = 0.0;
        for (std::size_t k = 0; k < shares_.size(); ++k) {
            if (goes_below(k, node)) sum += shares_[k];
        }
        return sum;
    }

  private:
    bool goes_below(std::size_t level, std::size_t node) const {
        return !tree_.is_leaf(node) && rank_[node] >= lowest_[level];
    }

    const Structure& tree_;
    std::span<const double> rank_, lowest_, shares_;
};

// What the splits on each attribute gain on held-out rows, each as far as it counts. Splits on
// scores, which follow the attributes, are left out.
inline std::vector<double> held_out_gains(const Structure& tree, const FittedNodes& nodes,
                                          const Levels& levels, std::size_t n_attributes) {
    std::vector<double> result(n_attributes, 0.0);
    for (std::size_t v = 0; v < tree.size(); ++v) {
        const auto a = static_cast<std::size_t>(tree.attribute[v]);
        if (tree.is_leaf(v) || a >= n_attributes) continue;
        double gain = nodes.held_out_error[v];
        for (std::int32_t b = 0; b < tree.n_children[v]; ++b) {
            gain -= nodes.held_out_error[static_cast<std::size_t>(tree.first_child[v] + b)];
        }
        result[a] += levels.share_below(v) * gain;
    }
    return result;
}

inline void copy_split(const Structure& from, std::size_t v, Structure& to, std::size_t at) {
    to.attribute[at] = from.attribute[v];
    to.threshold[at] = from.threshold[v];
    to.n_children[at] = from.n_children[v];
    to.gain[at] = from.gain[v];
    to.missing[at] = from.missing[v];
    to.missing_rows[at] = from.missing_rows[v];
    if (from.table[v] < 0) return;
    const std::int32_t* table = from.branches.data() + from.table[v];
    const auto n_categories = static_cast<std::size_t>(from.table_size[v]);
    std::copy_n(table, n_categories, to.add_table(at, n_categories, 0));
}

// Nodes that no level goes below become leaves; what was below them goes. The others are put in
// order depth first: behind a node's children stand all nodes below the first child, then those
// below the next one.
inline CollapsedTree collapse(const Structure& from, const FittedNodes& nodes,
                              const Levels& levels) {
    const std::size_t width = nodes.parameters.size() / from.size();
    CollapsedTree result;
    Structure& to = result.tree;
    std::vector<std::size_t> origin;  // by new node: the old one
    const auto add = [&](std::size_t v, std::int32_t parent) {
        const std::size_t at = to.add_leaves(parent, 1);
        origin.push_back(v);
        to.n_rows[at] = from.n_rows[v];
        result.weight.push_back(levels.weight(v));
        const double* row = nodes.parameters.data() + v * width;
        result.parameters.insert(result.parameters.end(), row, row + width);
    };
    add(0, -1);
    std::vector<std::size_t> pending{0};
    while (!pending.empty()) {
        const std::size_t at = pending.back(), v = origin[at];
        pending.pop_back();
        if (!levels.is_inner(v)) continue;
        const auto first = static_cast<std::size_t>(from.first_child[v]);
        const auto n_children = static_cast<std::size_t>(from.n_children[v]);
        const std::size_t begin = to.size();
        to.first_child[at] = static_cast<std::int32_t>(begin);
        for (std::size_t b = 0; b < n_children; ++b) {
            add(first + b, static_cast<std::int32_t>(at));
        }
        for (std::size_t b = n_children; b-- > 0;) pending.push_back(begin + b);
    }
    // Tables stand in the order of the nodes.
    for (std::size_t at = 0; at < to.size(); ++at) {
        if (to.first_child[at] >= 0) copy_split(from, origin[at], to, at);
    }
    return result;
}

}  // namespace caltree
