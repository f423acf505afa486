// Newton's method for one node model: the only place that decides on steps, and when to stop.
//
// It knows no rows. Whoever does tells it the loss (half the deviance) and its derivatives at some
// parameters, be they sums over rows at hand or sums that came from other machines.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace caltree {

// The root has as far to go as the scores are wrong, its descendants only a little further.
inline constexpr std::size_t most_root_steps = 50;
inline constexpr std::size_t most_steps = 4;
inline constexpr int most_halvings = 12;
inline constexpr double first_damping = 1e-6;  // in units of the rows
inline constexpr double damping_factor = 10.0;
// A step that lowers the loss by no more is the last one.
inline constexpr double smallest_gain = 1e-2;
inline constexpr double smallest_root_improvement = 1e-12;  // of the loss
inline constexpr double rounding = 1e-12;
// Where all rows together lose less, they are told apart, and any lower temperature would be better
// still: it goes no further.
inline constexpr double smallest_line_loss = 1.0;

// A model of intercept, log-odds and their bend rises with the log-odds everywhere if the slope of
// the bend is, in size, not above that of the log-odds: the bend itself falls or rises by at
// most 1.
struct RisingSlopes {
    double offset;       // of the slope of the log-odds: 1 if they are added uncorrected, else 0
    double scale, bend;  // of the two scores: slopes are parameters divided by these

    // A bend that is constant, as that of two scores equally far from even, has no slope.
    bool hold(double own, double bending) const {
        return (bend > 0.0 ? std::abs(bending / bend) : 0.0) <= own / scale + offset;
    }
};

// What holds node models where they come from: the cost of the squared distance from there, times
// 2, one a parameter.
struct Penalties {
    std::vector<double> of_nodes, of_root;
    // Where the temperature goes: the root is first fitted along this line, at no cost, and held
    // there. Empty if the scores are no probabilities.
    std::vector<double> temperature;
    bool temperature_only = false;       // whether the root stays on that line
    std::optional<RisingSlopes> rising;  // if a higher score must not give a lower probability
};

class NewtonFit {
  public:
    NewtonFit(std::size_t n_states, Penalties penalties)
        : n_states_(n_states),
          width_(penalties.of_nodes.size() / n_states),
          given_(std::move(penalties)),
          step_(given_.of_nodes.size()),
          factor_(width_ * width_) {}

    // Begins at the parent's parameters; `weight` and `loss` are those of the rows there. Losses
    // are known but for `noise`.
    void start(std::span<const double> parent, bool is_root, double weight, double loss,
               double noise = 0.0) {
        parent_.assign(parent.begin(), parent.end());
        parameters_ = trial_ = parent_;
        is_root_ = is_root;
        on_line_ = is_root && !given_.temperature.empty();
        line_ = {};
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
        if (on_line_) {
            const double length = line_step();
            for (std::size_t t = 0; t < step_.size(); ++t)
                step_[t] = length * given_.temperature[t];
            return;
        }
        for (std::size_t j = 0; j < n_states_; ++j) {
            double* step = step_.data() + j * width_;
            std::copy_n(hessian_.data() + j * width_ * width_, width_ * width_, factor_.data());
            for (std::size_t a = 0; a < width_; ++a) {
                const std::size_t t = j * width_ + a;
                step[a] = gradient_[t] - penalties()[t] * (parameters_[t] - parent_[t]);
                factor_[a * width_ + a] += penalties()[t] + damping_;
            }
            solve(step);
        }
        if (given_.rising) keep_rising();
    }

    // Of two classes: where the step would leave the models that rise, the best one to their edge.
    // On an edge both slopes are given by one number, which is not negative: if `sign`, the slope
    // of the bend is that of the log-odds, or minus that.
    void keep_rising() {
        const RisingSlopes& r = *given_.rising;
        if (r.hold(parameters_[1] + step_[1], parameters_[2] + step_[2])) return;
        double best = std::numeric_limits<double>::infinity();
        std::array<double, 3> found{};
        for (const double sign : {1.0, -1.0}) {
            const std::array<double, 3> along{0.0, r.scale, sign * r.bend};
            const std::array<double, 3> from{0.0, -r.scale * r.offset - parameters_[1],
                                             -parameters_[2]};
            const std::array<double, 3> step = edge_step(from, along);
            if (const double loss = promised(step); loss < best) {
                best = loss;
                found = step;
            }
        }
        std::copy(found.begin(), found.end(), step_.begin());
    }

