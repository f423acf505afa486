// The search for the best split of some rows by weighted least squares, an attribute at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "kernels/kernels.hpp"
#include "learners/sums.hpp"

namespace caltree {

inline double ratio(double above, double below) { return below > 0.0 ? above / below : 0.0; }

struct Split {
    double gain = -std::numeric_limits<double>::infinity();  // of the squared error
    std::size_t attribute = 0;
    std::size_t choice = 0;  // numeric: the change of the value, from 0 on, that is cut;
                             // nominal: the category that is told from the rest, if one is

    bool is_possible() const { return gain > -std::numeric_limits<double>::infinity(); }
};

// A stump keeps rows without a value apart and tells one category from the rest; a tree deals such
// rows out evenly and tells all categories apart. Responses are around their mean over the rows.
class SplitSearch {
  public:
    SplitSearch(std::size_t n_attributes, bool stumps) : stumps_(stumps), splits_(n_attributes) {}

    // `total`: the weight of all rows.
    void start(double total) {
        total_ = total;
        highest_ = 0.0;
        std::fill(splits_.begin(), splits_.end(), Split{});
    }

    void cut(std::size_t attribute, const Cuts& cuts) {
        if (cuts.count == 0) return;
        const Known known = known_part(cuts.sum, cuts.all_known);
        const Split found = best_cut(cuts, lowest_of_use(known) / cuts.sum.weight);
        if (found.is_possible()) {
            note(attribute, found.gain * cuts.sum.weight, found.choice, known);
        }
    }

    // The same for as many regressions as there are searches, up to four.
    static void cut(std::span<SplitSearch> searches, std::size_t attribute, const FourSums& cuts,
                    bool all_known) {
        Known known[four];
        Split found[four];
        double lowest[four];
        for (std::size_t j = 0; j < four; ++j) {
            lowest[j] = std::numeric_limits<double>::infinity();
            if (j >= searches.size()) continue;
            known[j] = searches[j].known_part(cuts.sum[j], all_known);
            lowest[j] = searches[j].lowest_of_use(known[j]) / cuts.sum.weight[j];
        }
        for (std::size_t begin = 0; begin < cuts.count; begin += block) {
            const std::size_t count = std::min(block, cuts.count - begin);
            const FourEvidence* below = cuts.below + begin;
            const unsigned gain = kernels().which_gain(below, cuts.sum, lowest, count);
            for (std::size_t j = 0; gain >> j != 0; ++j) {
                if ((gain >> j & 1U) == 0) continue;
                const auto below_one = [&](std::size_t i) { return below[i][j]; };
                find_best_cut(below_one, count, begin, cuts.sum[j], lowest[j], found[j]);
            }
        }
        for (std::size_t j = 0; j < searches.size(); ++j) {
            if (!found[j].is_possible()) continue;
            const double gain = found[j].gain * cuts.sum.weight[j];
            searches[j].note(attribute, gain, found[j].choice, known[j]);
        }
    }

    // `cells`: the evidence of each category, and then that of missing values.
    void categories(std::size_t attribute, std::span<const Evidence> cells) {
        const bool all = !(cells.back().weight > 0.0);
        cells = cells.first(cells.size() - 1);
        Evidence sum;
        for (const Evidence& cell : cells) sum = sum + cell;
        const Split found = stumps_ ? one_category(cells, sum) : all_categories(cells, sum);
        if (found.is_possible()) {
            note(attribute, found.gain, found.choice, known_part(sum, all));
        }
    }

    // The first of the best, up to rounding.
    Split best() const {
        double highest = -std::numeric_limits<double>::infinity();
        for (const Split& split : splits_) highest = std::max(highest, split.gain);
        for (const Split& split : splits_) {
            if (split.is_possible() && split.gain >= highest - tie) return split;
        }
        return {};
    }

  private:
    // Less weight than this, of a mean of 1 per row, is rounding error: a branch needs more.
    static constexpr double least_weight = 1e-6;
    static constexpr double tie = 1e-12;  // gains this close are equal
    static constexpr double nearly = 1.0 - 1e-9;
    static constexpr std::size_t block = 64;

