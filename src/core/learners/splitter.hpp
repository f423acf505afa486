// Best splits of the rows of a table: of some of them for one regression, or of all for several.
#pragma once

#include <algorithm>
#include <cstddef>
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

inline void centre(const Regression& given, Regressed& to) {
    Evidence sum;
    for (std::size_t i = 0; i < given.weight.size(); ++i) {
        sum = sum + Evidence{given.weight[i], given.weight[i] * given.response[i]};
    }
    to.total = sum.weight;
    to.mean = ratio(sum.response, sum.weight);
    to.evidence.resize(given.weight.size());
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
    }

    Split best(const Part<Index>& part, const std::vector<Evidence>& evidence, double total) {
        SplitSearch& search = searches_[0];
        search.start(part.rows.size(), total);
        if (part.rows.size() < 2) return {};
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
            orders[j] = part.order(first + std::min(j, count - 1));
            stop_check_.count(orders[j].size());
        }
        add_up(evidence.data(), orders, cuts_);
        for (std::size_t j = 0; j < count; ++j) search.cut(table_.numeric()[first + j], cuts_[j]);
    }

    void find_best_of_some(const Part<Index>& everything, std::span<Regressed> regressions) {
        side_by_side_.assign(everything.rows.size() * sums_at_a_time, {});
        for (std::size_t j = 0; j < regressions.size(); ++j) {
            searches_[j].start(everything.rows.size(), regressions[j].total);
            for (std::size_t i = 0; i < everything.rows.size(); ++i) {
                side_by_side_[i * sums_at_a_time + j] = regressions[j].evidence[i];
            }
        }
        for (std::size_t k = 0; k < table_.numeric().size(); ++k) {
            stop_check_.count(everything.order(k).size() * sums_at_a_time);
            add_up(side_by_side_.data(), everything.order(k), table_.changes(k), cuts_);
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
    StopCheck stop_check_;
};

}  // namespace caltree
