// Bagged trees: the rows of each, and what its splits gain on the others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "data/data.hpp"
#include "data/random.hpp"
#include "tree/fitted_nodes.hpp"
#include "tree/structure.hpp"

namespace caltree {

// As many rows as there are, or as many whole groups, drawn with replacement.
struct Bootstrap {
    std::vector<double> weights;  // one per row: its own, times how often it was drawn
    std::vector<Row> in_bag, out_of_bag;
};

// The groups, if any, are the number of each row's group, of which there are n_groups.
inline Bootstrap bootstrap(const Data& data, Random& random,
                           std::span<const std::uint32_t> groups = {}, std::size_t n_groups = 0) {
    const std::size_t n = data.n_rows();
    const std::size_t n_drawn = groups.empty() ? n : n_groups;
    std::vector<double> drawn(n_drawn, 0.0);
    for (std::size_t draw = 0; draw < n_drawn; ++draw) drawn[random.below(n_drawn)] += 1.0;
    Bootstrap result;
    result.weights.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
        result.weights[i] = drawn[groups.empty() ? i : groups[i]];
        const Row row = static_cast<Row>(i);
        (result.weights[i] > 0.0 ? result.in_bag : result.out_of_bag).push_back(row);
        result.weights[i] *= data.weight(row);
    }
    return result;
}

// Some of the numbers below n, ascending; all of them without drawing any.
inline std::vector<std::size_t> draw_some(std::size_t n, std::size_t n_drawn, Random& random) {
    std::vector<std::size_t> result(n);
    std::iota(result.begin(), result.end(), std::size_t{0});
    if (n_drawn >= n) return result;
    for (std::size_t i = 0; i < n_drawn; ++i) {
        std::swap(result[i], result[i + random.below(n - i)]);
    }
    result.resize(n_drawn);
    std::sort(result.begin(), result.end());
    return result;
}

// What a split gains on the rows that it was not made for; less than nothing, if it fits noise.
inline void judge_splits(Structure& tree, const FittedNodes& models) {
    for (std::size_t v = 0; v < tree.size(); ++v) {
        if (tree.is_leaf(v)) continue;
        tree.gain[v] = models.held_out_error[v];
        for (std::int32_t b = 0; b < tree.n_children[v]; ++b) {
            tree.gain[v] -=
                models.held_out_error[static_cast<std::size_t>(tree.first_child[v] + b)];
        }
    }
}

}  // namespace caltree
