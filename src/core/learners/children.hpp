// The children of a node of a regression tree: their rows, and the orders of these.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "data/columns.hpp"
#include "data/data.hpp"
#include "kernels/kernels.hpp"
#include "learners/presorted.hpp"

namespace caltree {

// Sums over rows: of weights, of weighted responses, and of weighted squares of these.
struct Moments {
    double total = 0.0, first = 0.0, second = 0.0;

    Moments operator+(const Moments& o) const {
        return {total + o.total, first + o.first, second + o.second};
    }
    double mean() const { return first / total; }
    double variance() const { return second / total - mean() * mean(); }
};

template <class Index>
class Children {
  public:
    std::vector<Moments> within;      // the sums of each child, rows without a value apart
    std::vector<std::uint8_t> grows;  // whether a child is more than a leaf
    std::vector<double> weight;       // of the child that is grown, if rows were dealt out

    std::size_t count() const { return n_rows_.size(); }
    std::span<const Row> rows(std::size_t child) const {
        return {rows_.data() + first_row_[child], n_rows_[child]};
    }
    Part<Index> part(std::size_t child) const {
        return {rows(child), ranked_.data() + first_ranked_[child],
                known_.data() + child * n_numeric_};
    }

    // Divides rows in two by a number that all of them have, and notes which are above the cut.
    void divide_rows(std::span<const Row> rows, ColumnView column, double cut,
                     std::vector<std::uint8_t>& is_high) {
        rows_.resize(2 * (rows.size() + 1));
        Row* low = rows_.data();
        Row* high = low + rows.size() + 1;
        std::uint8_t* above = is_high.data();
        std::size_t n_high = 0;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            // Written to both, of which one moves on: no guess of the processor's is needed.
            const Row row = low[i - n_high] = high[n_high] = rows[i];
            const bool is_above = column[row] >= cut;
            above[row] = is_above;
            n_high += is_above;
        }
        first_row_ = {0, rows.size() + 1};
        n_rows_ = {rows.size() - n_high, n_high};
    }

    // The same with a branch of each row: those of a branch below 0 go to all children that grow.
    void divide_rows(std::span<const Row> rows, const std::vector<std::int32_t>& branch) {
        const std::size_t count = within.size();
        n_rows_.assign(count, 0);
        for (const Row row : rows) {
            send(branch[row], [&](std::size_t child) { ++n_rows_[child]; });
        }
        first_row_.assign(count, 0);
        for (std::size_t c = 1; c < count; ++c) first_row_[c] = first_row_[c - 1] + n_rows_[c - 1];
        rows_.resize(first_row_[count - 1] + n_rows_[count - 1]);
        n_rows_.assign(count, 0);
        for (const Row row : rows) {
            send(branch[row],
                 [&](std::size_t child) { rows_[first_row_[child] + n_rows_[child]++] = row; });
        }
    }

    // Room for the orders of the children that grow. Dividing writes more than it keeps.
    bool make_room(std::size_t n_numeric) {
        n_numeric_ = n_numeric;
        first_ranked_.assign(count(), 0);
        known_.resize(count() * n_numeric);
        std::size_t end = 0;
        bool any = false;
        for (std::size_t c = 0; c < count(); ++c) {
            first_ranked_[c] = end;
            if (grows[c] == 0) continue;
            end += n_rows_[c] * n_numeric + spare_places + 1;
            any = true;
        }
        ranked_.resize(end);
        return any;
    }

    // Divides an order in two. A common value belongs to both children.
    void divide_order(std::span<const Ranked<Index>> order, std::size_t k, std::size_t common,
                      const std::vector<std::uint8_t>& is_high) {
        if (grows[0] == 0 || grows[1] == 0) unused_.resize(order.size() + spare_places);
        Ranked<Index>* low = grows[0] != 0 ? to(0, k) : unused_.data();
        Ranked<Index>* high = grows[1] != 0 ? to(1, k) : unused_.data();
        std::size_t n_high = divide(order.first(common), is_high, low, high);
        std::size_t n_low = common - n_high;
        if (common < order.size()) {
            low[n_low++] = high[n_high++] = order[common];
            const std::span<const Ranked<Index>> rest = order.subspan(common + 1);
            const std::size_t more = divide(rest, is_high, low + n_low, high + n_high);
            n_high += more;
            n_low += rest.size() - more;
        }
        known(0, k) = n_low;
        known(1, k) = n_high;
    }

    // The same with a branch of each row.
    void divide_order(std::span<const Ranked<Index>> order, std::size_t k,
                      const std::vector<std::int32_t>& branch) {
        for (std::size_t c = 0; c < count(); ++c) known(c, k) = 0;
        for (const Ranked<Index>& one : order) {
            send(branch[one.row],
                 [&](std::size_t child) { to(child, k)[known(child, k)++] = one; });
        }
    }

    // A child that has a place for each row and one more has no row of the common value.
    void drop_common(std::size_t k, Index rank) {
        for (std::size_t c = 0; c < count(); ++c) {
            if (grows[c] == 0 || known(c, k) <= n_rows_[c]) continue;
            const std::span<Ranked<Index>> order{to(c, k), known(c, k)};
            const auto found = std::ranges::lower_bound(order, rank, {}, &Ranked<Index>::rank);
            std::copy(found + 1, order.end(), found);
            --known(c, k);
        }
    }

  private:
    template <class Work>
    void send(std::int32_t branch, Work&& work) const {
        if (branch >= 0) {
            if (grows[static_cast<std::size_t>(branch)] != 0) {
                work(static_cast<std::size_t>(branch));
            }
            return;
        }
        for (std::size_t c = 0; c < grows.size(); ++c) {
            if (grows[c] != 0) work(c);
        }
    }

    static std::size_t divide(std::span<const Ranked<Index>> order,
                              const std::vector<std::uint8_t>& is_high, Ranked<Index>* low,
                              Ranked<Index>* high) {
        if constexpr (std::is_same_v<Index, std::uint16_t>) {
            return kernels().divide_order(order.data(), order.size(), is_high.data(), low, high);
        } else {
            std::size_t n_high = 0;
            for (std::size_t i = 0; i < order.size(); ++i) {
                low[i - n_high] = high[n_high] = order[i];
                n_high += is_high[order[i].row];
            }
            return n_high;
        }
    }

    Ranked<Index>* to(std::size_t child, std::size_t k) {
        return ranked_.data() + first_ranked_[child] + k * n_rows_[child];
    }
    std::size_t& known(std::size_t child, std::size_t k) { return known_[child * n_numeric_ + k]; }

    std::size_t n_numeric_ = 0;
    std::vector<Row> rows_;
    std::vector<std::size_t> first_row_, n_rows_;  // one per child
    std::vector<Ranked<Index>> ranked_, unused_;   // of a child, a place per attribute and row
    std::vector<std::size_t> first_ranked_;
    std::vector<std::size_t> known_;  // places that are taken, by child and attribute
};

}  // namespace caltree
