// An encoded table, made ready for many regressions on it: each numeric attribute is sorted once.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "data/columns.hpp"
#include "data/data.hpp"
#include "kernels/kernels.hpp"
#include "tree/ways.hpp"

namespace caltree {

// Some rows, and the order of each numeric attribute over them. Where most rows have one value, a
// single place behind the rows of the table stands for all of these: their evidence is what the
// others leave of the whole. An index of 16 bits does for most tables, and takes half the memory.
template <class Index>
struct Part {
    std::span<const Row> rows;              // ascending
    const Ranked<Index>* ranked = nullptr;  // `rows.size()` places per attribute, of which
    const std::size_t* known = nullptr;     // so many are taken: rows without a value are left out

    std::span<const Ranked<Index>> order(std::size_t numeric) const {
        return {ranked + numeric * rows.size(), known[numeric]};
    }
};

template <class Index>
class Presorted {
  public:
    // The table is borrowed. Numbers of categories are 0 for numeric attributes.
    Presorted(const Table& table, std::span<const std::int32_t> n_categories)
        : table_(table), rows_(table.n_rows) {
        for (std::size_t a = 0; a < n_categories.size(); ++a) {
            std::vector<std::size_t>& kind = n_categories[a] == 0 ? numeric_ : nominal_;
            place_.push_back(kind.size());
            kind.push_back(a);
        }
        for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i] = static_cast<Row>(i);
        ranked_.resize(numeric_.size() * table.n_rows);
        changes_.resize(ranked_.size());
        for (std::size_t k = 0; k < numeric_.size(); ++k) sort(k);
        number_cells(n_categories);
    }
    Presorted(const Presorted&) = delete;
    Presorted& operator=(const Presorted&) = delete;

    std::size_t n_rows() const { return rows_.size(); }
    std::size_t n_attributes() const { return numeric_.size() + nominal_.size(); }
    std::span<const std::size_t> numeric() const { return numeric_; }
    std::span<const std::size_t> nominal() const { return nominal_; }
    // Whether an attribute is numeric, and its place among those of its kind.
    bool is_numeric(std::size_t attribute) const {
        const std::size_t place = place_[attribute];
        return place < numeric_.size() && numeric_[place] == attribute;
    }
    std::size_t place(std::size_t attribute) const { return place_[attribute]; }

    // Whether one place stands for the rows of the most frequent value, and which row it has.
    bool has_common(std::size_t numeric) const { return !std::isnan(common_[numeric]); }
    std::size_t common_row(std::size_t numeric) const { return rows_.size() + numeric; }
    Index common_rank(std::size_t numeric) const { return common_rank_[numeric]; }
    std::size_t n_places() const { return rows_.size() + numeric_.size(); }

    // Whether all rows of a part have a value.
    bool all_known(const Part<Index>& part, std::size_t numeric) const {
        return has_common(numeric) || part.known[numeric] == part.rows.size();
    }

    Part<Index> everything() const { return {rows_, ranked_.data(), known_.data()}; }
    const Table& table() const { return table_; }
    ColumnView column(std::size_t attribute) const { return table_.column(attribute); }

    // By place of a numeric attribute's order: 1 where the next value is another one, or else 0.
    std::span<const std::uint8_t> changes(std::size_t numeric) const {
        return {changes_.data() + numeric * rows_.size(), known_[numeric]};
    }

    // The values of an attribute around one of its changes over a part.
    std::array<double, 2> around(const Part<Index>& part, std::size_t attribute,
                                 std::size_t change) const {
        const std::span<const Ranked<Index>> order = part.order(place_[attribute]);
        std::size_t i = 0;
        while (order[i].rank == order[i + 1].rank || change-- > 0) ++i;
        const ColumnView column = table_.column(attribute);
        const auto value = [&](std::size_t row) {
            return row < rows_.size() ? column[row] : common_[place_[attribute]];
        };
        return {value(order[i].row), value(order[i + 1].row)};
    }

