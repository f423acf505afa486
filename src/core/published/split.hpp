// The C4.5 split of one node: the best cut of every attribute, then the choice among attributes.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "data/stop.hpp"
#include "published/entropy.hpp"

namespace caltree {

inline constexpr double most_rows_demanded = 25.0;  // of a branch of a numeric split
inline constexpr double fraction_demanded = 0.1;    // of the node's rows, shared by the classes
inline constexpr double many_categories = 0.3;  // as a fraction of all rows, also in a fold's tree
inline constexpr double average_gain_allowance = 1e-3;  // a gain may lie this far below average

struct Split {
    int attribute = -1;       // -1: no split
    std::uint32_t cut = 0;    // numeric: rows of code <= cut go left
    std::uint32_t above = 0;  // numeric, until the cut is moved: the lowest code to its right
    double gain = 0.0;        // information gain, in bits a row
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

// A row in a sorted order, in 32 bits: its number, its class where there is room for it, and on top
// whether a cut may follow it whatever comes next. It saves the scan nearly all its look-ups.
class Entries {
  public:
    using Entry = std::uint32_t;

    Entries(std::size_t n_rows, std::size_t n_classes)
        : row_bits_(static_cast<int>(std::bit_width(n_rows))),
          holds_label_(row_bits_ + static_cast<int>(std::bit_width(n_classes)) <= 31) {}

    Entry make(Row row, Label label) const {
        return holds_label_ ? row | (Entry{label} << row_bits_) : row;
    }
    Row row(Entry entry) const {
        return entry & (holds_label_ ? (Entry{1} << row_bits_) - 1 : ~cut_may_follow);
    }
    Label label(Entry entry, std::span<const Label> labels) const {
        return holds_label_ ? static_cast<Label>((entry & ~cut_may_follow) >> row_bits_)
                            : labels[row(entry)];
    }

    // Of `count` entries that hold labels of two classes: how many are of the second one.
    std::uint32_t count_second(const Entry* first, std::size_t count) const {
        std::uint32_t second = 0;
        for (std::size_t i = 0; i < count; ++i) second += (first[i] & ~cut_may_follow) >> row_bits_;
        return second;
    }
    bool hold_labels() const { return holds_label_; }

    static constexpr Entry cut_may_follow = Entry{1} << 31;

  private:
    int row_bits_;
    bool holds_label_;
};

// The class counts on both sides of a cut that moves to the right, a row at a time, and the sums
// of x log2 x over them.
template <class Counting>
class Tally {
  public:
    using Count = typename Counting::Count;

    static constexpr bool skips = false;

    Tally(const ClassCounts<Counting>& node, const Counting& counting)
        : counting_(counting),
          left_(node.counts.size(), Count{0}),
          right_(node.counts),
          total_(node.total),
          right_sum_(node.sum_of_x_log_x(counting)) {}

    void move_left(Label label, Count weight) {
        left_sum_ += counting_.growth(left_[label], weight);
        left_[label] += weight;
        right_[label] -= weight;
        right_sum_ -= counting_.growth(right_[label], weight);
        n_left_ += weight;
    }

    Count n_left() const { return n_left_; }

    // Entropy of the classes on either side times its rows.
    double information() const {
        return (counting_.value(n_left_) - left_sum_) +
               (counting_.value(total_ - n_left_) - right_sum_);
    }

  private:
    const Counting& counting_;
    std::vector<Count> left_, right_;
    Count n_left_ = 0, total_;
    double left_sum_ = 0.0, right_sum_;
};

// The same for two classes and rows that count once: two numbers say it all. What a cut leaves is
// concave in them, so that among many cuts none leaves less than the extremes of the two do: whole
// blocks of rows can be skipped.
class TwoClassTally {
  public:
    using Count = UnitCounting::Count;
    static constexpr bool skips = true;

    TwoClassTally(const ClassCounts<UnitCounting>& node, const UnitCounting& counting)
        : counting_(counting), first_(node.counts[0]), second_(node.counts[1]) {}

    void move_left(Label label, Count) {
        left_second_ += label;
        ++n_left_;
    }

    // The same for many rows, of which so many are of the second class.
    void move_left(Count rows, Count second) {
        left_second_ += second;
        n_left_ += rows;
    }

    Count n_left() const { return n_left_; }

    double information() const { return information(n_left_ - left_second_, left_second_); }

    // What a cut leaves after rows of either class.
    double information_after(Count first, Count second) const {
        return information(n_left_ - left_second_ + first, left_second_ + second);
    }

