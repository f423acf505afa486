// The scores as node models see them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "data/data.hpp"

namespace caltree {

// How node models see scores, and how these were scaled.
struct ScoreScale {
    std::size_t n_states, per_state;
    bool sees_all;
    std::span<const double> centre, scale;

    std::size_t width() const { return per_state + 1; }
    bool is_one_classifier() const {
        return n_states == 1 ? per_state == 2 : per_state == (sees_all ? n_states : 1);
    }
    // The place of a state's own score among those it sees, if there is one classifier.
    std::size_t own(std::size_t state) const { return sees_all && n_states > 1 ? state : 0; }
    // Two classes have one score per classifier, and then what bends these.
    bool is_own(std::size_t state, std::size_t k) const {
        return n_states == 1 ? k < per_state / 2 : !sees_all || k % n_states == state;
    }
};

// The scores as the node models see them. Two classes have one log-odds, of the second against
// the first, and it sees every score; more classes have one each, which sees every score or, to
// be quick, its own alone.
struct Regressors {
    std::size_t n_states = 0;   // log-odds of a row
    std::size_t per_state = 0;  // scores each of them sees
    std::size_t n_scores = 0;
    std::vector<double> values;           // n_rows x n_scores, of mean 0 and deviation 1; by state
    std::vector<double> offset;           // n_rows x n_states: what the scores say uncorrected
    std::vector<double> centre, scale;    // of each score; a scale of 0: a constant one
    bool corrects_probabilities = false;  // whether there is an offset

    bool sees_all() const { return per_state == n_scores; }
    std::size_t width() const { return per_state + 1; }
    std::size_t n_parameters() const { return n_states * width(); }
    // Where the scores begin that a state sees.
    std::size_t first(std::size_t state) const { return sees_all() ? 0 : state * per_state; }

    ScoreScale score_scale() const { return {n_states, per_state, sees_all(), centre, scale}; }

    // Parameters for the scores as they are.
    void unscaled(const std::vector<double>& parameters, double* to) const {
        for (std::size_t j = 0; j < n_states; ++j) {
            const double* from = parameters.data() + j * width();
            double* intercept = to + j * width();
            *intercept = *from;
            for (std::size_t k = 0; k < per_state; ++k) {
                const std::size_t t = first(j) + k;
                const double slope = scale[t] > 0.0 ? from[1 + k] / scale[t] : 0.0;
                intercept[1 + k] = slope;
                *intercept -= slope * centre[t];
            }
        }
    }
};

// One score, scaled; true if it varies.
inline bool standardise(const Data& data, const double* x, double& mean, double& deviation) {
    const std::size_t n = data.n_rows();
    const double total = total_weight(data);
    double squares = 0.0;
    mean = 0.0;
    for (std::size_t i = 0; i < n; ++i) mean += data.weight(static_cast<Row>(i)) / total * x[i];
    for (std::size_t i = 0; i < n; ++i) {
        squares += data.weight(static_cast<Row>(i)) / total * (x[i] - mean) * (x[i] - mean);
    }
    deviation = std::sqrt(squares);
    const auto [low, high] = std::minmax_element(x, x + n);
    return *low < *high && deviation > 0.0;
}

// `offset`: column-major, n_rows x n_states, or null for none.
inline Regressors regressors(const Data& data, const double* offset, bool all_scores) {
    Regressors result;
    const std::size_t n = data.n_rows();
    result.n_states = data.n_classes == 2 ? 1 : data.n_classes;
    result.n_scores = data.n_scores;
    result.corrects_probabilities = offset != nullptr;
    result.per_state = all_scores ? data.n_scores : data.n_scores / result.n_states;
    result.values.assign(n * data.n_scores, 0.0);
    result.offset.assign(n * result.n_states, 0.0);
    result.centre.assign(data.n_scores, 0.0);
    result.scale.assign(data.n_scores, 0.0);
    for (std::size_t t = 0; t < data.n_scores; ++t) {
        // Those of one state stand side by side, unless all states see all of them.
        const std::size_t state = t / result.per_state;
        const std::size_t column =
            result.sees_all() ? t : (t % result.per_state) * result.n_states + state;
        const double* x = data.score_column(column);
        double deviation;
        if (!standardise(data, x, result.centre[t], deviation)) continue;
        result.scale[t] = deviation;
        for (std::size_t i = 0; i < n; ++i) {
            result.values[i * data.n_scores + t] = (x[i] - result.centre[t]) / deviation;
        }
    }
    for (std::size_t j = 0; offset != nullptr && j < result.n_states; ++j) {
        for (std::size_t i = 0; i < n; ++i) {
            result.offset[i * result.n_states + j] = offset[j * n + i];
        }
    }
    return result;
}

}  // namespace caltree
