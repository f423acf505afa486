// Growing the structure of a tree on attributes and classes; scores play no part here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "data/stop.hpp"
#include "published/split.hpp"
#include "tree/partition.hpp"
#include "tree/structure.hpp"

namespace caltree {

struct GrowSettings {
    double min_samples_split = 16.0;
    double min_samples_leaf = 2.0;
    std::size_t max_depth = std::numeric_limits<std::size_t>::max();
};

template <class Counting>
class Grower {
  public:
    Grower(const Data& data, const Counting& counting, std::span<const Row> rows,
           const GrowSettings& settings)
        : data_(data),
          counting_(counting),
          settings_(settings),
          entries_(data.n_rows(), data.n_classes),
          rows_(rows.begin(), rows.end()),
          finder_(data, entries_, counting, total_weight(data), settings.min_samples_leaf),
          counts_(data.n_classes),
          branch_(data.n_rows()) {
        sort_by_every_attribute();
    }

    Structure grow() {
        tree_.add_leaves(-1, 1);
        std::vector<Pending> pending{{0, 0, rows_.size(), 0}};
        while (!pending.empty()) {
            const Pending next = pending.back();
            pending.pop_back();
            grow_node(next, pending);
        }
        return std::move(tree_);
    }

  private:
    struct Pending {
        std::size_t node, begin, end, depth;
    };

    // Counting sort by code: linear, and stable.
    void sort_by_every_attribute() {
        const auto& columns = data_.columns.columns;
        for (std::size_t a = 0; a < columns.size(); ++a) {
            if (columns[a].numeric) numeric_.push_back(a);
        }
        place_.resize(columns.size());
        orders_.resize(numeric_.size() * rows_.size());
        std::vector<Row> ends;
        for (std::size_t k = 0; k < numeric_.size(); ++k) {
            check_stop();
            const Column& column = columns[numeric_[k]];
            place_[numeric_[k]] = k * rows_.size();
            ends.assign(column.n_codes + std::size_t{1}, 0);
            for (const Row row : rows_) ++ends[column.codes[row] + std::size_t{1}];
            for (std::size_t code = 1; code < ends.size(); ++code) ends[code] += ends[code - 1];
            const std::span<Entries::Entry> order = sorted(numeric_[k], 0, rows_.size());
            for (const Row row : rows_) {
                order[ends[column.codes[row]]++] = entries_.make(row, data_.labels[row]);
            }
            mark_cuts(column, ends, order);
        }
    }

    // The entries of rows_[begin..end) by one numeric attribute.
    std::span<Entries::Entry> sorted(std::size_t attribute, std::size_t begin, std::size_t end) {
        return {orders_.data() + place_[attribute] + begin, end - begin};
    }

    // A cut may follow the last row of a value if the next value is far enough away.
    static void mark_cuts(const Column& column, const std::vector<Row>& ends,
                          std::span<Entries::Entry> order) {
        std::size_t last = column.n_codes;  // the last code that rows have; none so far
        for (std::size_t code = 0; code < column.n_codes; ++code) {
            if (ends[code] == (code == 0 ? 0 : ends[code - 1])) continue;
            if (last < code && column.far_apart(static_cast<std::uint32_t>(last),
                                                static_cast<std::uint32_t>(code))) {
                order[ends[last] - 1] |= Entries::cut_may_follow;
            }
            last = code;
        }
    }

    void grow_node(const Pending& at, std::vector<Pending>& pending) {
        const std::span<Row> rows(rows_.data() + at.begin, at.end - at.begin);
        counts_.clear();
        for (const Row row : rows) counts_.add(data_.labels[row], counting_.weight(row));
        tree_.n_rows[at.node] = static_cast<double>(counts_.total);
        if (at.depth >= settings_.max_depth || !may_split()) return;
        const Split split = finder_.find(
            rows, counts_, [&](std::size_t a) { return sorted(a, at.begin, at.end); },
            at.node == 0);
        if (!split.found()) return;
        apply(split, at, rows, pending);
    }

    bool may_split() const {
        return static_cast<double>(counts_.total) + tolerance >= settings_.min_samples_split;
    }

    void apply(const Split& split, const Pending& at, std::span<Row> rows,
               std::vector<Pending>& pending) {
        const Column& column = data_.columns.columns[static_cast<std::size_t>(split.attribute)];
        const std::size_t n_branches = column.numeric ? 2 : column.n_codes;
        const std::size_t first = tree_.add_leaves(static_cast<std::int32_t>(at.node), n_branches);
        tree_.attribute[at.node] = split.attribute;
        tree_.cut[at.node] = split.cut;
        if (column.numeric) tree_.threshold[at.node] = column.value(split.cut);
        tree_.first_child[at.node] = static_cast<std::int32_t>(first);
        tree_.n_children[at.node] = static_cast<std::int32_t>(n_branches);
        send_missing(column, at.node);
        for (const Row row : rows) branch_[row] = branch_of(tree_, data_.columns, at.node, row);
        partition(rows, n_branches, [this](Row row) { return branch_[row]; }, scratch_, starts_);
        for (const std::size_t a : numeric_) {
            partition(
                sorted(a, at.begin, at.end), n_branches,
                [this](Entries::Entry entry) { return branch_[entries_.row(entry)]; }, scratch_,
                starts_);
        }
        for (std::size_t b = n_branches; b-- > 0;) {
            if (starts_[b] == starts_[b + 1]) continue;
            pending.push_back(
                {first + b, at.begin + starts_[b], at.begin + starts_[b + 1], at.depth + 1});
        }
    }

    // A missing value goes where the value that stands in for it goes.
    void send_missing(const Column& column, std::size_t node) {
        if (column.numeric) {
            tree_.missing[node] = column.fill > tree_.threshold[node] ? 1 : 0;
            return;
        }
        tree_.missing[node] = static_cast<std::int32_t>(column.fill);
        std::int32_t* branches = tree_.add_table(node, column.n_codes, 0);
        std::iota(branches, branches + column.n_codes, 0);
    }

    const Data& data_;
    const Counting& counting_;
    GrowSettings settings_;
    Entries entries_;
    std::vector<Row> rows_;
    std::vector<std::size_t> numeric_;    // the numeric attributes
    std::vector<std::size_t> place_;      // by attribute: where its order begins in orders_
    std::vector<Entries::Entry> orders_;  // one block: memory goes back to the system at once
    SplitFinder<Counting> finder_;
    ClassCounts<Counting> counts_;
    std::vector<std::uint32_t> branch_;  // by row: the branch of the split being applied
    std::vector<Row> scratch_;
    std::vector<std::size_t> starts_;
    Structure tree_;
};

inline Structure grow(const Data& data, std::span<const Row> rows, const GrowSettings& settings) {
    if (data.weighted()) {
        const WeightedCounting counting(data.weights);
        return Grower<WeightedCounting>(data, counting, rows, settings).grow();
    }
    const UnitCounting counting(rows.size());
    return Grower<UnitCounting>(data, counting, rows, settings).grow();
}

}  // namespace caltree