  private:
    double information(Count left_first, Count left_second) const {
        const Count n_left = left_first + left_second;
        const double left =
            counting_.value(n_left) - (counting_.value(left_first) + counting_.value(left_second));
        const double right =
            counting_.value(first_ + second_ - n_left) -
            (counting_.value(first_ - left_first) + counting_.value(second_ - left_second));
        return left + right;
    }

    const UnitCounting& counting_;
    Count first_, second_;
    Count n_left_ = 0, left_second_ = 0;
};

template <class Counting>
class SplitFinder {
  public:
    using Count = typename Counting::Count;

    SplitFinder(const Data& data, const Entries& entries, const Counting& counting, double all_rows,
                double min_samples_leaf)
        : data_(data),
          entries_(entries),
          counting_(counting),
          all_rows_(all_rows),
          min_samples_leaf_(min_samples_leaf) {
        std::uint32_t most = 0;
        for (const Column& column : data.columns.columns) {
            if (column.numeric) continue;
            most = std::max(most, column.n_codes);
            nominal_with_few_ = nominal_with_few_ || !has_many_categories(column);
        }
        branches_.assign(most, ClassCounts<Counting>(data.n_classes));
        some_attribute_averages_ = nominal_with_few_ || any_numeric();
    }

    // `order(attribute)` is the entries of the node's rows, sorted by that numeric attribute;
    // `all_marked` says whether all entries are marked that a cut may follow.
    template <class Order>
    Split find(std::span<const Row> rows, const ClassCounts<Counting>& node, Order&& order,
               bool all_marked) {
        all_marked_ = all_marked;
        const double total = static_cast<double>(node.total);
        if (total + tolerance < 2.0 * min_samples_leaf_ || node.pure()) return {};
        candidates_.clear();
        const auto& columns = data_.columns.columns;
        for (std::size_t a = 0; a < columns.size(); ++a) {
            stop_check_.count(rows.size());
            Split split = columns[a].numeric ? best_cut(columns[a], order(a), node)
                                             : one_branch_each(columns[a], rows, node);
            if (split.attribute < 0) continue;
            split.attribute = static_cast<int>(a);
            candidates_.push_back(split);
        }
        Split chosen = choose();
        if (chosen.found()) move_cut(chosen);
        return chosen;
    }

  private:
    static constexpr std::uint32_t block_rows = 32;  // that are skipped together

    bool any_numeric() const {
        return std::any_of(data_.columns.columns.begin(), data_.columns.columns.end(),
                           [](const Column& column) { return column.numeric; });
    }

    bool has_many_categories(const Column& column) const {
        return static_cast<double>(column.n_codes) + tolerance >= many_categories * all_rows_;
    }

    double demanded(double total) const {
        const double share = fraction_demanded * total / static_cast<double>(data_.n_classes);
        return std::max(min_samples_leaf_, std::min(share, most_rows_demanded));
    }

    std::uint32_t code(const Column& column, Entries::Entry entry) const {
        return column.codes[entries_.row(entry)];
    }

    Count weight(Entries::Entry entry) const {
        if constexpr (std::is_same_v<Counting, UnitCounting>) return 1;
        return counting_.weight(entries_.row(entry));
    }

    // Whether a cut may separate two neighbours in the sorted order, of which the first one is not
    // marked.
    bool may_cut(const Column& column, Entries::Entry entry, Entries::Entry next) const {
        return !all_marked_ && column.far_apart(code(column, entry), code(column, next));
    }

    struct Demands {
        double minimum, total;  // rows on either side of a cut, rows in all
        double information;     // a cut that leaves this or more is not worth a look
    };

    // Skips blocks of rows in which no cut is worth a look; returns where it stopped.
    std::size_t skip(const Column& column, std::span<Entries::Entry> order, std::size_t i,
                     TwoClassTally& tally, const Demands& demands, std::size_t& n_cuts) const {
        if (static_cast<double>(i + 1) + tolerance < demands.minimum) return i;
        const double last = demands.total + tolerance - demands.minimum;
        double here = tally.information();
        while (i + block_rows + 1 < order.size() && static_cast<double>(i + block_rows) <= last) {
            const std::uint32_t second = entries_.count_second(order.data() + i, block_rows);
            const std::uint32_t first = block_rows - second;
            const double after = tally.information_after(first, second);
            const double extremes =
                std::min(tally.information_after(first, 0), tally.information_after(0, second));
            if (std::min(std::min(here, after), extremes) < demands.information) break;
            n_cuts += count_cuts(column, order.subspan(i, block_rows + 1));
            tally.move_left(block_rows, second);
            i += block_rows;
            here = after;
        }
        return i;
    }