    // The step to `from`, plus any intercept, plus what is not negative times `along`.
    std::array<double, 3> edge_step(std::array<double, 3> step,
                                    const std::array<double, 3>& along) const {
        const auto slope = [&](const std::array<double, 3>& way) {
            double sum = 0.0;
            for (std::size_t a = 0; a < 3; ++a) {
                sum += way[a] * penalised_gradient(a);
                for (std::size_t b = 0; b < 3; ++b) sum -= way[a] * curvature(a, b) * step[b];
            }
            return sum;
        };
        double mixed = 0.0, steep = 0.0;
        for (std::size_t a = 0; a < 3; ++a) {
            mixed += curvature(0, a) * along[a];
            for (std::size_t b = 0; b < 3; ++b) steep += along[a] * curvature(a, b) * along[b];
        }
        const double level = slope({1.0, 0.0, 0.0}), forward = slope(along);
        const double length =
            (forward - mixed * level / curvature(0, 0)) / (steep - mixed * mixed / curvature(0, 0));
        const double kept = length > 0.0 ? length : 0.0;
        for (std::size_t a = 0; a < 3; ++a) step[a] += kept * along[a];
        step[0] += (level - kept * mixed) / curvature(0, 0);
        return step;
    }

    // What a step costs, as far as the derivatives tell.
    double promised(const std::array<double, 3>& step) const {
        double sum = 0.0;
        for (std::size_t a = 0; a < 3; ++a) {
            sum -= step[a] * penalised_gradient(a);
            for (std::size_t b = 0; b < 3; ++b) sum += 0.5 * step[a] * curvature(a, b) * step[b];
        }
        return sum;
    }

    double penalised_gradient(std::size_t a) const {
        return gradient_[a] - penalties()[a] * (parameters_[a] - parent_[a]);
    }
    double curvature(std::size_t a, std::size_t b) const {
        const double loss = hessian_[std::max(a, b) * width_ + std::min(a, b)];
        return a == b ? loss + penalties()[a] + damping_ : loss;
    }

    // Along the line of the temperature, whose slope is known at each point: from the second point
    // on its change tells the curvature. The Hessians of the states alone, which do not know of
    // each other, only give the first step.
    double line_step() {
        double slope = 0.0, curvature = 0.0, square = 0.0, at = 0.0;
        for (std::size_t j = 0; j < n_states_; ++j) {
            const double* d = given_.temperature.data() + j * width_;
            const double* H = hessian_.data() + j * width_ * width_;
            for (std::size_t a = 0; a < width_; ++a) {
                const std::size_t t = j * width_ + a;
                slope += gradient_[t] * d[a];
                square += d[a] * d[a];
                at += (parameters_[t] - parent_[t]) * d[a];
                for (std::size_t b = 0; b <= a; ++b) {
                    curvature += (a == b ? 1.0 : 2.0) * H[a * width_ + b] * d[a] * d[b];
                }
            }
        }
        at /= square;
        const double change = (line_.slope - slope) / (at - line_.at);
        if (line_.is_known && std::isfinite(change) && change > 0.0) curvature = change;
        line_ = {true, at, slope};
        const double length = slope / (curvature + damping_ * square);
        // Slopes that rise do not turn round: a temperature of infinity is the farthest.
        return given_.rising ? std::max(length, -1.0 - at) : length;
    }

    const std::vector<double>& penalties() const {
        return is_root_ ? given_.of_root : given_.of_nodes;
    }

    void set_trial() {
        for (std::size_t t = 0; t < trial_.size(); ++t) {
            trial_[t] = parameters_[t] + length_ * step_[t];
        }
    }

    double penalty() const {
        double sum = 0.0;
        for (std::size_t t = 0; t < trial_.size() && !on_line_; ++t) {
            const double distance = trial_[t] - parent_[t];
            sum += 0.5 * penalties()[t] * distance * distance;
        }
        return sum;
    }

    void end_step(bool helped, double gained) {
        ++steps_;
        if (is_root_) {
            done_ = !continue_root(helped, gained) || steps_ == most_root_steps ||
                    (on_line_ && loss_ < smallest_line_loss);
            if (done_ && on_line_) leave_line();
        } else {
            done_ = !helped || steps_ == most_steps || gained <= smallest_gain;
        }
    }

    // From the temperature on, the root is free, and held there.
    void leave_line() {
        if (given_.temperature_only) return;
        on_line_ = done_ = false;
        parent_ = parameters_;
        damping_ = 0.0;
        steps_ = 0;
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
    Penalties given_;
    std::vector<double> parent_, parameters_, trial_, step_, factor_, gradient_, hessian_;
    // The last point on the line of the temperature, and what the loss gains there a step.
    struct {
        bool is_known = false;
        double at = 0.0, slope = 0.0;
    } line_;
    bool is_root_ = false, on_line_ = false, done_ = false;
    double weight_ = 0.0, loss_ = 0.0, noise_ = 0.0, damping_ = 0.0, length_ = 1.0;
    std::size_t steps_ = 0;
    int halvings_ = 0;
};

}  // namespace caltree
