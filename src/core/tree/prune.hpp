// Cost-complexity pruning: the weakest node first, with running sums and a heap.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "tree/fitted_nodes.hpp"
#include "tree/structure.hpp"

namespace caltree {

// Differences of error below this are rounding.
inline constexpr double no_difference = 1e-12;

// A running sum that does not drift: what each addition rounds off is kept.
class ExactSum {
  public:
    ExactSum() = default;
    explicit ExactSum(double value) : high_(value) {}
    void add(double value) {
        const double sum = high_ + value;
        const double part = sum - high_;
        low_ += (high_ - (sum - part)) + (value - part);
        high_ = sum;
    }
    double value() const { return high_ + low_; }

  private:
    double high_ = 0.0;
    double low_ = 0.0;
};

class Pruner {
  public:
    // A split that gains less than `least_gain` a row is none.
    Pruner(const Structure& tree, const FittedNodes& models, double least_gain = 0.0)
        : tree_(tree),
          models_(models),
          least_gain_(least_gain),
          state_(tree.size()),
          place_(tree.size(), 0) {
        number_in_pre_order();
        add_up();
        for (std::size_t v = 0; v < tree.size(); ++v) {
            if (state_[v].inner) touched_.push_back(v);
        }
        refresh();
    }

    // The smallest alpha; infinity once only the root is left.
    double smallest_alpha() {
        while (!heap_.empty() && outdated(heap_.top())) heap_.pop();
        return heap_.empty() ? std::numeric_limits<double>::infinity() : heap_.top().alpha;
    }

    // Turns the inner node of smallest alpha into a leaf.
    void prune_weakest() {
        smallest_alpha();
        const std::size_t node = heap_.top().node;
        heap_.pop();
        make_leaf(node);
        refresh();
    }

    // Mean error of the tree as it stands on the held-out rows.
    double held_out_error() const {
        return std::max(0.0, state_[0].held_out.value()) / models_.held_out_total;
    }

    std::size_t n_leaves() const { return state_[0].leaves(); }
    // The nodes that are no longer split, since this was last asked.
    std::vector<std::size_t> take_ended() { return std::exchange(ended_, {}); }

  private:
    struct State {
        bool inner = false;
        bool gone = false;          // below a node that became a leaf
        std::uint32_t version = 0;  // of its entry in the heap
        ExactSum error;             // of the leaves below
        ExactSum held_out;
        std::size_t inner_leaves = 0;      // below children that are inner nodes
        std::size_t own_leaves = 0;        // children that are leaves with a model of their own
        std::size_t borrowing_leaves = 0;  // children that are leaves with this node's model

        std::size_t leaves() const {
            return inner ? inner_leaves + own_leaves + (borrowing_leaves > 0 ? 1 : 0) : 1;
        }
    };
    struct Entry {
        double alpha;
        std::size_t place, node;
        std::uint32_t version;
        bool operator>(const Entry& other) const {
            return alpha != other.alpha ? alpha > other.alpha : place > other.place;
        }
    };

    void number_in_pre_order() {
        std::vector<std::size_t> pending{0};
        std::size_t next = 0;
        while (!pending.empty()) {
            const std::size_t node = pending.back();
            pending.pop_back();
            place_[node] = next++;
            for (std::int32_t b = tree_.n_children[node]; b-- > 0;) {
                pending.push_back(static_cast<std::size_t>(tree_.first_child[node] + b));
            }
        }
    }

    // Children come after their parents, so that one walk from the end sees them first.
    void add_up() {
        for (std::size_t v = tree_.size(); v-- > 0;) {
            State& state = state_[v];
            state.inner = !tree_.is_leaf(v);
            if (!state.inner) {
                state.error = ExactSum(models_.error[v]);
                state.held_out = ExactSum(models_.held_out_error[v]);
            }
            if (v == 0) continue;
            State& parent = state_[static_cast<std::size_t>(tree_.parent[v])];
            parent.error.add(state.error.value());
            parent.held_out.add(state.held_out.value());
            if (state.inner) {
                parent.inner_leaves += state.leaves();
            } else {
                count_leaf(parent, v);
            }
        }
    }

    void count_leaf(State& parent, std::size_t leaf) const {
        ++(models_.own[leaf] != 0 ? parent.own_leaves : parent.borrowing_leaves);
    }

    bool outdated(const Entry& entry) const {
        const State& state = state_[entry.node];
        return state.gone || !state.inner || state.version != entry.version;
    }

