// The C4.5 split of one node: the best cut of every attribute, then the choice among attributes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "data/stop.hpp"
#include "published/entropy.hpp"
#include "published/tally.hpp"

namespace caltree {

inline constexpr double most_rows_demanded = 25.0;  // of a branch of a numeric split
inline constexpr double fraction_demanded = 0.1;    // of the node's rows, shared by the classes
inline constexpr double many_categories = 0.3;  // as a fraction of all rows, also in a fold's tree
inline constexpr double average_gain_allowance = 1e-3;  // a gain may lie this far below average

struct Split {
    int attribute = -1;       // -1: no split
    std::uint32_t cut = 0;    // numeric: rows of code <= cut go left
    std::uint32_t above = 0;  // numeric, until the cut is moved: the lowest code to its right
    double gain = 0.0;        // information gain, in bits per row
    double split_information = 0.0;  // entropy of the branch sizes, in bits per row

    bool found() const { return attribute >= 0; }
    double gain_ratio() const { return gain / split_information; }
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
    // Rows that are skipped together.
    static constexpr std::uint32_t large_block = 32, small_block = 8;

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

    // Skips blocks of rows in which no cut is worth a look, large ones and then a part of the next;
    // returns where it stopped.
    std::size_t skip(const Column& column, std::span<Entries::Entry> order, std::size_t i,
                     TwoClassTally& tally, const Demands& demands, std::size_t& n_cuts) const {
        if (static_cast<double>(i + 1) + tolerance < demands.minimum) return i;
        const double last = demands.total + tolerance - demands.minimum;
        double here = tally.information();
        std::uint32_t rows = i % large_block == 0 ? large_block : small_block;
        while (true) {
            if (i + rows + 1 >= order.size() || static_cast<double>(i + rows) > last) break;
            const std::uint32_t second = entries_.count_second(order.data() + i, rows);
            const std::uint32_t first = rows - second;
            const double after = tally.information_after(first, second);
            const double extremes =
                std::min(tally.information_after(first, 0), tally.information_after(0, second));
            if (std::min(std::min(here, after), extremes) < demands.information) {
                if (rows == small_block) break;
                rows = small_block;
                continue;
            }
            n_cuts += count_cuts(column, order.subspan(i, rows + 1));
            tally.move_left(rows, second);
            i += rows;
            here = after;
            if (i % large_block == 0) rows = large_block;
        }
        return i;
    }

    // The most that a cut between blocks of rows gains: blocks in which none gains as much need no
    // look from the start.
    double gain_between_blocks(std::span<const Entries::Entry> order, TwoClassTally tally,
                               const Demands& demands, double before) const {
        double most = 0.0;
        for (std::size_t i = small_block; i + 1 < order.size(); i += small_block) {
            const Entries::Entry* block = order.data() + i - small_block;
            tally.move_left(small_block, entries_.count_second(block, small_block));
            if ((order[i - 1] & Entries::cut_may_follow) == 0) continue;
            const double n_left = static_cast<double>(i);
            if (n_left + tolerance < demands.minimum) continue;
            if (demands.total - n_left + tolerance < demands.minimum) break;
            most = std::max(most, before - tally.information());
        }
        return most;
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
                   const ClassCounts<Counting>& node, AnyTally tally,
                   bool from_blocks = true) const {
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
        // A cut must beat the best so far by the tolerance. The cuts that a known gain lets us
        // leave out lie up to three tolerances below it, and the best of them would have ruled out
        // others up to two below it: if one of these comes first, all cuts are looked at.
        double certain = 0.0;
        if constexpr (AnyTally::skips) {
            if (from_blocks && entries_.hold_labels()) {
                const double known =
                    gain_between_blocks(order, tally, {minimum, total, 0.0}, before);
                to_beat = std::max(to_beat, known - 3.0 * tolerance * total);
                certain = known - 2.0 * tolerance * total;
            }
        }
        for (std::size_t i = 0; i + 1 < order.size(); ++i) {
            if constexpr (AnyTally::skips) {
                if (i >= looked_at) {
                    i = skip(column, order, i, tally, {minimum, total, before - to_beat + rounding},
                             n_cuts);
                    looked_at = i + small_block;
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
                if (best_left == 0 && gain <= certain) {
                    return best_cut(column, order, node, AnyTally(node, counting_), false);
                }
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
