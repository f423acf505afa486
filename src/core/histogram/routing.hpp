// What trees that were grown level by level do with the rows of a chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/stop.hpp"
#include "histogram/chunk.hpp"

namespace caltree {

// The splits of all trees, one entry per node.
struct SplitTables {
    std::span<const std::int32_t> first;      // where each tree begins
    std::span<const std::int32_t> attribute;  // -1: rows stay
    std::span<const std::int32_t> cut;        // numeric: codes up to it go to the first child
    std::span<const std::int32_t> missing, first_child;
    std::span<const std::int32_t> table;  // nominal: where the node begins in `branches`, else -1
    std::span<const std::int32_t> branches;  // by category
    std::span<const std::int32_t> n_bins;    // by attribute

    Node next(const Chunk& chunk, std::size_t row, std::size_t tree, Node node) const {
        const std::size_t at = static_cast<std::size_t>(first[tree]) + node;
        if (attribute[at] < 0) return node;
        const auto a = static_cast<std::size_t>(attribute[at]);
        const std::size_t code = chunk.code(row, a);
        std::int32_t branch = missing[at];
        if (code != static_cast<std::size_t>(n_bins[a])) {
            branch = table[at] < 0 ? static_cast<std::int32_t>(code) > cut[at]
                                   : branches[static_cast<std::size_t>(table[at]) + code];
        }
        return static_cast<Node>(first_child[at] + branch);
    }
};

inline std::vector<Node> routed(const Chunk& chunk, const Positions& positions,
                                const SplitTables& splits) {
    std::vector<Node> result(positions.n_trees * positions.n_rows);
    for (std::size_t tree = 0; tree < positions.n_trees; ++tree) {
        check_stop();
        for (std::size_t row = 0; row < positions.n_rows; ++row) {
            result[tree * positions.n_rows + row] =
                splits.next(chunk, row, tree, positions.node(tree, row));
        }
    }
    return result;
}

// What the tree that did not see a row says about it, at several levels: n_levels x n_rows x
// n_states. `ancestor`: for each node of all trees the node that speaks for it at each level.
inline std::vector<float> held_out_predictions(const Chunk& chunk, Sight& sight,
                                               const Positions& positions,
                                               std::span<const std::int32_t> first,
                                               std::span<const std::int32_t> ancestor,
                                               std::size_t n_levels, const double* parameters) {
    const std::size_t n_rows = positions.n_rows;
    const std::size_t n_states = sight.n_states();
    std::vector<float> result(n_levels * n_rows * n_states, 0.0F);
    const auto write = [&](std::size_t level) {
        sight.predict();
        for (std::size_t i = 0; i < sight.size(); ++i) {
            float* to = result.data() + (level * n_rows + sight.row(i)) * n_states;
            for (std::size_t j = 0; j < n_states; ++j) {
                to[j] = static_cast<float>(sight.probability(i, j));
            }
        }
        sight.clear();
    };
    for (std::size_t level = 0; level < n_levels; ++level) {
        for (std::size_t row = 0; row < n_rows; ++row) {
            if (chunk.fold[row] == in_no_fold) continue;
            const std::size_t tree = std::size_t{chunk.fold[row]} + 1;
            const std::size_t leaf =
                static_cast<std::size_t>(first[tree]) + positions.node(tree, row);
            const auto node = static_cast<std::size_t>(ancestor[leaf * n_levels + level]);
            sight.add(chunk, row, parameters + node * sight.n_parameters());
            if (sight.is_full()) write(level);
        }
        write(level);
    }
    return result;
}

}  // namespace caltree
