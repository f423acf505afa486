// Dealing the rows of a node out to its children without disturbing their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/data.hpp"
#include "tree/structure.hpp"

namespace caltree {

// The child of `node`, counted from its first, to which `row` goes.
inline std::uint32_t branch_of(const Structure& tree, const Columns& columns, std::size_t node,
                               Row row) {
    const Column& column = columns.columns[static_cast<std::size_t>(tree.attribute[node])];
    const std::uint32_t code = column.codes[row];
    return column.numeric ? static_cast<std::uint32_t>(code > tree.cut[node]) : code;
}

// Stably sorts `rows` by branch; `starts` (n_branches + 1 entries) receives where each begins.
template <class Branch>
void partition(std::span<Row> rows, std::size_t n_branches, Branch&& branch,
               std::vector<Row>& scratch, std::vector<std::size_t>& starts) {
    scratch.resize(std::max(scratch.size(), rows.size()));
    starts.assign(n_branches + 1, 0);
    if (n_branches == 2) {
        std::size_t left = 0;
        std::size_t right = 0;
        for (const Row row : rows) {
            // Written without a branch: which way a row goes cannot be foretold.
            const std::size_t goes_right = branch(row);
            rows[left] = row;
            scratch[right] = row;
            left += 1 - goes_right;
            right += goes_right;
        }
        std::copy_n(scratch.begin(), right, rows.begin() + static_cast<std::ptrdiff_t>(left));
        starts[1] = left;
        starts[2] = rows.size();
        return;
    }
    for (const Row row : rows) ++starts[branch(row) + 1];
    for (std::size_t b = 0; b < n_branches; ++b) starts[b + 1] += starts[b];
    std::vector<std::size_t> next(starts.begin(), starts.end() - 1);
    for (const Row row : rows) scratch[next[branch(row)]++] = row;
    std::copy_n(scratch.begin(), rows.size(), rows.begin());
}

}  // namespace caltree
