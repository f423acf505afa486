// LogitBoost, of regression stumps or small regression trees (Friedman, Hastie and Tibshirani).
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "data/data.hpp"
#include "data/stop.hpp"
#include "kernels/kernels.hpp"
#include "learners/presorted.hpp"
#include "learners/regression_trees.hpp"
#include "learners/stump_grower.hpp"
#include "learners/tree_grower.hpp"

namespace caltree {

// Of two classes, the working response of one is that of the other with the sign changed.
inline std::size_t n_regressions(std::size_t n_classes) { return n_classes == 2 ? 1 : n_classes; }

// The sums of all regressions so far: a column a class, or of two classes the difference.
class ClassScores {
  public:
    ClassScores(std::size_t n_rows, std::size_t n_classes)
        : n_rows_(n_rows),
          n_classes_(n_classes),
          stride_(padded_rows(n_rows)),
          F_(stride_ * n_regressions(n_classes), 0.0),
          index_(n_classes) {
        std::iota(index_.begin(), index_.end(), std::size_t{0});
    }

    std::size_t stride() const { return stride_; }
    const double* from(std::size_t row) const { return F_.data() + row; }
    ClassList classes() const { return {index_.data(), n_classes_}; }

    // Adds what regressions say, in columns as here: around their mean, and a little less.
    void add(const double* values) {
        if (n_classes_ == 2) {
            for (std::size_t i = 0; i < n_rows_; ++i) F_[i] -= values[i];
            return;
        }
        const auto m = static_cast<double>(n_classes_);
        mean_.resize(stride_);
        for (std::size_t i = 0; i < n_rows_; ++i) {
            mean_[i] = sum_in_eights(values + i, stride_, n_classes_) / m;
        }
        for (std::size_t j = 0; j < n_classes_; ++j) {
            const double* column = values + j * stride_;
            double* F = F_.data() + j * stride_;
            for (std::size_t i = 0; i < n_rows_; ++i) {
                F[i] += (column[i] - mean_[i]) * ((m - 1.0) / m);
            }
        }
    }

    // Row-major; at most block_rows.
    void probabilities(double* to) const {
        std::vector<double> p(block_rows * n_classes_);
        if (n_classes_ == 2) {
            kernels().sigmoid(F_.data(), p.data(), p.data() + block_rows, stride_);
        } else {
            kernels().softmax(F_.data(), classes(), stride_, p.data(), stride_);
        }
        for (std::size_t i = 0; i < n_rows_; ++i) {
            for (std::size_t j = 0; j < n_classes_; ++j) *to++ = p[j * block_rows + i];
        }
    }

  private:
    std::size_t n_rows_, n_classes_, stride_;
    std::vector<double> F_;
    std::vector<std::size_t> index_;
    std::vector<double> mean_;
};

template <class Index>
class LogitBoost {
  public:
    // Stumps if there is no depth.
    LogitBoost(const Presorted<Index>& table, std::span<const Label> labels, std::size_t n_classes,
               std::optional<std::size_t> max_depth)
        : n_rows_(labels.size()),
          n_classes_(n_classes),
          scores_(labels.size(), n_classes),
          labels_(labels.begin(), labels.end()),
          counts_(labels.size(), 1.0),
          weights_(scores_.stride() * n_regressions(n_classes)),
          responses_(weights_.size()),
          values_(weights_.size()),
          p_(boosting_rows * n_classes) {
        labels_.resize(scores_.stride(), 0.0);
        counts_.resize(scores_.stride(), 0.0);
        for (std::size_t j = 0; j < n_regressions(n_classes); ++j) {
            const std::size_t begin = j * scores_.stride();
            regressions_.push_back({{weights_.data() + begin, n_rows_},
                                    {responses_.data() + begin, n_rows_},
                                    {values_.data() + begin, n_rows_}});
        }
        if (max_depth) {
            trees_.emplace(table, *max_depth);
        } else {
            stumps_.emplace(table);
        }
    }
    LogitBoost(const LogitBoost&) = delete;
    LogitBoost& operator=(const LogitBoost&) = delete;

