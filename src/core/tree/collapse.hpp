// The nodes of a tree that stay, renumbered.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tree/fitted_nodes.hpp"
#include "tree/structure.hpp"

namespace caltree {

struct CollapsedTree {
    Structure tree;
    std::vector<double> parameters;
    std::vector<double> weight;  // what the node's model counts for in what the tree says
};

// A tree says several things, and each counts for its share: what it would if nodes of fewer rows
// than a size were leaves, for each size, and what it does when pruned.
template <class IsInner>
class SizeWeights {
  public:
    // One share a size, and one for the pruned tree; a level without a share is left out.
    SizeWeights(const Structure& tree, std::span<const double> sizes,
                std::span<const double> shares, IsInner is_inner_when_pruned)
        : tree_(tree), sizes_(sizes), shares_(shares), pruned_(std::move(is_inner_when_pruned)) {}

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

  private:
    bool goes_below(std::size_t level, std::size_t node) const {
        if (tree_.is_leaf(node)) return false;
        return level < sizes_.size() ? tree_.n_rows[node] >= sizes_[level] : pruned_(node);
    }

    const Structure& tree_;
    std::span<const double> sizes_, shares_;
    IsInner pruned_;
};

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

// Nodes that no level goes below become leaves; what was below them goes. The others stay in their
// order, so that children still come after their parents and side by side.
template <class IsInner>
CollapsedTree collapse(const Structure& from, const FittedNodes& nodes,
                       const SizeWeights<IsInner>& sizes) {
    const std::size_t width = nodes.parameters.size() / from.size();
    CollapsedTree result;
    Structure& to = result.tree;
    std::vector<std::int32_t> index(from.size(), -1);
    for (std::size_t v = 0; v < from.size(); ++v) {
        const bool kept = v == 0 || index[static_cast<std::size_t>(from.parent[v])] >= 0;
        const auto parent = v == 0 ? v : static_cast<std::size_t>(from.parent[v]);
        if (!kept || (v > 0 && !sizes.is_inner(parent))) continue;
        const std::size_t at = to.add_leaves(v == 0 ? -1 : index[parent], 1);
        index[v] = static_cast<std::int32_t>(at);
        to.n_rows[at] = from.n_rows[v];
        result.weight.push_back(sizes.weight(v));
        const double* row = nodes.parameters.data() + v * width;
        result.parameters.insert(result.parameters.end(), row, row + width);
        if (v > 0 && static_cast<std::size_t>(from.first_child[parent]) == v) {
            to.first_child[static_cast<std::size_t>(index[parent])] = index[v];
        }
        if (sizes.is_inner(v)) copy_split(from, v, to, at);
    }
    return result;
}

}  // namespace caltree
