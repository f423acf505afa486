// Some of the rows, with their attributes in bins, and what node models say about them.
//
// Whatever is added up over rows is added up in whole numbers, multiples of a power of two. Their
// sums are exact, so that it does not matter in which order the rows come, nor how they are divided
// into chunks, among threads or among machines: the tree is the same to the last bit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "data/data.hpp"
#include "data/stop.hpp"
#include "kernels/kernels.hpp"

namespace caltree {

using Node = std::uint16_t;
using Whole = std::int64_t;

inline constexpr std::uint8_t in_no_fold = 255;
// Scores further from their mean, in deviations, count as this far: a sum of squares stays in
// range.
inline constexpr double farthest_score = 100.0;
// Nor does a row's loss count for more.
inline constexpr double largest_loss = 1e3;

// How much each kind of number is multiplied by before it is rounded.
struct Units {
    double plain;    // weights, residuals, variances
    double score;    // those times a score
    double squares;  // and times the product of two
    double loss;
};

inline Whole whole(double value, double unit) { return std::llrint(value * unit); }

// Borrowed arrays, by row. Codes: n_rows x n_attributes of one or two bytes.
struct Chunk {
    const std::uint8_t* narrow = nullptr;
    const std::uint16_t* wide = nullptr;
    std::size_t n_attributes = 0;
    std::span<const Label> labels;
    const double* scores = nullptr;      // n_rows x n_scores
    const double* offset = nullptr;      // n_rows x n_states, or null: nothing
    std::span<const double> weights;     // or none
    std::span<const std::uint8_t> fold;  // the fold that the row is held out from

    std::size_t n_rows() const { return labels.size(); }
    double weight(std::size_t row) const { return weights.empty() ? 1.0 : weights[row]; }
    std::size_t code(std::size_t row, std::size_t attribute) const {
        const std::size_t at = row * n_attributes + attribute;
        return narrow != nullptr ? narrow[at] : wide[at];
    }
};

// Some rows as the node models see them, and what these say: up to block_rows at a time.
class Sight {
  public:
    // `centre` and `scale` have one entry per score, in the order in which the states see them.
    Sight(std::size_t n_states, std::size_t per_state, std::span<const double> centre,
          std::span<const double> scale)
        : n_states_(n_states),
          per_state_(per_state),
          centre_(centre.begin(), centre.end()),
          classes_(n_states),
          rows_(block_rows),
          x_(centre.size() * block_rows),
          F_(n_states * block_rows),
          p_(n_states * block_rows),
          norm_(block_rows) {
        for (const double deviation : scale) {
            per_deviation_.push_back(deviation > 0.0 ? 1.0 / deviation : 0.0);
        }
        std::iota(classes_.begin(), classes_.end(), std::size_t{0});
    }

    std::size_t n_states() const { return n_states_; }
    std::size_t n_scores() const { return centre_.size(); }
    std::size_t width() const { return per_state_ + 1; }
    std::size_t n_parameters() const { return n_states_ * width(); }

    void clear() { count_ = 0; }
    std::size_t size() const { return count_; }
    bool is_full() const { return count_ == block_rows; }

    // Takes in a row, and the parameters of the node model that is to speak about it.
    void add(const Chunk& chunk, std::size_t row, const double* parameters) {
        const std::size_t i = count_++;
        rows_[i] = row;
        const std::size_t n_scores = centre_.size();
        const double* scores = chunk.scores + row * n_scores;
        double* x = x_.data() + i * n_scores;
        if (n_states_ == 1) {  // the most frequent case, in one go
            double sum = parameters[0] + (chunk.offset != nullptr ? chunk.offset[row] : 0.0);
            for (std::size_t t = 0; t < n_scores; ++t) {
                x[t] = scaled(scores[t], t);
                sum += parameters[1 + t] * x[t];
            }
            F_[i] = sum;
            return;
        }
        for (std::size_t t = 0; t < n_scores; ++t) x[t] = scaled(scores[column(t)], t);
        for (std::size_t j = 0; j < n_states_; ++j) {
            const double* seen = seen_by(i, j);
            double sum = *parameters++;
            if (chunk.offset != nullptr) sum += chunk.offset[row * n_states_ + j];
            for (std::size_t k = 0; k < per_state_; ++k) sum += *parameters++ * seen[k];
            F_[j * block_rows + i] = sum;
        }
    }

