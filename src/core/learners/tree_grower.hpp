// Grows regression trees: nominal attributes are split into all categories, and rows without a
// value are dealt out.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "learners/presorted.hpp"
#include "learners/regression_trees.hpp"
#include "learners/splitter.hpp"

namespace caltree {

template <class Index>
class TreeGrower {
  public:
    TreeGrower(const Presorted<Index>& table, std::size_t max_depth)
        : table_(table),
          max_depth_(max_depth),
          splitter_(table, false),
          evidence_(table.n_places()),
          branch_(table.n_places(), -1),  // that of common values stays
          is_dealt_(table.n_rows()) {}

    // Appends a tree for each regression, and says what it predicts for each row of the table.
    void grow(std::span<const Regression> given, RegressionTrees& trees) {
        trees_ = &trees;
        regressed_.resize(given.size());
        for (std::size_t j = 0; j < given.size(); ++j) {
            centre(given[j], table_.n_places(), regressed_[j]);
        }
        splitter_.find_best(regressed_);
        for (std::size_t j = 0; j < given.size(); ++j) grow(given[j], regressed_[j]);
    }

  private:
    static constexpr double least_variance = 1e-3;  // of that of all rows: a node needs more
    static constexpr double least_gain = 1e-12;
    static constexpr std::size_t spare = 2;

    struct Moments {
        double total = 0.0, first = 0.0, second = 0.0;
        Moments operator+(const Moments& o) const {
            return {total + o.total, first + o.first, second + o.second};
        }
        double mean() const { return first / total; }
        double variance() const { return second / total - mean() * mean(); }
    };

    // The children of a node, and the orders of their rows.
    struct Children {
        std::vector<Row> rows;
        std::vector<Ranked<Index>> ranked;
        std::vector<std::size_t> known;
        std::vector<std::size_t> begin;   // of the rows of each child, and the end
        std::vector<double> weight;       // of the child that is grown, if rows were dealt out
        std::vector<Moments> within;      // the sums of each child, dealt rows apart
        std::vector<std::uint8_t> grows;  // whether a child is more than a leaf

        std::size_t count() const { return begin.size() - 1; }
        std::size_t size(std::size_t child) const { return begin[child + 1] - begin[child]; }
    };

    Moments moments(Row row, double weight) const {
        const double weighted = weight * response_[row];
        return {weight, weighted, weighted * response_[row]};
    }

    Moments moments(std::span<const Row> rows, std::span<const double> weight) const {
        Moments sum;
        for (const Row row : rows) sum = sum + moments(row, weight[row]);
        return sum;
    }

    void grow(const Regression& given, const Regressed& regressed) {
        response_ = given.response;
        predicted_ = given.predicted;
        any_dealt_ = false;
        const std::size_t root = trees_->add_tree(regressed.mean);
        const Part<Index> everything = table_.everything();
        if (regressed.best.gain > least_gain) {
            least_variance_ = least_variance * moments(everything.rows, given.weight).variance();
            grow_below(root, everything, given.weight, regressed.best, 0);
        } else {
            set_leaf(everything.rows, regressed.mean);
        }
        if (any_dealt_) predict_dealt(root);
    }

    void grow(std::size_t node, const Part<Index>& part, std::span<const double> weight,
              const Moments& sum, std::size_t depth) {
        const double mean = trees_->value[node] = sum.mean();
        if (sum.variance() < least_variance_) return set_leaf(part.rows, mean);
        for (const Row row : part.rows) {
            evidence_[row] = {weight[row], weight[row] * (response_[row] - mean)};
        }
        const Split best = splitter_.best(part, evidence_, sum.total);
        if (!(best.gain > least_gain)) return set_leaf(part.rows, mean);
        grow_below(node, part, weight, best, depth);
    }

    void grow_below(std::size_t node, const Part<Index>& part, std::span<const double> weight,
                    const Split& best, std::size_t depth) {
        while (levels_.size() <= depth) levels_.emplace_back();
        Children& children = levels_[depth];
        split(node, part, best, weight, children);
        if (depth + 1 == max_depth_) {
            set_leaves(node, part.rows, children);
        } else {
            find_growing(node, part.rows, children);
            divide(part, children);
            grow_children(node, weight, children, depth);
        }
    }

