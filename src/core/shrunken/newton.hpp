// Newton's method for one node model: the only place that decides on steps, and when to stop.
//
// It knows no rows. Whoever does tells it the loss (half the deviance) and its derivatives at some
// parameters, be they sums over rows at hand or sums that came from other machines.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace caltree {

// The root has as far to go as the scores are wrong, its descendants only a little further.
inline constexpr std::size_t most_root_steps = 50;
inline constexpr std::size_t most_steps = 2;
inline constexpr int most_halvings = 12;
inline constexpr double first_damping = 1e-6;  // in units of the rows
inline constexpr double damping_factor = 10.0;
// A step that lowers the loss by no more is the last one.
inline constexpr double smallest_gain = 1e-2;
inline constexpr double smallest_root_improvement = 1e-12;  // of the loss
inline constexpr double rounding = 1e-12;

class NewtonFit {
  public:
    // `penalties`: one a parameter, the cost of its squared distance from the parent's, times 2.
    NewtonFit(std::size_t n_states, std::span<const double> penalties)
        : n_states_(n_states),
          width_(penalties.size() / n_states),
          penalties_(penalties.begin(), penalties.end()),
          step_(penalties.size()),
          factor_(width_ * width_) {}

    // Begins at the parent's parameters; `weight` and `loss` are those of the rows there. Losses
    // are known but for `noise`.
    void start(std::span<const double> parent, bool is_root, double weight, double loss,
               double noise = 0.0) {
        parent_.assign(parent.begin(), parent.end());
        parameters_ = trial_ = parent_;
        is_root_ = is_root;
        done_ = false;
        weight_ = weight;
        loss_ = loss;
        noise_ = noise;
        damping_ = 0.0;
        steps_ = 0;
    }

    bool is_done() const { return done_; }
    const std::vector<double>& parameters() const { return parameters_; }
    // Whether derivatives are wanted if the fit moves to the trial.
    bool wants_derivatives() const { return is_root_ || steps_ + 1 < most_steps; }
    // Where the loss is asked for next.
    const std::vector<double>& trial() const { return trial_; }

    // Takes the derivatives of the loss at `parameters`: minus the gradient, n_states x width, and
    // for each state the lower triangle of the Hessian, in a matrix width x width. The fit may be
    // done then, as the next step promises too little, or as there is none.
    void set_derivatives(const double* gradient, const double* hessian) {
        gradient_.assign(gradient, gradient + n_states_ * width_);
        hessian_.assign(hessian, hessian + n_states_ * width_ * width_);
        set_step();
    }

    // Takes the loss at the trial, and moves there if that helps: then true, and derivatives are
    // wanted next. Otherwise there is another trial. The fit may be done in either case.
    bool judge(double deviance) {
        const double now = deviance + penalty();
        // Close to the best there is, rounding must not decide on the last digits of it.
        const double slack = std::max(rounding * (std::abs(loss_) + 1.0), noise_);
        if (now <= loss_ + slack) {
            const double gained = loss_ - now;
            parameters_ = trial_;
            loss_ = now;
            end_step(true, gained);
            return true;
        }
        length_ /= 2.0;
        if (++halvings_ < most_halvings) {
            set_trial();
        } else {
            end_step(false, 0.0);
            if (!done_) set_step();
        }
        return false;
    }

  private:
    // Rounding may leave a Hessian that no step can be told from, as where all rows are alike and
    // weigh far more than the penalties: such a step does not help.
    void set_step() {
        set_longest_step();
        while (
            !std::all_of(step_.begin(), step_.end(), [](double d) { return std::isfinite(d); })) {
            end_step(false, 0.0);
            if (done_) break;
            set_longest_step();
        }
        length_ = 1.0;
        halvings_ = 0;
        set_trial();
    }

    void set_longest_step() {
        for (std::size_t j = 0; j < n_states_; ++j) {
            double* step = step_.data() + j * width_;
            std::copy_n(hessian_.data() + j * width_ * width_, width_ * width_, factor_.data());
            for (std::size_t a = 0; a < width_; ++a) {
                const std::size_t t = j * width_ + a;
                step[a] = gradient_[t] - penalties_[t] * (parameters_[t] - parent_[t]);
                factor_[a * width_ + a] += penalties_[t] + damping_;
            }
            solve(step);
        }
    }

    void set_trial() {
        for (std::size_t t = 0; t < trial_.size(); ++t) {
            trial_[t] = parameters_[t] + length_ * step_[t];
        }
    }

    double penalty() const {
        double sum = 0.0;
        for (std::size_t t = 0; t < trial_.size(); ++t) {
            const double distance = trial_[t] - parent_[t];
            sum += 0.5 * penalties_[t] * distance * distance;
        }
        return sum;
    }

    void end_step(bool helped, double gained) {
        ++steps_;
        if (is_root_) {
            done_ = !continue_root(helped, gained) || steps_ == most_root_steps;
        } else {
            done_ = !helped || steps_ == most_steps || gained <= smallest_gain;
        }
    }

    // Scores that are far too sure leave Newton's method nothing to go by: where no step helps,
    // steps are damped, until they do.
    bool continue_root(bool helped, double gained) {
        const double least = first_damping * weight_;
        if (!helped) {
            if (damping_ >= weight_) return false;
            damping_ = std::max(least, damping_ * damping_factor);
            return true;
        }
        if (gained >
            std::max(smallest_root_improvement * (std::abs(loss_ + gained) + 1.0), noise_)) {
            damping_ /= damping_factor;
            if (damping_ < least) damping_ = 0.0;
            return true;
        }
        if (damping_ == 0.0) return false;
        damping_ = 0.0;
        return true;
    }

    // Cholesky, in place, on the lower triangle.
    void solve(double* b) {
        const std::size_t n = width_;
        double* A = factor_.data();
        for (std::size_t j = 0; j < n; ++j) {
            for (std::size_t i = j; i < n; ++i) {
                double sum = A[i * n + j];
                for (std::size_t k = 0; k < j; ++k) sum -= A[i * n + k] * A[j * n + k];
                A[i * n + j] = i == j ? std::sqrt(sum) : sum / A[j * n + j];
            }
        }
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t k = 0; k < i; ++k) b[i] -= A[i * n + k] * b[k];
            b[i] /= A[i * n + i];
        }
        for (std::size_t i = n; i-- > 0;) {
            for (std::size_t k = i + 1; k < n; ++k) b[i] -= A[k * n + i] * b[k];
            b[i] /= A[i * n + i];
        }
    }

    std::size_t n_states_, width_;
    std::vector<double> penalties_, parent_, parameters_, trial_, step_, factor_, gradient_,
        hessian_;
    bool is_root_ = false, done_ = false;
    double weight_ = 0.0, loss_ = 0.0, noise_ = 0.0, damping_ = 0.0, length_ = 1.0;
    std::size_t steps_ = 0;
    int halvings_ = 0;
};

}  // namespace caltree
