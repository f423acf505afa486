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
        for (std::size_t j = 0; j < given.size(); j += four) {
            const std::size_t count = std::min(four, given.size() - j);
            grow_some(given.subspan(j, count), trees);
        }
    }

  private:
    using Sides = std::array<Evidence, 3>;  // inside, outside, and missing

    // One regression, or up to four.
    void grow_some(std::span<const Regression> given, RegressionTrees& trees) {
        std::array<Regressed, four> found;
        splitter_.find_best(given, {found.data(), given.size()}, evidence_);
        std::array<std::size_t, four> roots{};
        for (std::size_t j = 0; j < given.size(); ++j) {
            roots[j] = trees.add_tree(found[j].mean);
            if (found[j].best.is_possible()) note_split(found[j], roots[j], trees);
        }
        std::array<Sides, four> sides;
        const bool at_once =
            given.size() > 1 && add_up_at_once(trees, {roots.data(), given.size()}, sides);
        for (std::size_t j = 0; j < given.size(); ++j) {
            if (trees.attribute[roots[j]] < 0) {
                std::ranges::fill(given[j].predicted, found[j].mean);
                continue;
            }
            if (!at_once) {
                sides[j] = given.size() == 1
                               ? add_up(trees, roots[j],
                                        [&](std::size_t i) { return evidence_.of_one[i]; })
                               : add_up(trees, roots[j],
                                        [&](std::size_t i) { return evidence_.of_four[i][j]; });
            }
            set_leaves(trees, roots[j], sides[j], at_once, given[j].predicted);
        }
    }

    void note_split(const Regressed& found, std::size_t root, RegressionTrees& trees) const {
        const Split& best = found.best;
        const std::size_t first = trees.add_leaves(3, found.mean);
        trees.share[first + 2] = 1.0;
        trees.set_children(root, best.attribute, first, 3);
        if (table_.is_numeric(best.attribute)) {
            trees.cut[root] = cut(best);
        } else {
            trees.category[root] = static_cast<std::int32_t>(best.choice);
        }
    }

    // Whether all stumps cut numbers that no row lacks: then their rows are added up together.
    bool add_up_at_once(const RegressionTrees& trees, std::span<const std::size_t> roots,
                        std::array<Sides, four>& sides) const {
        const double* columns[four];
        double cuts[four];
        std::ptrdiff_t stride = 1;
        for (std::size_t j = 0; j < four; ++j) {
            const std::size_t root = roots[std::min(j, roots.size() - 1)];
            if (trees.attribute[root] < 0) return false;
            const auto a = static_cast<std::size_t>(trees.attribute[root]);
            if (!table_.is_numeric(a)) return false;
            if (!table_.all_known(table_.everything(), table_.place(a))) return false;
            columns[j] = table_.column(a).first;
            stride = table_.column(a).stride;
            cuts[j] = trees.cut[root];
        }
        FourEvidence low, high;
        kernels().add_up_sides(evidence_.of_four.data(), table_.n_rows(), columns, stride, cuts,
                               low, high);
        for (std::size_t j = 0; j < roots.size(); ++j) sides[j] = {low[j], high[j], Evidence{}};
        return true;
    }

    // Each row counts for one branch and for nothing in the others, without a jump.
    template <class Of>
    Sides add_up(const RegressionTrees& trees, std::size_t root, Of&& evidence) {
        set_branches(trees, root);
        Evidence a, b, c;
        for (std::size_t i = 0; i < branches_.size(); ++i) {
            const Evidence one = evidence(i);
            a = a + (branches_[i] == 0 ? one : Evidence{});
            b = b + (branches_[i] == 1 ? one : Evidence{});
            c = c + (branches_[i] == 2 ? one : Evidence{});
        }
        return {a, b, c};
    }

    void set_branches(const RegressionTrees& trees, std::size_t root) {
        const ColumnView column = table_.column(static_cast<std::size_t>(trees.attribute[root]));
        for (std::size_t i = 0; i < branches_.size(); ++i) {
            const std::int32_t b = branch(column[i], trees.cut[root], trees.category[root]);
            branches_[i] = static_cast<std::uint8_t>(b < 0 ? 2 : b);
        }
    }

    void set_leaves(RegressionTrees& trees, std::size_t root, const Sides& sides, bool is_cut,
                    std::span<double> predicted) const {
        double* values = trees.value.data() + trees.first_child[root];
        for (std::size_t b = 0; b < 3; ++b) values[b] += ratio(sides[b].response, sides[b].weight);
        if (!is_cut) {
            for (std::size_t i = 0; i < predicted.size(); ++i) predicted[i] = values[branches_[i]];
            return;
        }
        const ColumnView column = table_.column(static_cast<std::size_t>(trees.attribute[root]));
        const double cut = trees.cut[root], low = values[0], high = values[1];
        for (std::size_t i = 0; i < predicted.size(); ++i) {
            predicted[i] = column[i] >= cut ? high : low;
        }
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
    RootEvidence evidence_;
    std::vector<std::uint8_t> branches_;
};

}  // namespace caltree