    void set_leaf(std::span<const Row> rows, double value) {
        for (const Row row : rows) predicted_[row] = value;
    }

    // Notes the split in the node, with leaves, the branches of the rows, and the sums of each.
    void split(std::size_t node, const Part<Index>& part, const Split& best,
               std::span<const double> weight, Children& children) {
        const bool numeric = table_.is_numeric(best.attribute);
        const std::size_t place = table_.place(best.attribute);
        const std::size_t count = numeric ? 2 : table_.n_categories(place);
        const std::size_t first = trees_->add_leaves(count, trees_->value[node]);
        trees_->set_children(node, best.attribute, first, count);
        children.within.assign(count, {});
        children.begin.assign(count + 1, 0);
        missing_ = {};
        n_missing_ = 0;
        if (numeric) {
            const auto [low, high] = table_.around(part, best.attribute, best.choice);
            const double middle = 0.5 * low + 0.5 * high;
            trees_->cut[node] = middle > low ? middle : high;  // there may be none between the two
        }
        if (numeric && table_.all_known(part, place)) {
            add_two_branches(node, part.rows, weight, children);
        } else {
            add_branches(node, part.rows, weight, children);
        }
        double known = 0.0;
        for (const Moments& sum : children.within) known += sum.total;
        for (std::size_t c = 0; c < count; ++c) {
            trees_->share[first + c] = children.within[c].total / known;
        }
    }

    // Without missing values. Each row counts for one branch and for nothing in the other, without
    // a jump.
    void add_two_branches(std::size_t node, std::span<const Row> rows,
                          std::span<const double> weight, Children& children) {
        const double cut = trees_->cut[node];
        const ColumnView column = table_.column(static_cast<std::size_t>(trees_->attribute[node]));
        Moments low, high;
        std::size_t n_high = 0;
        for (const Row row : rows) {
            const bool is_high = column[row] >= cut;
            const Moments one = moments(row, weight[row]);
            branch_[row] = is_high;
            n_high += is_high;
            low = low + (is_high ? Moments{} : one);
            high = high + (is_high ? one : Moments{});
        }
        children.within = {low, high};
        children.begin = {0, rows.size() - n_high, n_high};
    }

    void add_branches(std::size_t node, std::span<const Row> rows, std::span<const double> weight,
                      Children& children) {
        const ColumnView column = table_.column(static_cast<std::size_t>(trees_->attribute[node]));
        for (const Row row : rows) {
            const std::int32_t b = branch_[row] = branch(column[row], trees_->cut[node], -1);
            const Moments one = moments(row, weight[row]);
            if (b < 0) {
                missing_ = missing_ + one;
                ++n_missing_;
                is_dealt_[row] = 1;
                any_dealt_ = true;
            } else {
                Moments& sum = children.within[static_cast<std::size_t>(b)];
                sum = sum + one;
                ++children.begin[static_cast<std::size_t>(b) + 1];
            }
        }
    }

    // The children of a node that are not split any more.
    void set_leaves(std::size_t node, std::span<const Row> rows, const Children& children) {
        const auto first = static_cast<std::size_t>(trees_->first_child[node]);
        for (std::size_t c = 0; c < children.count(); ++c) {
            const double share = trees_->share[first + c];
            const double within = children.within[c].total + share * missing_.total;
            if (within > 0.0) {
                const double sum = children.within[c].first + share * missing_.first;
                trees_->value[first + c] = sum / within;
            }
        }
        for (const Row row : rows) {
            if (branch_[row] < 0) continue;
            predicted_[row] = trees_->value[first + static_cast<std::size_t>(branch_[row])];
        }
    }