    // The trees of an iteration stand side by side, one per class.
    RegressionTrees fit(std::size_t n_iterations) {
        RegressionTrees fitted;
        for (std::size_t iteration = 0; iteration < n_iterations; ++iteration) {
            respond();
            if (trees_) {
                trees_->grow(regressions_, fitted);
            } else {
                stumps_->grow(regressions_, fitted);
            }
            scores_.add(values_.data());
        }
        return fitted;
    }

  private:
    // Working responses, and weights of mean 1.
    void respond() {
        const std::size_t stride = scores_.stride();
        sums_.assign(regressions_.size(), 0.0);
        for (std::size_t begin = 0; begin < stride; begin += boosting_rows) {
            const std::size_t count = std::min(boosting_rows, stride - begin);
            const BoostedRows rows{labels_.data() + begin, counts_.data() + begin, stride};
            const Responses to{weights_.data() + begin, responses_.data() + begin, sums_.data()};
            if (n_classes_ == 2) {
                kernels().respond_to_two(scores_.from(begin), 0, rows, true, to, count);
            } else {
                kernels().respond_in_eights(scores_.from(begin), scores_.classes(), rows, p_.data(),
                                            to, count);
            }
        }
        stop_check_.count(weights_.size());
        for (std::size_t j = 0; j < regressions_.size(); ++j) {
            const double mean = sums_[j] / static_cast<double>(n_rows_);
            double* weights = weights_.data() + j * stride;
            for (std::size_t i = 0; i < n_rows_; ++i) {
                weights[i] = mean > 0.0 ? weights[i] / mean : 0.0;
            }
        }
    }

    std::size_t n_rows_, n_classes_;
    ClassScores scores_;
    std::vector<double> labels_, counts_;               // of the rows, and of rows that pad them
    std::vector<double> weights_, responses_, values_;  // a column a regression
    std::vector<double> p_, sums_;
    std::vector<Regression> regressions_;
    std::optional<StumpGrower<Index>> stumps_;
    std::optional<TreeGrower<Index>> trees_;
    StopCheck stop_check_;
};

// Boosts stumps, or trees if there is a depth.
inline RegressionTrees fit_logitboost(const Table& table,
                                      std::span<const std::int32_t> n_categories,
                                      std::span<const Label> labels, std::size_t n_classes,
                                      std::size_t n_iterations,
                                      std::optional<std::size_t> max_depth) {
    const auto fit = [&]<class Index>(Index) {
        const Presorted<Index> sorted(table, n_categories);
        return LogitBoost<Index>(sorted, labels, n_classes, max_depth).fit(n_iterations);
    };
    constexpr std::size_t few = std::size_t{1} << 16;
    return table.n_rows + table.n_columns <= few ? fit(std::uint16_t{}) : fit(std::uint32_t{});
}

// Probabilities of new rows: row-major, n_rows x n_classes.
inline void predict_logitboost(const BorrowedRegressions& trees, const Table& table,
                               std::size_t n_classes, double* probabilities) {
    const std::size_t m = n_regressions(n_classes);
    std::vector<double> values(m * block_rows);
    StopCheck stop_check;
    for (std::size_t begin = 0; begin < table.n_rows; begin += block_rows) {
        const std::size_t count = std::min(block_rows, table.n_rows - begin);
        ClassScores scores(count, n_classes);
        for (std::size_t t = 0; t < trees.roots.size(); ++t) {
            const auto root = static_cast<std::size_t>(trees.roots[t]);
            double* column = values.data() + t % m * scores.stride();
            for (std::size_t i = 0; i < count; ++i) {
                column[i] = predict(trees, root, table, begin + i);
            }
            stop_check.count(count);
            if (t % m == m - 1) scores.add(values.data());
        }
        scores.probabilities(probabilities + begin * n_classes);
    }
}

}  // namespace caltree
