// C4.5's splits from histograms of classes: as in split.hpp, with bins in the place of values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "histogram/histogram.hpp"
#include "published/split.hpp"

namespace caltree {

class ClassSplitSearch {
  public:
    // `fills`: the bin or category that stands in for missing values, of each attribute.
    ClassSplitSearch(const HistogramShape& shape, std::span<const std::uint8_t> numeric,
                     std::span<const std::int32_t> fills, double all_rows, double min_samples_leaf,
                     double unit)
        : shape_(shape),
          numeric_(numeric),
          fills_(fills),
          starts_(shape.starts()),
          all_rows_(all_rows),
          min_samples_leaf_(min_samples_leaf),
          unit_(unit) {
        for (std::size_t a = 0; a < numeric.size(); ++a) {
            some_attribute_averages_ |= numeric[a] != 0 || !has_many_categories(a);
        }
    }

    void find(const Whole* histograms, BestSplits& result) {
        const Split best = choose(histograms);
        if (!best.found()) {
            result.add(-1, 0.0, 0, 0);
            return;
        }
        const auto a = static_cast<std::size_t>(best.attribute);
        const auto fill = static_cast<std::size_t>(fills_[a]);
        const auto n_bins = static_cast<std::size_t>(shape_.n_bins[a]);
        result.add(best.attribute, 0.0, best.cut, numeric_[a] != 0 ? 2 : n_bins);
        if (numeric_[a] != 0) {
            result.missing.back() = fill > best.cut ? 1 : 0;
            return;
        }
        result.missing.back() = fills_[a];
        result.begin_table(n_bins);
        const std::size_t first = result.branches.size();
        result.branches.resize(first + n_bins);
        std::iota(result.branches.begin() + static_cast<std::ptrdiff_t>(first),
                  result.branches.end(), 0);
    }

  private:
    std::size_t n_classes() const { return shape_.per_cell; }

    bool has_many_categories(std::size_t a) const {
        return static_cast<double>(shape_.n_bins[a]) + tolerance >= many_categories * all_rows_;
    }

    // The weights of the classes in every bin of an attribute, missing values in that of the fill.
    void count(std::size_t a, const Whole* histograms) {
        const auto n_bins = static_cast<std::size_t>(shape_.n_bins[a]);
        const Whole* from = histograms + starts_[a];
        counts_.resize(n_bins * n_classes());
        for (std::size_t t = 0; t < counts_.size(); ++t) {
            counts_[t] = static_cast<double>(from[t]) / unit_;
        }
        double* to = counts_.data() + static_cast<std::size_t>(fills_[a]) * n_classes();
        for (std::size_t j = 0; j < n_classes(); ++j) {
            to[j] += static_cast<double>(from[n_bins * n_classes() + j]) / unit_;
        }
        node_.assign(n_classes(), 0.0);
        for (std::size_t t = 0; t < counts_.size(); ++t) node_[t % n_classes()] += counts_[t];
        total_ = std::accumulate(node_.begin(), node_.end(), 0.0);
    }

    // Entropy of the classes times their rows.
    static double information(std::span<const double> counts) {
        double total = 0.0;
        double sum = 0.0;
        for (const double count : counts) {
            total += count;
            sum += x_log_x(count);
        }
        return x_log_x(total) - sum;
    }

    std::span<const double> bin(std::size_t b) const {
        return std::span(counts_).subspan(b * n_classes(), n_classes());
    }
    static double sum(std::span<const double> counts) {
        return std::accumulate(counts.begin(), counts.end(), 0.0);
    }

    Split best_cut(std::size_t a) {
        const double share = fraction_demanded * total_ / static_cast<double>(n_classes());
        const double minimum = std::max(min_samples_leaf_, std::min(share, most_rows_demanded));
        if (total_ + tolerance < 2.0 * minimum) return {};
        const double before = information(node_);
        const auto n_bins = static_cast<std::size_t>(shape_.n_bins[a]);
        std::vector<double> left(n_classes(), 0.0), right = node_;
        std::size_t n_cuts = 0, last = 0;
        double n_left = 0.0, best_gain = 0.0, best_left = 0.0, to_beat = tolerance * total_;
        Split best;
        bool just_found = false;
        for (std::size_t b = 0; b < n_bins; ++b) {
            const double here = sum(bin(b));
            if (here <= 0.0) continue;
            // Halfway through the bins that no row is in.
            if (just_found) best.cut = static_cast<std::uint32_t>(last + (b - last - 1) / 2);
            just_found = false;
            last = b;
            for (std::size_t j = 0; j < n_classes(); ++j) {
                left[j] += bin(b)[j];
                right[j] = std::max(0.0, right[j] - bin(b)[j]);
            }
            n_left += here;
            if (n_left + tolerance < minimum) continue;
            if (total_ - n_left + tolerance < minimum) break;
            ++n_cuts;
            const double gain = before - information(left) - information(right);
            if (gain <= to_beat) continue;
            best_gain = gain / total_;
            to_beat = gain + tolerance * total_;
            best_left = n_left;
            best.cut = static_cast<std::uint32_t>(b);
            just_found = true;
        }
        if (n_cuts == 0) return {};
        best.gain = best_gain - std::log2(static_cast<double>(n_cuts)) / total_;
        if (best.gain <= tolerance) return {};
        best.attribute = static_cast<int>(a);
        best.split_information =
            (x_log_x(total_) - x_log_x(best_left) - x_log_x(total_ - best_left)) / total_;
        return best;
    }

    Split one_branch_each(std::size_t a) const {
        std::size_t large_enough = 0;
        double after = 0.0, branches = 0.0;
        for (std::size_t b = 0; b < static_cast<std::size_t>(shape_.n_bins[a]); ++b) {
            const double here = sum(bin(b));
            if (here > 0.0 && here + tolerance >= min_samples_leaf_) ++large_enough;
            after += information(bin(b));
            branches += x_log_x(here);
        }
        if (large_enough < 2) return {};
        const double gain = (information(node_) - after) / total_;
        return {static_cast<int>(a), 0, gain, (x_log_x(total_) - branches) / total_};
    }

    bool is_pure() const {
        return std::any_of(node_.begin(), node_.end(),
                           [this](double count) { return count >= total_ - tolerance; });
    }

    Split choose(const Whole* histograms) {
        std::vector<Split> candidates;
        double gains = 0.0, averaged = 0.0;
        for (std::size_t a = 0; a < numeric_.size(); ++a) {
            if (shape_.n_bins[a] < 1) continue;
            count(a, histograms);
            if (total_ + tolerance < 2.0 * min_samples_leaf_ || is_pure()) return {};
            const Split split = numeric_[a] != 0 ? best_cut(a) : one_branch_each(a);
            if (!split.found()) continue;
            candidates.push_back(split);
            if (some_attribute_averages_ && numeric_[a] == 0 && has_many_categories(a)) continue;
            gains += split.gain;
            averaged += 1.0;
        }
        const double average = averaged > 0.0 ? gains / averaged : 0.0;
        Split best;
        double best_ratio = 0.0;
        for (const Split& split : candidates) {
            if (split.gain < average - average_gain_allowance) continue;
            if (split.gain_ratio() > best_ratio + tolerance) {
                best = split;
                best_ratio = split.gain_ratio();
            }
        }
        return best;
    }

    HistogramShape shape_;
    std::span<const std::uint8_t> numeric_;
    std::span<const std::int32_t> fills_;
    std::vector<std::size_t> starts_;
    double all_rows_, min_samples_leaf_, unit_;
    bool some_attribute_averages_ = false;
    std::vector<double> counts_, node_;
    double total_ = 0.0;
};

}  // namespace caltree