    // How many cuts there may be between neighbours; marks them.
    std::size_t count_cuts(const Column& column, std::span<Entries::Entry> order) const {
        std::size_t count = 0;
        for (std::size_t i = 0; i + 1 < order.size(); ++i) {
            count += order[i] / Entries::cut_may_follow;  // the highest bit: 0 or 1
        }
        if (all_marked_ || count + 1 == order.size()) return count;
        for (std::size_t i = 0; i + 1 < order.size(); ++i) {
            if ((order[i] & Entries::cut_may_follow) != 0) continue;
            if (!may_cut(column, order[i], order[i + 1])) continue;
            order[i] |= Entries::cut_may_follow;
            ++count;
        }
        return count;
    }

    Split best_cut(const Column& column, std::span<Entries::Entry> order,
                   const ClassCounts<Counting>& node) const {
        if constexpr (std::is_same_v<Counting, UnitCounting>) {
            if (data_.n_classes == 2) {
                return best_cut(column, order, node, TwoClassTally(node, counting_));
            }
        }
        return best_cut(column, order, node, Tally<Counting>(node, counting_));
    }

    template <class AnyTally>
    Split best_cut(const Column& column, std::span<Entries::Entry> order,
                   const ClassCounts<Counting>& node, AnyTally tally) const {
        const double total = static_cast<double>(node.total);
        const double minimum = demanded(total);
        if (total + tolerance < 2.0 * minimum) return {};
        const double before = node.information(counting_);
        std::size_t n_cuts = 0;
        std::size_t best = 0;
        double best_gain = 0.0;
        double to_beat = tolerance * total;
        // More than the rounding errors of a gain, which is made of a few numbers of this size.
        const double rounding = 0x1p-46 * counting_.value(node.total);
        Count best_left = 0;
        // Up to here no block is skipped.
        std::size_t looked_at = entries_.hold_labels() ? 0 : order.size();
        for (std::size_t i = 0; i + 1 < order.size(); ++i) {
            if constexpr (AnyTally::skips) {
                if (i >= looked_at) {
                    i = skip(column, order, i, tally, {minimum, total, before - to_beat + rounding},
                             n_cuts);
                    looked_at = i + block_rows;
                }
            }
            const Entries::Entry entry = order[i];
            tally.move_left(entries_.label(entry, data_.labels), weight(entry));
            if ((entry & Entries::cut_may_follow) == 0) {
                if (!may_cut(column, entry, order[i + 1])) continue;
                order[i] |= Entries::cut_may_follow;  // further down the next value is no nearer
            }
            const double n_left = static_cast<double>(tally.n_left());
            if (n_left + tolerance < minimum) continue;
            if (total - n_left + tolerance < minimum) break;
            ++n_cuts;
            const double gain = before - tally.information();
            if (gain > to_beat) {
                best_gain = gain / total;
                to_beat = gain + tolerance * total;
                best = i;
                best_left = tally.n_left();
            }
        }
        if (n_cuts == 0) return {};
        const double gain = best_gain - std::log2(static_cast<double>(n_cuts)) / total;
        if (gain <= tolerance) return {};
        const std::uint32_t lower = code(column, order[best]);
        const std::uint32_t upper = code(column, order[best + 1]);
        const double information = counting_.value(node.total) - counting_.value(best_left) -
                                   counting_.value(node.total - best_left);
        return {0, lower, upper, gain, information / total};
    }

    static double midpoint(double lower, double upper) {
        const double middle = (lower + upper) / 2.0;
        return std::isfinite(middle) ? middle : lower / 2.0 + upper / 2.0;
    }

    // Halfway between two values, moved down to the largest known value that is not above it.
    static std::uint32_t cut_between(const Column& column, std::uint32_t lower,
                                     std::uint32_t upper) {
        const double halfway = midpoint(column.value(lower), column.value(upper));
        while (upper - lower > 1) {  // the value of lower is not above halfway, that of upper is
            const std::uint32_t middle = lower + (upper - lower) / 2;
            (column.value(middle) <= halfway ? lower : upper) = middle;
        }
        return lower;
    }

    void move_cut(Split& split) const {
        const Column& column = data_.columns.columns[static_cast<std::size_t>(split.attribute)];
        if (column.numeric) split.cut = cut_between(column, split.cut, split.above);
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
        return {0, 0, 0, gain, information / total};
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
    const Entries& entries_;
    const Counting& counting_;
    double all_rows_;
    double min_samples_leaf_;
    bool nominal_with_few_ = false;
    bool some_attribute_averages_ = false;
    bool all_marked_ = false;
    std::vector<ClassCounts<Counting>> branches_;
    std::vector<std::uint32_t> seen_;
    std::vector<Split> candidates_;
    StopCheck stop_check_;
};

}  // namespace caltree
