// Calibrated probabilities of new rows by boosted trees: their leaves add to the log-odds of a
// curve.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "data/columns.hpp"
#include "data/stop.hpp"
#include "kernels/kernels.hpp"
#include "tree/predict.hpp"

namespace caltree {

// Boosted trees and the curve they start from, borrowed. Their nodes stand one after the other,
// children side by side and behind their parent.
struct BoostedTrees {
    Routes routes;                        // splits may be on scores, too, which follow attributes
    std::span<const double> value;        // one a node: what a leaf adds to a log-odds
    std::span<const std::int32_t> roots;  // the first node of each tree
    std::span<const std::int32_t> state;  // the log-odds that each tree adds to
    std::span<const double> parameters;   // the curve: n_states x width
    ModelShape shape;
    double start;                         // the share of the curve that trees add to
    double curve_weight, boosted_weight;  // of the curve alone, and of curve and trees together
};

class BoostedPredictor {
  public:
    explicit BoostedPredictor(const BoostedTrees& trees)
        : trees_(trees), branches_(trees.routes.branches) {
        const Routes& routes = trees.routes;
        std::vector<std::size_t> level(routes.attribute.size(), 0);
        for (std::size_t v = 0; v < routes.attribute.size(); ++v) nodes_.push_back(node(v));
        for (std::size_t t = 0; t < trees.roots.size(); ++t) {
            const auto begin = static_cast<std::size_t>(trees.roots[t]);
            const std::size_t end = t + 1 < trees.roots.size()
                                        ? static_cast<std::size_t>(trees.roots[t + 1])
                                        : nodes_.size();
            ways_.push_back(way(begin, end, level));
        }
    }

    // probabilities: row-major, n_rows x n_classes.
    void probabilities(const NewRows& rows, double* probabilities) const {
        const std::size_t m = trees_.shape.n_classes();
        const std::size_t n_rows = rows.table.n_rows;
        std::fill_n(probabilities, n_rows * m, 0.0);
        BlockOdds odds(trees_.shape.n_states);
        std::vector<double> values(block_rows * n_columns(rows), 0.0);
        StopCheck stop_check;
        for (std::size_t begin = 0; begin < n_rows; begin += block_rows) {
            stop_check.count(block_rows * (1 + ways_.size()));
            const std::size_t count = std::min(block_rows, n_rows - begin);
            double* result = probabilities + begin * m;
            for (std::size_t i = 0; i < count; ++i) {
                log_odds_of(trees_.parameters.data(), trees_.shape, rows, begin + i,
                            odds.F.data() + i);
            }
            if (trees_.curve_weight > 0.0) add(odds, count, trees_.curve_weight, result);
            if (!(trees_.boosted_weight > 0.0)) continue;
            copy_rows(rows, begin, count, values.data());
            for (double& f : odds.F) f *= trees_.start;
            add_trees(values.data(), n_columns(rows), odds.F.data());
            add(odds, count, trees_.boosted_weight, result);
        }
    }

  private:
    // So many rows go down a tree side by side, so that none waits for the memory of another.
    static constexpr std::size_t lanes = 8;
    static_assert(block_rows % lanes == 0);

    // A leaf leads to itself.
    struct Node {
        double threshold;
        std::int32_t column, first_child, table;
        std::uint32_t n_categories : 31, missing_is_second : 1;
    };
    // A tree as rows go down in it.
    struct Way {
        std::int32_t root;
        std::size_t depth;
        bool has_categories;
    };

    Node node(std::size_t v) const {
        const Routes& routes = trees_.routes;
        const std::int32_t a = routes.attribute[v];
        const double endless = std::numeric_limits<double>::infinity();
        if (a < 0) return {endless, 0, static_cast<std::int32_t>(v), -1, 0, 0};
        const auto at = static_cast<std::size_t>(a);
        const bool nominal = at < routes.n_categories.size() && routes.n_categories[at] > 0;
        return {routes.threshold[v] == only_missing ? endless : routes.threshold[v],
                a,
                routes.first_child[v],
                nominal ? routes.table[v] : -1,
                nominal ? static_cast<std::uint32_t>(routes.n_categories[at]) : 0,
                routes.missing[v] == 1};
    }

    Way way(std::size_t begin, std::size_t end, std::vector<std::size_t>& level) const {
        Way result{static_cast<std::int32_t>(begin), 0, false};
        for (std::size_t v = begin; v < end; ++v) {
            if (trees_.routes.attribute[v] < 0) continue;
            result.has_categories |= nodes_[v].n_categories > 0;
            for (std::size_t branch = 0; branch < 2; ++branch) {
                level[static_cast<std::size_t>(nodes_[v].first_child) + branch] = level[v] + 1;
            }
            result.depth = std::max(result.depth, level[v] + 1);
        }
        return result;
    }

    std::size_t n_columns(const NewRows& rows) const {
        return rows.table.n_columns + trees_.shape.n_scores;
    }

    // The attributes and scores of a block of rows, side by side.
    void copy_rows(const NewRows& rows, std::size_t begin, std::size_t count,
                   double* values) const {
        const std::size_t width = n_columns(rows);
        for (std::size_t c = 0; c < width; ++c) {
            for (std::size_t i = 0; i < count; ++i)
                values[i * width + c] = rows.value(begin + i, c);
        }
    }

    void add_trees(const double* values, std::size_t width, double* F) const {
        for (std::size_t t = 0; t < ways_.size(); ++t) {
            double* f = F + static_cast<std::size_t>(trees_.state[t]) * block_rows;
            if (ways_[t].has_categories) {
                add_tree<true>(ways_[t], values, width, f);
            } else {
                add_tree<false>(ways_[t], values, width, f);
            }
        }
    }

    template <bool has_categories>
    void add_tree(const Way& way, const double* values, std::size_t width, double* f) const {
        for (std::size_t i = 0; i < block_rows; i += lanes) {
            std::array<std::int32_t, lanes> at;
            at.fill(way.root);
            const double* row = values + i * width;
            for (std::size_t step = 0; step < way.depth; ++step) {
                for (std::size_t l = 0; l < lanes; ++l) {
                    at[l] = next<has_categories>(at[l], row + l * width);
                }
            }
            for (std::size_t l = 0; l < lanes; ++l) {
                f[i + l] += trees_.value[static_cast<std::size_t>(at[l])];
            }
        }
    }

    template <bool has_categories>
    std::int32_t next(std::int32_t from, const double* row) const {
        const Node& at = nodes_[static_cast<std::size_t>(from)];
        const double value = row[at.column];
        if constexpr (has_categories) {
            if (at.n_categories > 0) {
                return at.first_child + (is_category(value, at.n_categories)
                                             ? branches_[static_cast<std::size_t>(at.table) +
                                                         static_cast<std::size_t>(value)]
                                             : static_cast<std::int32_t>(at.missing_is_second));
            }
        }
        const bool is_second =
            (value > at.threshold) | (std::isnan(value) & static_cast<bool>(at.missing_is_second));
        return at.first_child + static_cast<std::int32_t>(is_second);
    }

    static void add(BlockOdds& odds, std::size_t count, double weight, double* result) {
        odds.evaluate(count);
        const std::size_t m = odds.p.size() / block_rows;
        for (std::size_t i = 0; i < count; ++i) odds.add(i, weight, result + i * m);
    }

    BoostedTrees trees_;
    std::span<const std::int32_t> branches_;
    std::vector<Node> nodes_;
    std::vector<Way> ways_;
};

}  // namespace caltree
