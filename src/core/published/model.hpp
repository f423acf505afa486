// A node model, and the choices that the published method leaves open.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace caltree {

// A node model: one row a class, [intercept, slope of score 1, ...], before the factor (m-1)/m.
class Model {
  public:
    Model(std::size_t n_classes, std::size_t n_scores)
        : width_(n_scores + 1), coefficients_(n_classes * (n_scores + 1), 0.0) {}

    double& at(std::size_t label, std::size_t term) { return coefficients_[label * width_ + term]; }
    double at(std::size_t label, std::size_t term) const {
        return coefficients_[label * width_ + term];
    }
    std::size_t n_classes() const { return coefficients_.size() / width_; }
    std::size_t n_scores() const { return width_ - 1; }
    double scale() const {
        return static_cast<double>(n_classes() - 1) / static_cast<double>(n_classes());
    }
    std::span<const double> coefficients() const { return coefficients_; }

  private:
    std::size_t width_;
    std::vector<double> coefficients_;
};

// A line over one score.
struct Line {
    double intercept = 0.0;
    double slope = 0.0;
    std::size_t score = 0;
};

// What to do where no score varies.
enum class ConstantScores {
    keep_model,   // nothing: the published behaviour
    frequencies,  // answer the node's class frequencies, smoothed
};

// The error that iterations and pruning are chosen by.
enum class Criterion {
    squared_error,  // of the probabilities, mean over classes: that of the calibration tree
    wrong_rows,     // rows of another class than the most probable: that of logistic model trees
};

}  // namespace caltree