    // What the node models say about the rows that were taken in.
    void predict() {
        stop_check_.count(n_states_ * count_);
        const std::size_t padded = padded_rows(count_);
        if (n_states_ == 1) {
            kernels().logistic(F_.data(), p_.data(), norm_.data(), padded);
        } else {
            kernels().softmax(F_.data(), {classes_.data(), n_states_}, block_rows, p_.data(),
                              padded);
        }
    }

    std::size_t row(std::size_t i) const { return rows_[i]; }
    const double* seen_by(std::size_t i, std::size_t state) const {
        return x_.data() + i * centre_.size() + (sees_all() ? 0 : state * per_state_);
    }
    double probability(std::size_t i, std::size_t state) const {
        return p_[state * block_rows + i];
    }
    double loss(std::size_t i, std::size_t label) const {
        const double loss = n_states_ == 1 ? norm_[i] - (label == 1 ? F_[i] : 0.0)
                                           : -std::log(probability(i, label));
        return std::min(loss, largest_loss);
    }
    double residual(std::size_t i, std::size_t label, std::size_t state) const {
        const bool is_class = label == (n_states_ == 1 ? 1 : state);
        return (is_class ? 1.0 : 0.0) - probability(i, state);
    }
    double squared_error(std::size_t i, std::size_t label) const {
        double sum = 0.0;
        for (std::size_t j = 0; j < n_states_; ++j) {
            sum += residual(i, label, j) * residual(i, label, j);
        }
        return sum / static_cast<double>(n_states_);
    }

  private:
    double scaled(double score, std::size_t t) const {
        const double deviations = (score - centre_[t]) * per_deviation_[t];
        return std::clamp(deviations, -farthest_score, farthest_score);
    }
    bool sees_all() const { return per_state_ == centre_.size(); }
    // Those of one state stand side by side, unless all states see all of them.
    std::size_t column(std::size_t t) const {
        return sees_all() ? t : (t % per_state_) * n_states_ + t / per_state_;
    }

    std::size_t n_states_, per_state_;
    std::vector<double> centre_, per_deviation_;
    std::vector<std::size_t> classes_, rows_;
    std::size_t count_ = 0;
    std::vector<double> x_, F_, p_, norm_;
    StopCheck stop_check_;
};

// Where the rows of a chunk are in several trees: the first is grown on all rows, the others each
// on those that one fold does not hold out.
struct Positions {
    const Node* nodes = nullptr;  // n_trees x n_rows
    std::size_t n_trees = 0;
    std::size_t n_rows = 0;

    Node node(std::size_t tree, std::size_t row) const { return nodes[tree * n_rows + row]; }
    static bool holds_out(std::size_t tree, std::uint8_t fold) {
        return tree > 0 && fold == tree - 1;
    }
};

// Some nodes of the trees, each with a slot of its own: what is asked is asked about them.
struct Slots {
    std::span<const std::int32_t> of_node;  // of the nodes of all trees; -1: none
    std::span<const std::int32_t> first;    // where each tree begins there
    std::size_t count = 0;
    const double* parameters = nullptr;  // count x n_parameters

    std::int32_t slot(std::size_t tree, Node node) const {
        return of_node[static_cast<std::size_t>(first[tree]) + node];
    }
    // Whether any node of a tree is asked about.
    bool any(std::size_t tree) const {
        const auto begin = of_node.begin() + first[tree];
        return std::any_of(begin, of_node.begin() + first[tree + 1],
                           [](std::int32_t slot) { return slot >= 0; });
    }
};

}  // namespace caltree
