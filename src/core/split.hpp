// The C4.5 split of one node: the best cut of every attribute, then the choice among attributes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "entropy.hpp"

namespace caltree {

inline constexpr double most_rows_demanded = 25.0;      // of a branch of a numeric split
inline constexpr double fraction_demanded = 0.1;        // of the node's rows, shared by the classes
inline constexpr double many_categories = 0.3;          // as a fraction of the tree's rows
inline constexpr double average_gain_allowance = 1e-3;  // a gain may lie this far below average

struct Split {
    int attribute = -1;              // -1: no split
    std::uint32_t cut = 0;           // numeric: rows of code <= cut go left
    double gain = 0.0;               // information gain, in bits a row
    double split_information = 0.0;  // entropy of the branch sizes, in bits a row

    bool found() const { return attribute >= 0; }
    double gain_ratio() const { return gain / split_information; }
};

// The class counts of a set of rows.
template <class Counting>
struct ClassCounts {
    using Count = typename Counting::Count;
    std::vector<Count> counts;
    Count total = 0;

    explicit ClassCounts(std::size_t n_classes) : counts(n_classes, Count{0}) {}

    void add(Label label, Count weight) {
        counts[label] += weight;
        total += weight;
    }
    void clear() {
        std::fill(counts.begin(), counts.end(), Count{0});
        total = Count{0};
    }
    void merge(const ClassCounts& other) {
        for (std::size_t j = 0; j < counts.size(); ++j) counts[j] += other.counts[j];
        total += other.total;
    }
    double sum_of_x_log_x(const Counting& counting) const {
        double sum = 0.0;
        for (const Count count : counts) sum += counting.value(count);
        return sum;
    }
    // Entropy of the classes times the number of rows.
    double information(const Counting& counting) const {
        return counting.value(total) - sum_of_x_log_x(counting);
    }
    bool pure() const {
        return std::any_of(counts.begin(), counts.end(), [this](Count count) {
            return static_cast<double>(count) >= static_cast<double>(total) - tolerance;
        });
    }
};

template <class Counting>
class SplitFinder {
  public:
    using Count = typename Counting::Count;

    SplitFinder(const Data& data, const Counting& counting, double tree_total,
                double min_samples_leaf)
        : data_(data),
          counting_(counting),
          tree_total_(tree_total),
          min_samples_leaf_(min_samples_leaf),
          left_(data.n_classes),
          right_(data.n_classes) {
        std::uint32_t most = 0;
        for (const Column& column : data.columns.columns) {
            if (column.numeric) continue;
            most = std::max(most, column.n_codes);
            nominal_with_few_ = nominal_with_few_ || !has_many_categories(column);
        }
        branches_.assign(most, ClassCounts<Counting>(data.n_classes));
        some_attribute_averages_ = nominal_with_few_ || any_numeric();
    }

    // `order(attribute)` is the node's rows sorted by that numeric attribute.
    template <class Order>
    Split find(std::span<const Row> rows, const ClassCounts<Counting>& node, Order&& order) {
        const double total = static_cast<double>(node.total);
        if (total + tolerance < 2.0 * min_samples_leaf_ || node.pure()) return {};
        candidates_.clear();
        const auto& columns = data_.columns.columns;
        for (std::size_t a = 0; a < columns.size(); ++a) {
            Split split = columns[a].numeric ? best_cut(columns[a], order(a), node)
                                             : one_branch_each(columns[a], rows, node);
            if (split.attribute < 0) continue;
            split.attribute = static_cast<int>(a);
            candidates_.push_back(split);
        }
        return choose();
    }

  private:
    bool any_numeric() const {
        return std::any_of(data_.columns.columns.begin(), data_.columns.columns.end(),
                           [](const Column& column) { return column.numeric; });
    }

    bool has_many_categories(const Column& column) const {
        return static_cast<double>(column.n_codes) + tolerance >= many_categories * tree_total_;
    }

    double demanded(double total) const {
        const double share = fraction_demanded * total / static_cast<double>(data_.n_classes);
        return std::max(min_samples_leaf_, std::min(share, most_rows_demanded));
    }

    // Whether a cut may separate two neighbours in the sorted order.
    static bool may_cut(const Column& column, std::uint32_t lower, std::uint32_t upper) {
        if (lower == upper) return false;
        return column.every_gap_counts || column.values[upper] - column.values[lower] > minimum_gap;
    }

