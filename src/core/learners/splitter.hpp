// Best splits of the rows of a table: of some of them for one regression, or of all for several.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "data/stop.hpp"
#include "learners/presorted.hpp"
#include "learners/regression_trees.hpp"
#include "learners/split_search.hpp"
#include "learners/sums.hpp"

namespace caltree {

// A regression on all rows of a table.
struct Regressed {
    std::vector<Evidence> evidence;  // responses are around their mean
    double total = 0.0;              // of the weights
    double mean = 0.0;               // of the responses
    Split best;
};

inline void centre(const Regression& given, std::size_t n_places, Regressed& to) {
    Evidence sum;
    for (std::size_t i = 0; i < given.weight.size(); ++i) {
        sum = sum + Evidence{given.weight[i], given.weight[i] * given.response[i]};
    }
    to.total = sum.weight;
    to.mean = ratio(sum.response, sum.weight);
    to.evidence.resize(n_places);
    for (std::size_t i = 0; i < given.weight.size(); ++i) {
        to.evidence[i] = {given.weight[i], given.weight[i] * (given.response[i] - to.mean)};
    }
}

template <class Index>
class Splitter {
  public:
    Splitter(const Presorted<Index>& table, bool stumps)
        : table_(table),
          searches_(sums_at_a_time, {table.n_attributes(), stumps}),
          cells_(table.n_cells()) {
        const std::size_t room = table.n_rows() + row_multiple;
        below_.resize(sums_at_a_time * room);
        for (std::size_t j = 0; j < sums_at_a_time; ++j) cuts_[j].below = below_.data() + j * room;
        by_length_.resize(table.numeric().size());
        std::iota(by_length_.begin(), by_length_.end(), std::size_t{0});
        std::ranges::stable_sort(by_length_, {},
                                 [&](std::size_t k) { return table.everything().known[k]; });
    }

    // Evidence of each row, and places for that of common values.
    Split best(const Part<Index>& part, std::vector<Evidence>& evidence, double total) {
        SplitSearch& search = searches_[0];
        search.start(total);
        if (part.rows.size() < 2) return {};
        set_common(part, evidence);
        const std::size_t n_numeric = table_.numeric().size();
        for (std::size_t k = 0; k < n_numeric; k += sums_at_a_time) {
            cut(part, k, std::min(sums_at_a_time, n_numeric - k), evidence, search);
        }
        categories(part.rows, evidence, search);
        return search.best();
    }

    // The best splits of all rows, for each of several regressions.
    void find_best(std::span<Regressed> regressions) {
        const Part<Index> everything = table_.everything();
        if (regressions.size() == 1) {
            Regressed& one = regressions[0];
            one.best = best(everything, one.evidence, one.total);
            return;
        }
        for (std::size_t first = 0; first < regressions.size(); first += sums_at_a_time) {
            const std::size_t count = std::min(sums_at_a_time, regressions.size() - first);
            find_best_of_some(everything, regressions.subspan(first, count));
        }
    }

  private:
    // Some attributes at a time. Where there are not as many left, the last one is added up more
    // than once.
    void cut(const Part<Index>& part, std::size_t first, std::size_t count,
             const std::vector<Evidence>& evidence, SplitSearch& search) {
        SomeOrders<Index> orders;
        for (std::size_t j = 0; j < sums_at_a_time; ++j) {
            const std::size_t k = by_length_[first + std::min(j, count - 1)];
            orders[j] = part.order(k);
            cuts_[j].all_known = table_.all_known(part, k);
            stop_check_.count(orders[j].size());
        }
        add_up(evidence.data(), orders, cuts_);
        for (std::size_t j = 0; j < count; ++j) {
            search.cut(table_.numeric()[by_length_[first + j]], cuts_[j]);
        }
    }

    // The evidence of rows with a common value.
    void set_common(const Part<Index>& part, std::vector<Evidence>& evidence) {
        Evidence all;
        for (const Row row : part.rows) all = all + evidence[row];
        for (std::size_t k = 0; k < table_.numeric().size(); ++k) {
            if (!table_.has_common(k)) continue;
            Evidence& common = evidence[table_.common_row(k)] = {};
            const std::span<const Ranked<Index>> order = part.order(k);
            Evidence odd, even;  // two sums, which do not wait for each other
            for (std::size_t i = 0; i + 1 < order.size(); i += 2) {
                even = even + evidence[order[i].row];
                odd = odd + evidence[order[i + 1].row];
            }
            if (order.size() % 2 == 1) even = even + evidence[order.back().row];
            common = all - (odd + even);
        }
    }

    void find_best_of_some(const Part<Index>& everything, std::span<Regressed> regressions) {
        side_by_side_.assign(table_.n_places() * sums_at_a_time, {});
        for (std::size_t j = 0; j < regressions.size(); ++j) {
            searches_[j].start(regressions[j].total);
            set_common(everything, regressions[j].evidence);
            for (std::size_t i = 0; i < table_.n_places(); ++i) {
                side_by_side_[i * sums_at_a_time + j] = regressions[j].evidence[i];
            }
        }
        for (std::size_t k = 0; k < table_.numeric().size(); ++k) {
            stop_check_.count(everything.order(k).size() * sums_at_a_time);
            add_up(side_by_side_.data(), everything.order(k), table_.changes(k), cuts_);
            for (Cuts& cuts : cuts_) cuts.all_known = table_.all_known(everything, k);
            for (std::size_t j = 0; j < regressions.size(); ++j) {
                searches_[j].cut(table_.numeric()[k], cuts_[j]);
            }
        }
        for (std::size_t j = 0; j < regressions.size(); ++j) {
            categories(everything.rows, regressions[j].evidence, searches_[j]);
            regressions[j].best = searches_[j].best();
        }
    }

    void categories(std::span<const Row> rows, const std::vector<Evidence>& evidence,
                    SplitSearch& search) {
        const std::size_t n_nominal = table_.nominal().size();
        if (n_nominal == 0) return;
        std::fill(cells_.begin(), cells_.end(), Evidence{});
        for (const Row row : rows) {
            stop_check_.count(n_nominal);
            const std::uint32_t* cells = table_.cells(row);
            const Evidence one = evidence[row];
            for (std::size_t k = 0; k < n_nominal; ++k) cells_[cells[k]] = cells_[cells[k]] + one;
        }
        for (std::size_t k = 0; k < n_nominal; ++k) {
            const std::size_t first = table_.first_cell(k);
            search.categories(table_.nominal()[k],
                              {cells_.data() + first, table_.n_categories(k) + 1});
        }
    }

    const Presorted<Index>& table_;
    std::vector<SplitSearch> searches_;
    std::vector<Evidence> cells_, below_, side_by_side_;
    SomeCuts cuts_;
    std::vector<std::size_t>
        by_length_;  // numeric attributes, those with the shortest orders first
    StopCheck stop_check_;
};

}  // namespace caltree
