// Class counts of rows, of those on either side of a cut, and rows in a sorted order.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "published/entropy.hpp"

namespace caltree {

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

}  // namespace caltree