    Split best_cut(const Column& column, std::span<const Row> order,
                   const ClassCounts<Counting>& node) {
        const double total = static_cast<double>(node.total);
        const double minimum = demanded(total);
        if (total + tolerance < 2.0 * minimum) return {};
        const bool all_differ = column.every_gap_counts && column.n_codes == data_.n_rows();
        left_.clear();
        right_.counts = node.counts;
        double left_sum = 0.0;
        double right_sum = node.sum_of_x_log_x(counting_);
        const double before = counting_.value(node.total) - right_sum;
        std::size_t n_cuts = 0;
        std::size_t best = 0;
        double best_gain = 0.0;
        Count best_left = 0;
        for (std::size_t i = 0; i + 1 < order.size(); ++i) {
            const Row row = order[i];
            const Label label = data_.labels[row];
            const Count weight = counting_.weight(row);
            left_sum += counting_.growth(left_.counts[label], weight);
            left_.add(label, weight);
            right_.counts[label] -= weight;
            right_sum -= counting_.growth(right_.counts[label], weight);
            if (!all_differ && !may_cut(column, column.codes[row], column.codes[order[i + 1]])) {
                continue;
            }
            const double n_left = static_cast<double>(left_.total);
            if (n_left + tolerance < minimum || total - n_left + tolerance < minimum) continue;
            ++n_cuts;
            const double after = counting_.value(left_.total) - left_sum +
                                 counting_.value(node.total - left_.total) - right_sum;
            const double gain = (before - after) / total;
            if (gain > best_gain + tolerance) {
                best_gain = gain;
                best = i;
                best_left = left_.total;
            }
        }
        if (n_cuts == 0) return {};
        const double gain = best_gain - std::log2(static_cast<double>(n_cuts)) / total;
        if (gain <= tolerance) return {};
        const std::uint32_t cut =
            cut_between(column, column.codes[order[best]], column.codes[order[best + 1]]);
        const double information = counting_.value(node.total) - counting_.value(best_left) -
                                   counting_.value(node.total - best_left);
        return {0, cut, gain, information / total};
    }

    static double midpoint(double lower, double upper) {
        const double middle = (lower + upper) / 2.0;
        return std::isfinite(middle) ? middle : lower / 2.0 + upper / 2.0;
    }

    // Halfway between two values, moved down to the largest known value that is not above it.
    static std::uint32_t cut_between(const Column& column, std::uint32_t lower,
                                     std::uint32_t upper) {
        const double halfway = midpoint(column.values[lower], column.values[upper]);
        const auto first = column.values.begin() + lower;
        const auto last = column.values.begin() + upper;
        const auto above = std::upper_bound(first, last, halfway);
        return static_cast<std::uint32_t>(above - column.values.begin()) - (above == first ? 0 : 1);
    }

    Split one_branch_each(const Column& column, std::span<const Row> rows,
                          const ClassCounts<Counting>& node) {
        seen_.clear();
        for (const Row row : rows) {
            ClassCounts<Counting>& branch = branches_[column.codes[row]];
            if (branch.total == Count{0}) seen_.push_back(column.codes[row]);
            branch.add(data_.labels[row], counting_.weight(row));
        }
        std::size_t large_enough = 0;
        double after = 0.0;
        double branch_sum = 0.0;
        for (const std::uint32_t code : seen_) {
            ClassCounts<Counting>& branch = branches_[code];
            if (static_cast<double>(branch.total) + tolerance >= min_samples_leaf_) ++large_enough;
            after += branch.information(counting_);
            branch_sum += counting_.value(branch.total);
            branch.clear();
        }
        if (large_enough < 2) return {};
        const double total = static_cast<double>(node.total);
        const double gain = (node.information(counting_) - after) / total;
        const double information = counting_.value(node.total) - branch_sum;
        return {0, 0, gain, information / total};
    }

    Split choose() const {
        double sum = 0.0;
        std::size_t count = 0;
        for (const Split& split : candidates_) {
            const Column& column = data_.columns.columns[static_cast<std::size_t>(split.attribute)];
            if (some_attribute_averages_ && !column.numeric && has_many_categories(column)) {
                continue;
            }
            sum += split.gain;
            ++count;
        }
        const double average = count > 0 ? sum / static_cast<double>(count) : 0.0;
        Split best;
        double best_ratio = 0.0;
        for (const Split& split : candidates_) {
            if (split.gain < average - average_gain_allowance) continue;
            if (split.gain_ratio() > best_ratio + tolerance) {
                best = split;
                best_ratio = split.gain_ratio();
            }
        }
        return best;
    }

    const Data& data_;
    const Counting& counting_;
    double tree_total_;
    double min_samples_leaf_;
    bool nominal_with_few_ = false;
    bool some_attribute_averages_ = false;
    ClassCounts<Counting> left_;
    ClassCounts<Counting> right_;
    std::vector<ClassCounts<Counting>> branches_;
    std::vector<std::uint32_t> seen_;
    std::vector<Split> candidates_;
};

}  // namespace caltree
