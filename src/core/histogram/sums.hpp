// What node models need to know about the rows of a node: sums, which can be merged by adding.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "histogram/chunk.hpp"

namespace caltree {

// The sums of one node: weight, loss, deviance and held-out error; then for each state the
// gradient and the lower triangle of the Hessian.
struct SumsShape {
    std::size_t n_states, width;

    static constexpr std::size_t weight = 0, loss = 1, deviance = 2, held_out = 3, first = 4;
    std::size_t per_state() const { return width + width * (width + 1) / 2; }
    std::size_t size() const { return first + n_states * per_state(); }
};

class Summing {
  public:
    // `log_loss`: the error of held-out rows is their deviance, not the squared error. Without
    // `derivatives` the sums of these are 0.
    Summing(const Chunk& chunk, Sight& sight, const Units& units, bool log_loss,
            bool derivatives = true)
        : chunk_(chunk),
          sight_(sight),
          units_(units),
          log_loss_(log_loss),
          derivatives_(derivatives),
          shape_{sight.n_states(), sight.width()} {}

    std::vector<Whole> sums(const Positions& positions, const Slots& slots) {
        result_.assign(slots.count * shape_.size(), 0);
        for (std::size_t tree = 0; tree < positions.n_trees; ++tree) {
            if (!slots.any(tree)) continue;
            for (std::size_t row = 0; row < chunk_.n_rows(); ++row) {
                const std::int32_t slot = slots.slot(tree, positions.node(tree, row));
                if (slot < 0) continue;
                const auto at = static_cast<std::size_t>(slot);
                sight_.add(chunk_, row, slots.parameters + at * sight_.n_parameters());
                slots_.push_back(at);
                if (sight_.is_full()) add_up(tree);
            }
            add_up(tree);
        }
        return std::move(result_);
    }

  private:
    void add_up(std::size_t tree) {
        sight_.predict();
        for (std::size_t i = 0; i < sight_.size(); ++i) {
            Whole* to = result_.data() + slots_[i] * shape_.size();
            if (Positions::holds_out(tree, chunk_.fold[sight_.row(i)])) {
                add_held_out(i, to);
            } else {
                add(i, to);
            }
        }
        sight_.clear();
        slots_.clear();
    }

    static double deviance(double loss) {
        static const double largest = -std::log(smallest_likelihood);
        return std::min(loss, largest);
    }

    void add_held_out(std::size_t i, Whole* to) const {
        const std::size_t label = chunk_.labels[sight_.row(i)];
        const double error =
            log_loss_ ? deviance(sight_.loss(i, label)) : sight_.squared_error(i, label);
        to[SumsShape::held_out] += whole(chunk_.weight(sight_.row(i)) * error, units_.loss);
    }

    void add(std::size_t i, Whole* to) const {
        const std::size_t label = chunk_.labels[sight_.row(i)];
        const double weight = chunk_.weight(sight_.row(i));
        const double loss = sight_.loss(i, label);
        to[SumsShape::weight] += whole(weight, units_.plain);
        to[SumsShape::loss] += whole(weight * loss, units_.loss);
        to[SumsShape::deviance] += whole(weight * deviance(loss), units_.loss);
        if (!derivatives_) return;
        to += SumsShape::first;
        for (std::size_t j = 0; j < shape_.n_states; ++j) {
            const double p = sight_.probability(i, j);
            const double g = weight * sight_.residual(i, label, j);
            const double h = weight * p * (1.0 - p);
            const double* x = sight_.seen_by(i, j);
            if (shape_.width == 3) {  // the most frequent case, unrolled
                add_state<3>(g, h, x, to + j * shape_.per_state());
            } else {
                add_state<0>(g, h, x, to + j * shape_.per_state());
            }
        }
    }

    // `known`: the number of parameters, or 0.
    template <std::size_t known>
    void add_state(double g, double h, const double* x, Whole* to) const {
        const std::size_t width = known > 0 ? known : shape_.width;
        const Units units = units_;
        Whole* hessian = to + width;
        *to++ += whole(g, units.plain);
        *hessian++ += whole(h, units.plain);
        for (std::size_t a = 1; a < width; ++a) {
            *to++ += whole(g * x[a - 1], units.score);
            *hessian++ += whole(h * x[a - 1], units.score);
            for (std::size_t b = 1; b <= a; ++b) {
                *hessian++ += whole(h * x[a - 1] * x[b - 1], units.squares);
            }
        }
    }

    const Chunk& chunk_;
    Sight& sight_;
    Units units_;
    bool log_loss_, derivatives_;
    SumsShape shape_;
    std::vector<std::size_t> slots_;  // of the rows in sight
    std::vector<Whole> result_;
};

}  // namespace caltree
