// Grows regression stumps: one split, and a branch of their own for missing values.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "learners/presorted.hpp"
#include "learners/regression_trees.hpp"
#include "learners/splitter.hpp"

namespace caltree {

template <class Index>
class StumpGrower {
  public:
    explicit StumpGrower(const Presorted<Index>& table)
        : table_(table), splitter_(table, true), branches_(table.n_rows()) {}

    // Appends a stump for each regression, and says what it predicts for each row of the table.
    void grow(std::span<const Regression> given, RegressionTrees& trees) {
        regressed_.resize(given.size());
        for (std::size_t j = 0; j < given.size(); ++j) {
            centre(given[j], table_.n_places(), regressed_[j]);
        }
        splitter_.find_best(regressed_);
        for (std::size_t j = 0; j < given.size(); ++j) {
            const std::size_t root = trees.add_tree(regressed_[j].mean);
            if (regressed_[j].best.is_possible()) {
                split(regressed_[j], root, trees, given[j].predicted);
            } else {
                std::ranges::fill(given[j].predicted, regressed_[j].mean);
            }
        }
    }

  private:
    // The children: inside, outside, and missing.
    void split(const Regressed& regressed, std::size_t root, RegressionTrees& trees,
               std::span<double> predicted) {
        const Split& best = regressed.best;
        const std::size_t first = trees.add_leaves(3, regressed.mean);
        trees.share[first + 2] = 1.0;
        trees.set_children(root, best.attribute, first, 3);
        if (table_.is_numeric(best.attribute)) {
            trees.cut[root] = cut(best);
        } else {
            trees.category[root] = static_cast<std::int32_t>(best.choice);
        }
        const ColumnView column = table_.column(best.attribute);
        for (std::size_t i = 0; i < branches_.size(); ++i) {
            const std::int32_t b = branch(column[i], trees.cut[root], trees.category[root]);
            branches_[i] = static_cast<std::uint8_t>(b < 0 ? 2 : b);
        }
        const std::array<Evidence, 3> sums = add_branches(regressed.evidence);
        double* values = trees.value.data() + first;
        for (std::size_t b = 0; b < 3; ++b) values[b] += ratio(sums[b].response, sums[b].weight);
        for (std::size_t i = 0; i < branches_.size(); ++i) predicted[i] = values[branches_[i]];
    }

    // Each row counts for one branch and for nothing in the others, without a jump.
    std::array<Evidence, 3> add_branches(const std::vector<Evidence>& evidence) const {
        Evidence a, b, c;
        for (std::size_t i = 0; i < branches_.size(); ++i) {
            const Evidence one = evidence[i];
            a = a + (branches_[i] == 0 ? one : Evidence{});
            b = b + (branches_[i] == 1 ? one : Evidence{});
            c = c + (branches_[i] == 2 ? one : Evidence{});
        }
        return {a, b, c};
    }

    // Halfway belongs to the first branch. There may be no number between the two.
    double cut(const Split& best) const {
        const auto [low, high] = table_.around(table_.everything(), best.attribute, best.choice);
        const double middle = 0.5 * low + 0.5 * high;
        return std::nextafter(middle < high ? middle : low,
                              std::numeric_limits<double>::infinity());
    }

    const Presorted<Index>& table_;
    Splitter<Index> splitter_;
    std::vector<Regressed> regressed_;
    std::vector<std::uint8_t> branches_;
};

}  // namespace caltree
