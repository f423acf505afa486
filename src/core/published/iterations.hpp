// How many boosting iterations: the number with the lowest held-out error, summed over folds. Where
// that counts wrong rows, several numbers are as good as the lowest; of these the lowest RMSE wins.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "data/folds.hpp"
#include "published/logitboost.hpp"

namespace caltree {

// A fold stops this many iterations after the best one so far.
inline constexpr std::size_t iterations_without_gain = 52;

// Boosting on one fold's training part, with the held-out error after every iteration.
class BoostingPath {
  public:
    BoostingPath(const Data& data, Fold fold, Model start, Criterion criterion)
        : data_(data), fold_(std::move(fold)), model_(std::move(start)), criterion_(criterion) {}

    // Held-out RMSE, or share of wrong rows, by iteration; [0] is the starting model's.
    const std::vector<double>& errors() const { return errors_; }

    // Held-out RMSE in any case.
    const std::vector<double>& rmse() const { return counts_wrong_rows() ? rmse_ : errors_; }

    bool counts_wrong_rows() const { return criterion_ == Criterion::wrong_rows; }

    // The weight of the held-out rows.
    double total() const { return total_weight(data_, fold_.test); }

    // Boosts until the error after `iteration` iterations is known; false if it never will be.
    bool reach(std::size_t iteration) {
        if (errors_.size() <= iteration && !exhausted_ && train_ == nullptr) load();
        while (errors_.size() <= iteration && !exhausted_) {
            if (!train_->step()) {
                exhausted_ = true;
                break;
            }
            test_->follow(*train_);
            note_error();
        }
        return errors_.size() > iteration;
    }

    // Runs ahead as far as this fold alone would go and `margin` further, then lets go of the
    // memory: what the other folds make of it is seen in choose_iterations. Returns how far it is.
    std::size_t run_ahead(std::size_t most, std::size_t margin) {
        std::size_t best = 0;
        for (std::size_t i = 0; i <= most && reach(i); ++i) {
            if (errors_[i] < errors_[best]) best = i;
            if (i >= best + iterations_without_gain + margin) break;
        }
        release();
        return errors_.size() - 1;
    }

    void release() {
        if (train_ == nullptr) return;
        model_ = train_->model();
        train_.reset();
        test_.reset();
    }

  private:
    void load() {
        train_ = std::make_unique<Booster>(data_.n_classes, data_.n_scores);
        test_ = std::make_unique<Booster>(data_.n_classes, data_.n_scores);
        train_->load(data_, fold_.train);
        test_->load(data_, fold_.test);
        train_->start(model_);
        test_->start(model_);
        if (errors_.empty()) note_error();
    }

    void note_error() {
        const double cells = test_->total() * static_cast<double>(data_.n_classes);
        const double rmse = std::sqrt(test_->squared_error() / cells);
        if (counts_wrong_rows()) rmse_.push_back(rmse);
        errors_.push_back(counts_wrong_rows() ? test_->wrong_rows() / test_->total() : rmse);
    }

    const Data& data_;
    Fold fold_;
    Model model_;
    Criterion criterion_;
    std::vector<double> errors_, rmse_;
    bool exhausted_ = false;
    std::unique_ptr<Booster> train_, test_;
};

// Once boosting has converged, the sums differ by rounding alone: among those that lie no further
// above the lowest, the fewest iterations are as good as any and the cheapest by far.
inline constexpr double plateau = 1e-13;

struct IterationChoice {
    std::size_t best = 0;
    std::vector<double> sums;  // summed errors of the iterations that every fold reached
};

// The sum of the shares of wrong rows up to which a number of iterations is as good as the best:
// the lowest and its standard error, as CART prunes. Without any iteration all classes may be
// equally probable, and the first counts as right by its place alone: that does not say what the
// lowest is.
inline double good_sum(std::span<const double> sums, std::size_t n_folds, double n_rows) {
    const double folds = static_cast<double>(n_folds);
    const double lowest =
        *std::min_element(sums.begin() + (sums.size() > 1 ? 1 : 0), sums.end()) / folds;
    return folds * (lowest + std::sqrt(std::max(0.0, lowest * (1.0 - lowest)) / n_rows));
}

// The number of the lowest RMSE among those whose error is good.
inline std::size_t best_iteration(std::span<const double> errors, double good,
                                  std::span<const double> rmse) {
    double lowest = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < errors.size(); ++i) {
        if (errors[i] <= good + plateau) lowest = std::min(lowest, rmse[i]);
    }
    std::size_t best = 0;
    while (errors[best] > good + plateau || rmse[best] > lowest + plateau) ++best;
    return best;
}

// `path(f)` is the path of fold f; folds are visited in order, for each bounds the next.
template <class PathOf>
IterationChoice choose_iterations(std::size_t n_folds, std::size_t most, PathOf&& path) {
    std::vector<double> sums(most + 1, 0.0), rmse(most + 1, 0.0);
    std::size_t limit = most;
    double n_counted = 0.0;  // held-out rows, if those that are wrong are counted
    for (std::size_t f = 0; f < n_folds; ++f) {
        BoostingPath& fold = path(f);
        double lowest = std::numeric_limits<double>::infinity();
        std::size_t best = 0;
        std::size_t reached = 0;
        for (std::size_t i = 0; i <= limit && fold.reach(i); ++i) {
            reached = i;
            sums[i] += fold.errors()[i];
            rmse[i] += fold.rmse()[i];
            if (sums[i] < lowest) {
                lowest = sums[i];
                best = i;
            }
            if (i == best + iterations_without_gain) break;
        }
        limit = reached;
        if (fold.counts_wrong_rows()) n_counted += fold.total();
        fold.release();
    }
    sums.resize(limit + 1);
    rmse.resize(limit + 1);
    double good = *std::min_element(sums.begin(), sums.end());
    if (n_counted > 0.0) good = good_sum(sums, n_folds, n_counted);
    IterationChoice choice;
    choice.best = best_iteration(sums, good, rmse);
    choice.sums = std::move(sums);
    return choice;
}

// The choice made anew for the rows of one node, starting from its parent's model.
inline std::size_t choose_iterations_here(const Data& data, std::span<const Row> rows,
                                          const Model& start, std::size_t n_folds, std::size_t most,
                                          Criterion criterion) {
    std::vector<Fold> folds = make_folds(data.labels, rows, n_folds);
    std::vector<BoostingPath> paths;
    paths.reserve(n_folds);
    for (Fold& fold : folds) paths.emplace_back(data, std::move(fold), start, criterion);
    return choose_iterations(n_folds, most,
                             [&](std::size_t f) -> BoostingPath& { return paths[f]; })
        .best;
}

}  // namespace caltree