    // Sets the children that are leaves: those without weight, which keep the value of the node,
    // and those that vary too little.
    void find_growing(std::size_t node, std::span<const Row> rows, Children& children) {
        const auto first = static_cast<std::size_t>(trees_->first_child[node]);
        children.grows.assign(children.count(), 1);
        bool any_leaf = false;
        for (std::size_t c = 0; c < children.count(); ++c) {
            const Moments& within = children.within[c];
            const bool has_weight = trees_->share[first + c] > 0.0;
            if (has_weight && (n_missing_ > 0 || !(within.variance() < least_variance_))) continue;
            if (has_weight) trees_->value[first + c] = within.mean();
            children.grows[c] = 0;
            any_leaf = true;
        }
        if (!any_leaf) return;
        for (const Row row : rows) {
            const auto c = static_cast<std::size_t>(branch_[row]);
            if (branch_[row] >= 0 && children.grows[c] == 0) {
                predicted_[row] = trees_->value[first + c];
            }
        }
    }

    // Copies the rows and orders of a node to the children that grow.
    void divide(const Part<Index>& part, Children& children) {
        const std::size_t count = children.count();
        for (std::size_t c = 0; c < count; ++c) {
            std::size_t& end = children.begin[c + 1];
            end = children.begin[c] + (children.grows[c] != 0 ? end + n_missing_ : 0);
        }
        const std::size_t n_numeric = table_.numeric().size();
        // A child has places more than it needs, since the faster ways below write too many.
        children.rows.resize(children.begin[count] + spare * count);
        children.ranked.resize(children.begin[count] * n_numeric + spare * count);
        children.known.resize(count * n_numeric);
        to_rows_.clear();
        for (std::size_t c = 0; c < count; ++c) {
            to_rows_.push_back(children.rows.data() + children.begin[c]);
        }
        if (children.begin[count] == 0) return;
        for (const Row row : part.rows) send(branch_[row], children, to_rows_, row);
        const bool is_plain = n_missing_ == 0 && count == 2;
        for (std::size_t k = 0; k < n_numeric; ++k) {
            if (is_plain && children.grows[0] != 0 && children.grows[1] != 0) {
                divide_in_two(part.order(k), k, children);
            } else if (is_plain) {
                choose(part.order(k), k, children.grows[0] != 0 ? 0 : 1, children);
            } else {
                divide(part.order(k), k, children);
            }
            if (table_.has_common(k)) drop_common(k, children);
        }
    }

    // A child without a row of the common value has no place for it.
    void drop_common(std::size_t k, Children& children) {
        for (std::size_t c = 0; c < children.count(); ++c) {
            std::size_t& known = children.known[c * table_.numeric().size() + k];
            if (children.grows[c] == 0 || known <= children.size(c)) continue;
            Ranked<Index>* order = place(children, c, k);
            known =
                static_cast<std::size_t>(std::remove_if(order, order + known,
                                                        [&](const Ranked<Index>& one) {
                                                            return one.row == table_.common_row(k);
                                                        }) -
                                         order);
        }
    }

    template <class T>
    static void send(std::int32_t b, const Children& children, std::vector<T*>& to, const T& what) {
        for (std::size_t c = 0; b < 0 && c < to.size(); ++c) {
            if (children.grows[c] != 0) *to[c]++ = what;
        }
        if (b >= 0 && children.grows[static_cast<std::size_t>(b)] != 0) {
            *to[static_cast<std::size_t>(b)]++ = what;
        }
    }

    Ranked<Index>* place(Children& children, std::size_t child, std::size_t k) const {
        return children.ranked.data() + children.begin[child] * table_.numeric().size() +
               spare * child + k * children.size(child);
    }

    void divide(std::span<const Ranked<Index>> order, std::size_t k, Children& children) {
        to_ranked_.clear();
        for (std::size_t c = 0; c < children.count(); ++c) {
            to_ranked_.push_back(place(children, c, k));
        }
        for (const Ranked<Index>& one : order) send(branch_[one.row], children, to_ranked_, one);
        for (std::size_t c = 0; c < children.count(); ++c) {
            children.known[c * table_.numeric().size() + k] =
                static_cast<std::size_t>(to_ranked_[c] - place(children, c, k));
        }
    }

