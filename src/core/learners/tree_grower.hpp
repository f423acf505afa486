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

#include "learners/children.hpp"
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
          is_high_(table.n_rows()),
          is_dealt_(table.n_rows()) {}

    // Appends a tree for each regression, and says what it predicts for each row of the table.
    void grow(std::span<const Regression> given, RegressionTrees& trees) {
        trees_ = &trees;
        regressed_.resize(given.size());
        for (std::size_t j = 0; j < given.size(); j += four) {
            const std::size_t count = std::min(four, given.size() - j);
            const std::span<Regressed> found{regressed_.data() + j, count};
            splitter_.find_best(given.subspan(j, count), found, root_evidence_);
        }
        for (std::size_t j = 0; j < given.size(); ++j) grow(given[j], regressed_[j]);
    }

  private:
    static constexpr double least_variance = 1e-3;  // of that of all rows: a node needs more
    static constexpr double least_gain = 1e-12;

    Moments moments(Row row, double weight) const {
        const double weighted = weight * response_[row];
        return {weight, weighted, weighted * response_[row]};
    }

    Moments moments(std::span<const Row> rows, std::span<const double> weight) const {
        Moments sum;
        for (const Row row : rows) sum = sum + moments(row, weight[row]);
        return sum;
    }

    // Those of two parts at once, since each sum waits for all its additions.
    std::vector<Moments> moments_of_both(std::span<const Row> low, std::span<const Row> high,
                                         std::span<const double> weight) const {
        Moments below, above;
        const std::size_t both = std::min(low.size(), high.size());
        for (std::size_t i = 0; i < both; ++i) {
            below = below + moments(low[i], weight[low[i]]);
            above = above + moments(high[i], weight[high[i]]);
        }
        for (const Row row : low.subspan(both)) below = below + moments(row, weight[row]);
        for (const Row row : high.subspan(both)) above = above + moments(row, weight[row]);
        return {below, above};
    }

    void grow(const Regression& given, const Regressed& regressed) {
        response_ = given.response;
        predicted_ = given.predicted;
        any_dealt_ = false;
        const std::size_t root = trees_->add_tree(regressed.mean);
        const Part<Index> everything = table_.everything();
        if (regressed.best.gain > least_gain) {
            least_variance_ = least_variance * regressed.variance;
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
        Children<Index>& children = levels_[depth];
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
               std::span<const double> weight, Children<Index>& children) {
        const bool numeric = table_.is_numeric(best.attribute);
        const std::size_t place = table_.place(best.attribute);
        const std::size_t count = numeric ? 2 : table_.n_categories(place);
        const std::size_t first = trees_->add_leaves(count, trees_->value[node]);
        trees_->set_children(node, best.attribute, first, count);
        missing_ = {};
        n_missing_ = 0;
        if (numeric) {
            const auto [low, high] = table_.around(part, best.attribute, best.choice);
            const double middle = 0.5 * low + 0.5 * high;
            trees_->cut[node] = middle > low ? middle : high;  // there may be none between the two
        }
        const ColumnView column = table_.column(best.attribute);
        is_cut_in_two_ = numeric && table_.all_known(part, place);
        if (is_cut_in_two_) {
            children.divide_rows(part.rows, column, trees_->cut[node], is_high_);
            children.within = moments_of_both(children.rows(0), children.rows(1), weight);
        } else {
            children.within.assign(count, {});
            add_branches(part.rows, column, trees_->cut[node], weight, children.within);
        }
        double known = 0.0;
        for (const Moments& sum : children.within) known += sum.total;
        for (std::size_t c = 0; c < count; ++c) {
            trees_->share[first + c] = children.within[c].total / known;
        }
    }

    void add_branches(std::span<const Row> rows, ColumnView column, double cut,
                      std::span<const double> weight, std::vector<Moments>& within) {
        for (const Row row : rows) {
            const std::int32_t b = branch_[row] = branch(column[row], cut, -1);
            const Moments one = moments(row, weight[row]);
            Moments& sum = b < 0 ? missing_ : within[static_cast<std::size_t>(b)];
            sum = sum + one;
            if (b >= 0) continue;
            ++n_missing_;
            is_dealt_[row] = 1;
            any_dealt_ = true;
        }
    }

    // The children of a node that are not split any more.
    void set_leaves(std::size_t node, std::span<const Row> rows, const Children<Index>& children) {
        const auto first = static_cast<std::size_t>(trees_->first_child[node]);
        for (std::size_t c = 0; c < children.within.size(); ++c) {
            const double share = trees_->share[first + c];
            const double within = children.within[c].total + share * missing_.total;
            if (within > 0.0) {
                const double sum = children.within[c].first + share * missing_.first;
                trees_->value[first + c] = sum / within;
            }
            if (is_cut_in_two_) set_leaf(children.rows(c), trees_->value[first + c]);
        }
        if (is_cut_in_two_) return;
        for (const Row row : rows) {
            if (branch_[row] < 0) continue;
            predicted_[row] = trees_->value[first + static_cast<std::size_t>(branch_[row])];
        }
    }

    // Sets the children that are leaves: those without weight, which keep the value of the node,
    // and those that vary too little.
    void find_growing(std::size_t node, std::span<const Row> rows, Children<Index>& children) {
        const auto first = static_cast<std::size_t>(trees_->first_child[node]);
        children.grows.assign(children.within.size(), 1);
        bool any_leaf = false;
        for (std::size_t c = 0; c < children.within.size(); ++c) {
            const Moments& within = children.within[c];
            const bool has_weight = trees_->share[first + c] > 0.0;
            if (has_weight && (n_missing_ > 0 || !(within.variance() < least_variance_))) continue;
            if (has_weight) trees_->value[first + c] = within.mean();
            children.grows[c] = 0;
            any_leaf = true;
            if (is_cut_in_two_) set_leaf(children.rows(c), trees_->value[first + c]);
        }
        if (!any_leaf || is_cut_in_two_) return;
        for (const Row row : rows) {
            const auto c = static_cast<std::size_t>(branch_[row]);
            if (branch_[row] >= 0 && children.grows[c] == 0) {
                predicted_[row] = trees_->value[first + c];
            }
        }
    }

    // Copies the rows and orders of a node to the children that grow.
    void divide(const Part<Index>& part, Children<Index>& children) {
        if (!is_cut_in_two_) children.divide_rows(part.rows, branch_);
        const std::size_t n_numeric = table_.numeric().size();
        if (!children.make_room(n_numeric)) return;
        for (std::size_t k = 0; k < n_numeric; ++k) {
            const std::span<const Ranked<Index>> order = part.order(k);
            if (is_cut_in_two_) {
                children.divide_order(order, k, place_of_common(order, k), is_high_);
            } else {
                children.divide_order(order, k, branch_);
            }
            if (table_.has_common(k)) children.drop_common(k, table_.common_rank(k));
        }
    }

    // The place of the common value in an order, or its end.
    std::size_t place_of_common(std::span<const Ranked<Index>> order, std::size_t k) const {
        if (!table_.has_common(k)) return order.size();
        const auto found =
            std::ranges::lower_bound(order, table_.common_rank(k), {}, &Ranked<Index>::rank);
        const auto place = static_cast<std::size_t>(found - order.begin());
        return found != order.end() && found->row == table_.common_row(k) ? place : order.size();
    }

    void grow_children(std::size_t node, std::span<const double> weight, Children<Index>& children,
                       std::size_t depth) {
        const auto first = static_cast<std::size_t>(trees_->first_child[node]);
        const bool has_missing = n_missing_ > 0;
        for (std::size_t c = 0; c < children.count(); ++c) {
            if (children.grows[c] == 0) continue;
            const Part<Index> part = children.part(c);
            if (has_missing) {
                deal(node, part.rows, weight, trees_->share[first + c], children.weight);
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
    RootEvidence root_evidence_;
    std::vector<Evidence> evidence_;
    std::vector<std::int32_t> branch_;    // of the rows of the node that is being split
    bool is_cut_in_two_ = false;          // without missing values, and then is
    std::vector<std::uint8_t> is_high_;   // the branch
    std::vector<std::uint8_t> is_dealt_;  // whether a row was in several branches of the tree
    std::deque<Children<Index>> levels_;  // one per depth
    RegressionTrees* trees_ = nullptr;    // that grow, and what they grow on
    std::span<const double> response_;
    std::span<double> predicted_;
    double least_variance_ = 0.0;
    Moments missing_;  // rows of the node without a value
    std::size_t n_missing_ = 0;
    bool any_dealt_ = false;
};

}  // namespace caltree
