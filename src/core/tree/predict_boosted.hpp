// Calibrated probabilities of new rows by boosted trees: their leaves add to the log-odds of a
// curve.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/columns.hpp"
#include "data/stop.hpp"
#include "kernels/kernels.hpp"
#include "tree/predict.hpp"
#include "tree/ways.hpp"

namespace caltree {

// Boosted trees and the curve they start from, borrowed. Their nodes stand one after the other,
// children side by side and behind their parent.
struct BoostedTrees {
    Routes routes;                        // splits may be on scores, too, which follow attributes
    std::span<const double> value;        // one per node: what a leaf adds to a log-odds
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
        : trees_(trees), ways_(trees.routes, trees.roots) {}

    // probabilities: row-major, n_rows x n_classes.
    void probabilities(const NewRows& rows, double* probabilities) const {
        const std::size_t m = trees_.shape.n_classes();
        const std::size_t n_rows = rows.table.n_rows;
        std::fill_n(probabilities, n_rows * m, 0.0);
        BlockOdds odds(trees_.shape.n_states);
        const std::size_t width = rows.table.n_columns + trees_.shape.n_scores;
        std::vector<double> values(block_rows * width, 0.0);
        StopCheck stop_check;
        for (std::size_t begin = 0; begin < n_rows; begin += block_rows) {
            stop_check.count(block_rows * (1 + ways_.n_trees()));
            const std::size_t count = std::min(block_rows, n_rows - begin);
            double* result = probabilities + begin * m;
            for (std::size_t j = 0; j < trees_.shape.n_states; ++j) {
                for (std::size_t i = 0; i < count; ++i) {
                    odds.F[j * block_rows + i] =
                        log_odds_of(trees_.parameters.data(), trees_.shape, rows, begin + i, j);
                }
            }
            if (trees_.curve_weight > 0.0) add(odds, count, trees_.curve_weight, result);
            if (!(trees_.boosted_weight > 0.0)) continue;
            copy_rows(rows, begin, count, width, values.data());
            for (double& f : odds.F) f *= trees_.start;
            add_trees(values.data(), width, count, odds.F.data());
            add(odds, count, trees_.boosted_weight, result);
        }
    }

  private:
    void add_trees(const double* values, std::size_t width, std::size_t count, double* F) const {
        std::array<std::int32_t, block_rows> at;
        for (std::size_t t = 0; t < ways_.n_trees(); ++t) {
            ways_.leaves(t, values, width, count, at.data());
            double* f = F + static_cast<std::size_t>(trees_.state[t]) * block_rows;
            for (std::size_t i = 0; i < count; ++i) {
                f[i] += trees_.value[static_cast<std::size_t>(at[i])];
            }
        }
    }

    static void add(BlockOdds& odds, std::size_t count, double weight, double* result) {
        odds.evaluate(count);
        const std::size_t m = odds.p.size() / block_rows;
        for (std::size_t i = 0; i < count; ++i) odds.add(i, weight, result + i * m);
    }

    BoostedTrees trees_;
    Ways ways_;
};

}  // namespace caltree