    // The cells of a row, one a nominal attribute. Those of an attribute stand side by side: one a
    // category, and then one for missing values.
    const std::uint32_t* cells(Row row) const { return cells_.data() + row * nominal_.size(); }
    std::size_t n_cells() const { return first_cell_.back(); }
    std::size_t first_cell(std::size_t nominal) const { return first_cell_[nominal]; }
    std::size_t n_categories(std::size_t nominal) const {
        return first_cell_[nominal + 1] - first_cell_[nominal] - 1;
    }

  private:
    void sort(std::size_t k) {
        const ColumnView column = table_.column(numeric_[k]);
        keyed_.clear();
        for (const Row row : rows_) {
            // Adding zero turns -0 into +0: the two are one value.
            if (!std::isnan(column[row])) {
                keyed_.push_back({detail::sortable(column[row] + 0.0), row});
            }
        }
        common_.push_back(no_value);
        common_rank_.push_back(0);
        if (const std::uint64_t key = most_frequent(); is_common(key)) {
            common_.back() = detail::from_sortable(key);
            std::erase_if(keyed_, [=](const detail::Keyed& each) { return each.key == key; });
            keyed_.push_back({key, static_cast<Row>(common_row(k))});
        }
        if (!keyed_.empty()) detail::radix_sort(keyed_, scratch_);
        Ranked<Index>* to = ranked_.data() + k * rows_.size();
        const std::size_t n = keyed_.size();
        Index rank = 0;
        for (std::size_t i = 0; i < n; ++i) {
            if (i > 0 && keyed_[i].key != keyed_[i - 1].key) ++rank;
            if (keyed_[i].row == common_row(k)) common_rank_.back() = rank;
            to[i] = {static_cast<Index>(keyed_[i].row), rank};
        }
        std::uint8_t* changes = changes_.data() + k * rows_.size();
        for (std::size_t i = 0; i + 1 < n; ++i) changes[i] = to[i].rank < to[i + 1].rank;
        known_.push_back(n);
    }

    // The value that more than half of the rows have, if there is one (Boyer and Moore).
    std::uint64_t most_frequent() const {
        std::uint64_t key = 0;
        std::size_t lead = 0;
        for (const detail::Keyed& each : keyed_) {
            key = lead == 0 ? each.key : key;
            lead = each.key == key ? lead + 1 : lead - 1;
        }
        return key;
    }

    // Whether more than half of all rows have the value; of rows without one, none is.
    bool is_common(std::uint64_t key) const {
        if (keyed_.size() < rows_.size()) return false;
        const auto count = std::ranges::count(keyed_, key, &detail::Keyed::key);
        return 2 * static_cast<std::size_t>(count) > rows_.size();
    }

    void number_cells(std::span<const std::int32_t> n_categories) {
        first_cell_.push_back(0);
        for (const std::size_t a : nominal_) {
            first_cell_.push_back(first_cell_.back() + static_cast<std::size_t>(n_categories[a]) +
                                  1);
        }
        cells_.resize(rows_.size() * nominal_.size());
        for (std::size_t k = 0; k < nominal_.size(); ++k) {
            const ColumnView column = table_.column(nominal_[k]);
            for (std::size_t i = 0; i < rows_.size(); ++i) {
                const std::size_t missing = first_cell_[k + 1] - 1;
                const std::size_t cell = std::isnan(column[i])
                                             ? missing
                                             : first_cell_[k] + static_cast<std::size_t>(column[i]);
                cells_[i * nominal_.size() + k] = static_cast<std::uint32_t>(cell);
            }
        }
    }

    static constexpr double no_value = std::numeric_limits<double>::quiet_NaN();

    Table table_;
    std::vector<Row> rows_;
    std::vector<double> common_;  // the most frequent values, or none
    std::vector<Index> common_rank_;
    std::vector<std::size_t> numeric_, nominal_, place_, known_, first_cell_;
    std::vector<Ranked<Index>> ranked_;
    std::vector<std::uint8_t> changes_;
    std::vector<std::uint32_t> cells_;
    std::vector<detail::Keyed> keyed_, scratch_;
};

}  // namespace caltree
