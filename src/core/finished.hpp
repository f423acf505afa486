// The nodes of a tree that stay, renumbered.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "models.hpp"
#include "structure.hpp"

namespace caltree {

struct FinishedTree {
    Structure tree;
    std::vector<double> coefficients;
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

// Nodes of which `is_inner` is false become leaves; what was below them goes. The others stay in
// their order, so that children still come after their parents and side by side.
template <class IsInner>
FinishedTree finished(const Structure& from, const NodeModels& models, IsInner&& is_inner) {
    const std::size_t width = models.coefficients.size() / from.size();
    FinishedTree result;
    Structure& to = result.tree;
    std::vector<std::int32_t> index(from.size(), -1);
    for (std::size_t v = 0; v < from.size(); ++v) {
        const bool kept = v == 0 || index[static_cast<std::size_t>(from.parent[v])] >= 0;
        const auto parent = v == 0 ? v : static_cast<std::size_t>(from.parent[v]);
        if (!kept || (v > 0 && !is_inner(parent))) continue;
        const std::size_t at = to.add_leaves(v == 0 ? -1 : index[parent], 1);
        index[v] = static_cast<std::int32_t>(at);
        to.n_rows[at] = from.n_rows[v];
        const double* row = models.coefficients.data() + v * width;
        result.coefficients.insert(result.coefficients.end(), row, row + width);
        if (v > 0 && static_cast<std::size_t>(from.first_child[parent]) == v) {
            to.first_child[static_cast<std::size_t>(index[parent])] = index[v];
        }
        if (is_inner(v)) copy_split(from, v, to, at);
    }
    return result;
}

}  // namespace caltree