    void make_leaf(std::size_t node) {
        State& state = state_[node];
        const double error = models_.error[node] - state.error.value();
        const double held_out = models_.held_out_error[node] - state.held_out.value();
        std::size_t leaves_before = state.leaves();
        ended_.push_back(node);
        drop_below(node);
        state.inner = false;
        state.error = ExactSum(models_.error[node]);
        state.held_out = ExactSum(models_.held_out_error[node]);
        std::size_t leaves_after = 0;
        bool leaf_is_new = true;
        for (std::int32_t u = tree_.parent[node]; u >= 0;
             u = tree_.parent[static_cast<std::size_t>(u)]) {
            State& above = state_[static_cast<std::size_t>(u)];
            const std::size_t above_before = above.leaves();
            above.error.add(error);
            above.held_out.add(held_out);
            above.inner_leaves -= leaves_before;
            if (leaf_is_new) {
                count_leaf(above, node);
                leaf_is_new = false;
            } else {
                above.inner_leaves += leaves_after;
            }
            leaves_before = above_before;
            leaves_after = above.leaves();
            touched_.push_back(static_cast<std::size_t>(u));
        }
    }

    void drop_below(std::size_t node) {
        std::vector<std::size_t> pending{node};
        while (!pending.empty()) {
            const std::size_t top = pending.back();
            pending.pop_back();
            if (!state_[top].inner) continue;
            for (std::int32_t b = 0; b < tree_.n_children[top]; ++b) {
                const auto child = static_cast<std::size_t>(tree_.first_child[top] + b);
                if (state_[child].inner) ended_.push_back(child);
                state_[child].gone = true;
                pending.push_back(child);
            }
        }
    }

    // Looks again at the nodes something changed below, top-down: those that gain nothing become
    // leaves, the others get a new alpha. What that in turn changes above them is seen next time,
    // as published, unless splits have a least gain.
    void refresh() {
        std::vector<std::size_t> nodes = std::move(touched_);
        touched_.clear();
        std::sort(nodes.begin(), nodes.end(),
                  [this](std::size_t a, std::size_t b) { return place_[a] < place_[b]; });
        nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
        for (const std::size_t node : nodes) {
            State& state = state_[node];
            if (state.gone || !state.inner) continue;
            const double gain = models_.error[node] - state.error.value();
            if (gain < std::max(no_difference, least_gain_ * tree_.n_rows[node]) ||
                state.leaves() < 2) {
                make_leaf(node);
                continue;
            }
            const double alpha = gain / models_.total / static_cast<double>(state.leaves() - 1);
            heap_.push({alpha, place_[node], node, ++state.version});
        }
        // What became a leaf may have had all the gain of a split above it.
        if (least_gain_ > 0.0 && !touched_.empty()) refresh();
    }

    const Structure& tree_;
    const FittedNodes& models_;
    double least_gain_;
    std::vector<State> state_;
    std::vector<std::size_t> place_;    // in pre-order
    std::vector<std::size_t> touched_;  // nodes below which something changed
    std::vector<std::size_t> ended_;    // nodes that are no longer split
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap_;
};

struct PruningSequence {
    std::vector<double> alpha;     // [0] is 0, the unpruned tree
    std::vector<double> held_out;  // mean error after each step; empty if no row is held out
};

inline PruningSequence pruning_sequence(const Structure& tree, const FittedNodes& models) {
    Pruner pruner(tree, models);
    PruningSequence sequence;
    const bool judged = models.held_out_total > 0.0;
    sequence.alpha.push_back(0.0);
    if (judged) sequence.held_out.push_back(pruner.held_out_error());
    for (double alpha = pruner.smallest_alpha(); std::isfinite(alpha);
         alpha = pruner.smallest_alpha()) {
        pruner.prune_weakest();
        sequence.alpha.push_back(alpha);
        if (judged) sequence.held_out.push_back(pruner.held_out_error());
    }
    return sequence;
}

// When pruning reaches each node, one entry per node; 0 and infinity for one that is not split.
struct PruningOrder {
    std::vector<double> strength;  // up to and without which it is split
    std::vector<double> leaves;    // of the smallest pruned tree in which it is split
};

inline PruningOrder pruning_order(const Structure& tree, const FittedNodes& models,
                                  double least_gain) {
    Pruner pruner(tree, models, least_gain);
    PruningOrder order{std::vector<double>(tree.size(), 0.0),
                       std::vector<double>(tree.size(), std::numeric_limits<double>::infinity())};
    pruner.take_ended();
    double strength = 0.0;
    for (double alpha = pruner.smallest_alpha(); std::isfinite(alpha);
         alpha = pruner.smallest_alpha()) {
        // The strengths of the steps need not rise: a step is passed once any of them is.
        strength = std::max(strength, alpha);
        const auto leaves = static_cast<double>(pruner.n_leaves());
        pruner.prune_weakest();
        for (const std::size_t node : pruner.take_ended()) {
            order.strength[node] = strength;
            order.leaves[node] = leaves;
        }
    }
    return order;
}

}  // namespace caltree