    // What rows without a value change about a gain: a stump gains by keeping them apart, and a
    // tree, which deals them out, has less of it.
    struct Known {
        double factor = 1.0;
        double constant = 0.0;
    };

    Known known_part(Evidence known, bool all) const {
        if (all) return {};
        if (!stumps_) return {known.weight / total_, 0.0};
        const double product = known.weight * (total_ - known.weight);
        return {1.0, ratio(known.response * known.response * total_, product)};
    }

    // Below this, the gain of an attribute's split does not matter: another is better.
    double lowest_of_use(Known known) const {
        return std::max((highest_ - 2.0 * tie - known.constant) / known.factor * nearly, 0.0);
    }

    void note(std::size_t attribute, double gain, std::size_t choice, Known known) {
        splits_[attribute] = {gain * known.factor + known.constant, attribute, choice};
        highest_ = std::max(highest_, splits_[attribute].gain);
    }

    // The best cut, if its gain is above the lowest of use, in units of the weight. Few blocks of
    // cuts have one, and only these are divided.
    static Split best_cut(const Cuts& cuts, double lowest) {
        const Evidence sum = cuts.sum;
        std::fill_n(cuts.below + cuts.count, row_multiple, sum);  // which gains nothing
        Split best;
        for (std::size_t begin = 0; begin < cuts.count; begin += block) {
            const std::size_t count = std::min(block, cuts.count - begin);
            const Evidence* below = cuts.below + begin;
            if (lowest > 0.0 && !kernels().any_cut_gains(below, sum, lowest, padded_rows(count))) {
                continue;
            }
            const auto below_one = [&](std::size_t i) { return below[i]; };
            find_best_cut(below_one, count, begin, sum, lowest, best);
        }
        return best;
    }

    // Looks for a better cut than the best so far, and for one that gains more than the lowest of
    // use: those are few, and only for these a quotient is needed.
    template <class Below>
    static void find_best_cut(Below&& evidence_below, std::size_t count, std::size_t first,
                              Evidence sum, double& lowest, Split& best) {
        const double mean = ratio(sum.response, sum.weight);
        const double least = sum.weight > 0.0 ? least_weight * sum.weight : 1.0;
        for (std::size_t i = 0; i < count; ++i) {
            const Evidence below = evidence_below(i);
            const double product = below.weight * (sum.weight - below.weight);
            if (!(product > least)) continue;
            const double around = below.response - below.weight * mean;
            if (around * around < product * lowest) continue;
            const double gain = around * around / product;
            if (gain > best.gain) best = {gain, 0, first + i};
            lowest = std::max(lowest, best.gain * nearly);
        }
    }

    static Split all_categories(std::span<const Evidence> cells, Evidence sum) {
        const double mean = ratio(sum.response, sum.weight);
        double gain = 0.0;
        std::size_t branches = 0;
        for (const Evidence& cell : cells) {
            const double around = cell.response - cell.weight * mean;
            gain += ratio(around * around, cell.weight);
            branches += cell.weight > least_weight;
        }
        return branches > 1 ? Split{gain, 0, 0} : Split{};
    }

    static Split one_category(std::span<const Evidence> cells, Evidence sum) {
        const double mean = ratio(sum.response, sum.weight);
        const auto gain_of = [&](const Evidence& cell) {
            const double around = cell.response - cell.weight * mean;
            const double product = cell.weight * (sum.weight - cell.weight);
            return product > least_weight * sum.weight ? around * around * sum.weight / product
                                                       : Split{}.gain;
        };
        Split best;
        for (const Evidence& cell : cells) best.gain = std::max(best.gain, gain_of(cell));
        if (!best.is_possible()) return best;
        const double enough = best.gain - tie;
        while (gain_of(cells[best.choice]) < enough) ++best.choice;
        best.gain = gain_of(cells[best.choice]);
        return best;
    }

    bool stumps_;
    double total_ = 0.0;
    double highest_ = 0.0;  // of the gains so far
    std::vector<Split> splits_;
};

}  // namespace caltree
