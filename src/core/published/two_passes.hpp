// The lines of one iteration in two passes over the rows: as published, to the order of additions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "kernels/kernels.hpp"
#include "published/model.hpp"
#include "published/node_rows.hpp"

namespace caltree {

// Sums above this are the same whether weights too small to be tame are added or not.
inline constexpr double smallest_sum = 0x1p-100;

// Weighted simple regression of working responses on each score, around the means of both. It
// serves where nothing but rounding decides: two scores of two classes are each other's negatives,
// and where no score varies, it is an accident whether one seems to.
class TwoPasses {
  public:
    explicit TwoPasses(const NodeRows& rows)
        : m_(rows.n_classes()),
          c_(rows.n_scores()),
          width_(rows.width()),
          p_(m_ * boosting_rows),
          slopes_(width_),
          errors_(width_) {}

    // Starts anew, for other rows.
    void reset(const NodeRows& rows) { exact_ = !rows.tame_weights(); }

    // Working responses and weights of some classes. Beside a sum of any size it makes no
    // difference that small weights are held at a tame one.
    void respond(NodeRows& rows, const double* F, std::span<const std::size_t> classes) {
        respond(rows, F, classes, exact_);
        const bool lost = std::any_of(sum_w_.begin(), sum_w_.end(),
                                      [](double sum) { return !(sum > smallest_sum); });
        if (!exact_ && !tame_ && lost) respond(rows, F, classes, true);
    }

    // The sum of the weights of the first of those classes.
    double first_sum() const { return sum_w_[0]; }

    // The best line of each of those classes; false if some class has none. If `only_varying`,
    // scores of one value are left out.
    bool fit_lines(NodeRows& rows, const double* F, std::span<const std::size_t> classes,
                   bool only_varying, std::vector<Line>& lines) {
        if (std::any_of(sum_w_.begin(), sum_w_.end(), [](double sum) { return !(sum > 0.0); })) {
            return false;
        }
        rows.make_matrix();
        sum_up(rows, classes.size());
        if (!exact_ && !tame_ && any_score_hardly_varies(classes.size())) {
            respond(rows, F, classes, true);
            return fit_lines(rows, F, classes, only_varying, lines);
        }
        for (std::size_t r = 0; r < classes.size(); ++r) {
            if (!best_line(rows, r, only_varying, lines[classes[r]])) return false;
        }
        return true;
    }

    // The best line of one class, given its residuals; false if it has none.
    template <class ResidualsOf>
    bool fit_line(NodeRows& rows, std::size_t label, ResidualsOf&& residuals_of, bool exact,
                  Line& line) {
        reserve_numbers(w_, rows.padded_size());
        reserve_numbers(z_, rows.padded_size());
        sum_w_.assign(1, 0.0);
        exact_ = exact;
        rows.make_matrix();
        rows.for_blocks([&](std::size_t begin, std::size_t count) {
            kernels_.respond_by_residuals(residuals_of(begin, count), label, rows.block(begin),
                                          responses(begin), count);
        });
        sum_up(rows, 1);
        return best_line(rows, 0, false, line);
    }

  private:
    Responses responses(std::size_t begin) {
        return {w_.data() + begin, z_.data() + begin, sum_w_.data()};
    }

    void respond(NodeRows& rows, const double* F, std::span<const std::size_t> classes,
                 bool exact) {
        reserve_numbers(w_, classes.size() * rows.padded_size());
        reserve_numbers(z_, classes.size() * rows.padded_size());
        sum_w_.assign(classes.size(), 0.0);
        tame_ = true;
        exact_ = exact;
        rows.for_blocks([&](std::size_t begin, std::size_t count) {
            const BoostedRows block = rows.block(begin);
            tame_ = respond(F + begin, classes, block, responses(begin), count) && tame_;
        });
    }

    bool respond(const double* F, std::span<const std::size_t> classes, const BoostedRows& rows,
                 Responses to, std::size_t count) {
        if (m_ > 2) {
            return kernels_.respond_to_all(F, {classes.data(), classes.size()}, rows, exact_,
                                           p_.data(), to, count);
        }
        bool tame = true;
        for (const std::size_t label : classes) {
            tame = kernels_.respond_to_two(F, label, rows, exact_, to, count) && tame;
            to = {to.w + rows.stride, to.z + rows.stride, to.sum_w + 1};
        }
        return tame;
    }

    // Of a block of rows, as few as moments can be made of.
    static std::size_t some(const NodeRows& rows, std::size_t begin, std::size_t count) {
        return std::min(count, padded_rows(rows.size() - begin));
    }

    // The means of scores and responses by their weights, and sums of squares around them.
    void sum_up(NodeRows& rows, std::size_t m) {
        const std::size_t n = rows.padded_size();
        means_.assign(m * width_, 0.0);
        rows.for_blocks([&](std::size_t begin, std::size_t count) {
            kernels_.first_moments(responses(begin), m, n, rows.scores(begin), rows.total(), exact_,
                                   means_.data(), some(rows, begin, count));
        });
        for (std::size_t r = 0; r < m; ++r) {
            double* sums = means_.data() + r * width_;
            const double sum_w = sums[c_];
            for (std::size_t c = 0; c < width_; ++c) sums[c] /= sum_w;
        }
        second_.assign(2 * m * width_, 0.0);
        rows.for_blocks([&](std::size_t begin, std::size_t count) {
            kernels_.second_moments(responses(begin), m, n, rows.scores(begin), means_.data(),
                                    second_.data(), some(rows, begin, count));
        });
    }

    // Whether some score might not vary at all, but for weights that are nothing.
    bool any_score_hardly_varies(std::size_t m) const {
        for (std::size_t r = 0; r < m; ++r) {
            const double* sum_xx = second_.data() + 2 * r * width_;
            if (std::any_of(sum_xx, sum_xx + c_,
                            [](double sum) { return !(sum > smallest_sum); })) {
                return true;
            }
        }
        return false;
    }

    bool best_line(const NodeRows& rows, std::size_t r, bool only_varying, Line& line) {
        const double* sum_xx = second_.data() + 2 * r * width_;
        kernels_.slopes_and_errors(sum_xx, width_, slopes_.data(), errors_.data());
        double best = 0.0;
        std::size_t chosen = c_;
        for (std::size_t c = 0; c < c_; ++c) {
            if ((only_varying && !rows.varies(c)) || sum_xx[c] == 0.0) continue;
            if (!std::isfinite(slopes_[c]) || (chosen < c_ && !(errors_[c] < best))) continue;
            chosen = c;
            best = errors_[c];
        }
        if (chosen == c_) return false;
        const double* means = means_.data() + r * width_;
        const double slope = slopes_[chosen];
        line = {means[width_ - 1] - slope * means[chosen], slope, chosen};
        return true;
    }

    const Kernels& kernels_ = kernels();
    std::size_t m_, c_, width_;
    Numbers w_, z_;                   // a column of all rows for each class
    Numbers p_;                       // of one block
    Numbers sum_w_, means_, second_;  // by class
    Numbers slopes_, errors_;         // of one class, by score
    bool tame_ = true;                // whether all responses are far from the smallest numbers
    bool exact_ = false;  // whether they are found without that: once needed, always needed
};

}  // namespace caltree
