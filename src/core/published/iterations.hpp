// How many boosting iterations: the number with the lowest held-out error, summed over folds.
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
        if (criterion_ == Criterion::wrong_rows) {
            errors_.push_back(test_->wrong_rows() / test_->total());
            return;
        }
        const double cells = test_->total() * static_cast<double>(data_.n_classes);
        errors_.push_back(std::sqrt(test_->squared_error() / cells));
    }

    const Data& data_;
    Fold fold_;
    Model model_;
    Criterion criterion_;
    std::vector<double> errors_;
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

// `path(f)` is the path of fold f; folds are visited in order, for each bounds the next.
template <class PathOf>
IterationChoice choose_iterations(std::size_t n_folds, std::size_t most, PathOf&& path) {
    std::vector<double> sums(most + 1, 0.0);
    std::size_t limit = most;
    for (std::size_t f = 0; f < n_folds; ++f) {
        BoostingPath& fold = path(f);
        double lowest = std::numeric_limits<double>::infinity();
        std::size_t best = 0;
        std::size_t reached = 0;
        for (std::size_t i = 0; i <= limit && fold.reach(i); ++i) {
            reached = i;
            sums[i] += fold.errors()[i];
            if (sums[i] < lowest) {
                lowest = sums[i];
                best = i;
            }
            if (i == best + iterations_without_gain) break;
        }
        limit = reached;
        fold.release();
    }
    sums.resize(limit + 1);
    IterationChoice choice;
    const double lowest = *std::min_element(sums.begin(), sums.end());
    while (sums[choice.best] > lowest + plateau) ++choice.best;
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