    // Writes each to both and moves on in one of them, which takes no guess of the processor's.
    // Common values belong to both.
    void divide_in_two(std::span<const Ranked<Index>> order, std::size_t k, Children& children) {
        Ranked<Index>* low = place(children, 0, k);
        Ranked<Index>* high = place(children, 1, k);
        const std::int32_t* branch = branch_.data();
        std::size_t n_both = 0, n_high = 0;
        const auto divide = [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) {
                const Ranked<Index> one = order[i];
                low[i + n_both - n_high] = one;
                high[n_high] = one;
                n_high += static_cast<std::size_t>(branch[one.row]);
            }
        };
        const std::size_t common = table_.has_common(k) ? place_of_common(order, k) : order.size();
        divide(0, common);
        if (common < order.size()) {
            low[common - n_high] = order[common];
            high[n_high++] = order[common];
            n_both = 1;
            divide(common + 1, order.size());
        }
        children.known[k] = order.size() + n_both - n_high;
        children.known[table_.numeric().size() + k] = n_high;
    }

    std::size_t place_of_common(std::span<const Ranked<Index>> order, std::size_t k) const {
        const auto found =
            std::ranges::lower_bound(order, table_.common_rank(k), {}, &Ranked<Index>::rank);
        const auto place = static_cast<std::size_t>(found - order.begin());
        return found != order.end() && found->row == table_.common_row(k) ? place : order.size();
    }

    // The same, if one child grows.
    void choose(std::span<const Ranked<Index>> order, std::size_t k, std::int32_t child,
                Children& children) {
        const auto c = static_cast<std::size_t>(child);
        Ranked<Index>* to = place(children, c, k);
        const std::int32_t* branch = branch_.data();
        std::size_t count = 0;
        for (const Ranked<Index> one : order) {
            to[count] = one;
            count += branch[one.row] == child || branch[one.row] < 0;
        }
        children.known[c * table_.numeric().size() + k] = count;
    }

    void grow_children(std::size_t node, std::span<const double> weight, Children& children,
                       std::size_t depth) {
        const std::size_t n_numeric = table_.numeric().size();
        const auto first = static_cast<std::size_t>(trees_->first_child[node]);
        const bool has_missing = n_missing_ > 0;
        for (std::size_t c = 0; c < children.count(); ++c) {
            if (children.grows[c] == 0) continue;
            const double share = trees_->share[first + c];
            const Part<Index> part{{children.rows.data() + children.begin[c], children.size(c)},
                                   place(children, c, 0),
                                   children.known.data() + c * n_numeric};
            if (has_missing) {
                deal(node, part.rows, weight, share, children.weight);
                grow(first + c, part, children.weight, moments(part.rows, children.weight),
                     depth + 1);
            } else {
                grow(first + c, part, weight, children.within[c], depth + 1);
            }
        }
    }

    // The weights of a child's rows; those without a value count for its share.
    void deal(std::size_t node, std::span<const Row> rows, std::span<const double> weight,
              double share, std::vector<double>& dealt) const {
        dealt.resize(weight.size());
        const ColumnView column = table_.column(static_cast<std::size_t>(trees_->attribute[node]));
        for (const Row row : rows) {
            dealt[row] = std::isnan(column[row]) ? weight[row] * share : weight[row];
        }
    }

    void predict_dealt(std::size_t root) {
        const BorrowedRegressions trees = trees_->view();
        for (std::size_t i = 0; i < is_dealt_.size(); ++i) {
            if (is_dealt_[i] != 0) predicted_[i] = predict(trees, root, table_.table(), i);
            is_dealt_[i] = 0;
        }
    }

    const Presorted<Index>& table_;
    std::size_t max_depth_;
    Splitter<Index> splitter_;
    std::vector<Regressed> regressed_;
    std::vector<Evidence> evidence_;
    std::vector<std::int32_t> branch_;    // of the node that is being split
    std::vector<std::uint8_t> is_dealt_;  // whether a row was in several branches of the tree
    std::deque<Children> levels_;         // one a depth
    std::vector<Row*> to_rows_;
    std::vector<Ranked<Index>*> to_ranked_;
    RegressionTrees* trees_ = nullptr;  // that grow, and what they grow on
    std::span<const double> response_;
    std::span<double> predicted_;
    double least_variance_ = 0.0;
    Moments missing_;  // rows of the node without a value
    std::size_t n_missing_ = 0;
    bool any_dealt_ = false;
};

}  // namespace caltree
