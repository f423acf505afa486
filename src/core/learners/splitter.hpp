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
    double mean = 0.0;      // of the responses
    double variance = 0.0;  // of the responses
    Split best;
};

// The evidence of all rows, and places for that of common values: of one regression or of up to
// four. Responses are around their mean.
struct RootEvidence {
    std::vector<Evidence> of_one;
    std::vector<FourEvidence> of_four;
};

template <class Index>
class Splitter {
  public:
    Splitter(const Presorted<Index>& table, bool stumps)
        : table_(table), searches_(four, {table.n_attributes(), stumps}), cells_(table.n_cells()) {
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

    // The best splits of all rows, for one regression or for up to four. The evidence that they
    // were found by is left in `evidence`.
    void find_best(std::span<const Regression> given, std::span<Regressed> found,
                   RootEvidence& evidence) {
        FourRegressions columns;
        for (std::size_t j = 0; j < four; ++j) {
            const Regression& one = given[std::min(j, given.size() - 1)];
            columns.weight[j] = one.weight.data();
            columns.response[j] = one.response.data();
        }
        FourMoments sums;
        double means[four];
        kernels().add_up_moments(columns, table_.n_rows(), sums);
        for (std::size_t j = 0; j < four; ++j) means[j] = ratio(sums.first[j], sums.total[j]);
        for (std::size_t j = 0; j < given.size(); ++j) {
            found[j].mean = means[j];
            found[j].variance = sums.second[j] / sums.total[j] - means[j] * means[j];
        }
        if (given.size() == 1) {
            evidence.of_one.resize(table_.n_places());
            centre(given[0], means[0], evidence.of_one);
            found[0].best = best(table_.everything(), evidence.of_one, sums.total[0]);
        } else {
            evidence.of_four.resize(table_.n_places());
            kernels().centre(columns, table_.n_rows(), means, evidence.of_four.data());
            find_best_of_four(sums.total, found, evidence.of_four);
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

    static void centre(const Regression& given, double mean, std::vector<Evidence>& to) {
        for (std::size_t i = 0; i < given.weight.size(); ++i) {
            to[i] = {given.weight[i], given.weight[i] * (given.response[i] - mean)};
        }
    }

    // The evidence of rows with a common value.
    template <class Of>
    void set_common(const Part<Index>& part, std::vector<Of>& evidence) const {
        Of all;
        for (const Row row : part.rows) all = all + evidence[row];
        for (std::size_t k = 0; k < table_.numeric().size(); ++k) {
            if (!table_.has_common(k)) continue;
            Of& common = evidence[table_.common_row(k)] = {};
            const std::span<const Ranked<Index>> order = part.order(k);
            Of odd, even;  // two sums, which do not wait for each other
            for (std::size_t i = 0; i + 1 < order.size(); i += 2) {
                even = even + evidence[order[i].row];
                odd = odd + evidence[order[i + 1].row];
            }
            if (order.size() % 2 == 1) even = even + evidence[order.back().row];
            common = all - (odd + even);
        }
    }

    void find_best_of_four(const double* totals, std::span<Regressed> found,
                           std::vector<FourEvidence>& evidence) {
        const std::span<SplitSearch> searches{searches_.data(), found.size()};
        for (std::size_t j = 0; j < found.size(); ++j) searches[j].start(totals[j]);
        const Part<Index> everything = table_.everything();
        set_common(everything, evidence);
        const std::size_t n_numeric = table_.numeric().size();
        for (std::size_t k = 0; k < n_numeric; k += 2) {
            const std::size_t one = by_length_[k],
                              other = by_length_[std::min(k + 1, n_numeric - 1)];
            FourSums sums[2] = {order_of_all(one, 0), order_of_all(other, 1)};
            stop_check_.count((sums[0].n + sums[1].n) * four);
            kernels().add_up_orders(evidence.data(), sums[0], sums[1]);
            for (std::size_t i = 0; i < std::min<std::size_t>(2, n_numeric - k); ++i) {
                const std::size_t place = by_length_[k + i];
                SplitSearch::cut(searches, table_.numeric()[place], sums[i],
                                 table_.all_known(everything, place));
            }
        }
        categories(everything.rows, evidence, searches);
        for (std::size_t j = 0; j < found.size(); ++j) found[j].best = searches[j].best();
    }

    // The order of a numeric attribute over all rows, and a place for sums.
    FourSums order_of_all(std::size_t k, std::size_t place) {
        const std::size_t n_rows = table_.n_rows();
        if (rows_in_order_.empty()) {
            below_four_.resize(2 * n_rows);
            rows_in_order_.resize(table_.numeric().size() * n_rows);
            for (std::size_t a = 0; a < table_.numeric().size(); ++a) {
                Row* to = rows_in_order_.data() + a * n_rows;
                for (const Ranked<Index>& one : table_.everything().order(a)) *to++ = one.row;
            }
        }
        const std::span<const std::uint8_t> changes = table_.changes(k);
        return {rows_in_order_.data() + k * n_rows, changes.data(), changes.size(),
                below_four_.data() + place * n_rows};
    }

    void categories(std::span<const Row> rows, const std::vector<FourEvidence>& evidence,
                    std::span<SplitSearch> searches) {
        const std::size_t n_nominal = table_.nominal().size();
        if (n_nominal == 0) return;
        four_cells_.assign(table_.n_cells(), {});
        for (const Row row : rows) {
            stop_check_.count(n_nominal * four);
            const std::uint32_t* cells = table_.cells(row);
            for (std::size_t k = 0; k < n_nominal; ++k) {
                FourEvidence& cell = four_cells_[cells[k]];
                cell = cell + evidence[row];
            }
        }
        for (std::size_t j = 0; j < searches.size(); ++j) {
            for (std::size_t i = 0; i < cells_.size(); ++i) cells_[i] = four_cells_[i][j];
            look_at_cells(searches[j]);
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
        look_at_cells(search);
    }

    void look_at_cells(SplitSearch& search) const {
        for (std::size_t k = 0; k < table_.nominal().size(); ++k) {
            const std::size_t first = table_.first_cell(k);
            search.categories(table_.nominal()[k],
                              {cells_.data() + first, table_.n_categories(k) + 1});
        }
    }

    const Presorted<Index>& table_;
    std::vector<SplitSearch> searches_;
    std::vector<Evidence> cells_, below_;
    std::vector<FourEvidence> four_cells_, below_four_;
    std::vector<Row> rows_in_order_;  // by numeric attribute, of all rows
    SomeCuts cuts_;
    std::vector<std::size_t>
        by_length_;  // numeric attributes, those with the shortest orders first
    StopCheck stop_check_;
};

}  // namespace caltree
