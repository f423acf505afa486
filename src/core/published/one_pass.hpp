// The lines of one iteration in one pass over the rows, where that is exact enough.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "kernels/kernels.hpp"
#include "published/model.hpp"
#include "published/node_rows.hpp"
#include "published/two_passes.hpp"

namespace caltree {

// Weighted simple regression of working responses z on each score. A weight times its response is
// the residual, y - p, so that sums of w, w x, w x x, y - p and (y - p) x say it all. Squares
// around means are differences of these; where a difference loses too many digits, the line is
// fitted again, in two passes.
class OnePass {
  public:
    explicit OnePass(const NodeRows& rows)
        : c_(rows.n_scores()),
          width_(rows.width()),
          used_((c_ + 1 + 3) / 4 * 4),
          p_(rows.n_classes() * boosting_rows),
          two_passes_(rows) {}

    // Starts anew, for other rows.
    void reset(const NodeRows& rows) { exact_ = !rows.tame_weights(); }

    // The best line of each of some classes; false if some class has none.
    bool fit_lines(NodeRows& rows, const double* F, std::span<const std::size_t> classes,
                   std::vector<Line>& lines) {
        rows.make_centred_matrix();
        sum_up(rows, F, classes);
        if (!exact_ && !tame_ && loses(rows, classes.size())) {
            exact_ = true;
            sum_up(rows, F, classes);
        }
        for (std::size_t r = 0; r < classes.size(); ++r) {
            if (!(sum_w(r) > 0.0)) return false;
        }
        find_slopes(classes.size());
        for (std::size_t r = 0; r < classes.size(); ++r) {
            if (!best_line(rows, r, classes, lines[classes[r]])) return false;
        }
        return true;
    }

  private:
    // A sum of squares around the mean that is a smaller part of that around the centre is not
    // trusted: it has lost three digits.
    static constexpr double smallest_part = 1e-3;

    // Of a sum of so many numbers as a node has rows, with room to spare.
    static constexpr double rounding = 1e-14;

    const double* moments(std::size_t r) const { return moments_.data() + 3 * r * width_; }
    double sum_w(std::size_t r) const { return moments(r)[c_]; }
    double sum_r(std::size_t r) const { return moments(r)[2 * width_ + c_]; }

    // Residuals stand block by block, class by class.
    Residuals residuals(std::size_t begin, std::size_t count, std::size_t m) {
        return {w_.data() + begin * m, r_.data() + begin * m, count};
    }

    void sum_up(NodeRows& rows, const double* F, std::span<const std::size_t> classes) {
        const std::size_t m = classes.size();
        reserve_numbers(w_, m * rows.padded_size());
        reserve_numbers(r_, m * rows.padded_size());
        moments_.assign(3 * m * width_, 0.0);
        tame_ = true;
        rows.for_blocks([&](std::size_t begin, std::size_t count) {
            const Residuals to = residuals(begin, count, m);
            const bool tame = kernels_.residuals(F + begin, {classes.data(), m}, rows.block(begin),
                                                 exact_, rows.weighted(), p_.data(), to, count);
            tame_ = tame_ && tame;
            const std::size_t real = std::min(count, rows.size() - begin);
            kernels_.moments(to, m, rows.centred_scores(begin), used_, moments_.data(), real);
        });
    }

    // Whether some sum is so small that numbers held at the smallest tame one count.
    bool loses(const NodeRows& rows, std::size_t m) const {
        for (std::size_t r = 0; r < m; ++r) {
            if (!(sum_w(r) > smallest_sum)) return true;
            for (std::size_t c = 0; c < c_; ++c) {
                const double wx = moments(r)[c], wxx = moments(r)[width_ + c];
                const double xx = (wxx - wx * wx / sum_w(r)) * (rows.total() / sum_w(r));
                if (rows.varies(c) && !(xx > smallest_sum)) return true;
            }
        }
        return false;
    }

    void find_slopes(std::size_t m) {
        reserve_numbers(sum_xx_, m * width_);
        reserve_numbers(slopes_, m * width_);
        reserve_numbers(gains_, m * width_);
        kernels_.slopes_and_gains(moments_.data(), m, width_, used_, c_, sum_xx_.data(),
                                  slopes_.data(), gains_.data());
    }

    bool best_line(NodeRows& rows, std::size_t r, std::span<const std::size_t> classes,
                   Line& line) {
        const double* slopes = slopes_.data() + r * width_;
        const std::size_t chosen = most_gained(gains_.data() + r * width_);
        if (!is_certain(rows, r, classes[r], chosen) || !std::isfinite(slopes[chosen])) {
            const auto residuals_of = [&](std::size_t begin, std::size_t count) {
                return residuals(begin, count, classes.size()).r + r * count;
            };
            return two_passes_.fit_line(rows, classes[r], residuals_of, exact_, line);
        }
        const double mean = rows.centre(chosen) + moments(r)[chosen] / sum_w(r);
        line = {sum_r(r) / sum_w(r) - slopes[chosen] * mean, slopes[chosen], chosen};
        return true;
    }

    // The first of equals. Scores that do not vary have no gain: it is not a number.
    std::size_t most_gained(const double* gains) const {
        std::size_t chosen = c_;
        double most = -1.0;
        for (std::size_t c = 0; c < c_; ++c) {
            const bool more = gains[c] > most;  // without a branch: none can foresee it
            most = more ? gains[c] : most;
            chosen = more ? c : chosen;
        }
        return chosen;
    }

    // Whether rounding errors of the sums can have no say in the choice.
    bool is_certain(const NodeRows& rows, std::size_t r, std::size_t label,
                    std::size_t chosen) const {
        if (chosen == c_) return false;
        const double* sum_xx = sum_xx_.data() + r * width_;
        const double* wxx = moments(r) + width_;
        const double* gains = gains_.data() + r * width_;
        // Once a class has converged, its gains are nothing beside its squared error, which decides
        // between scores only as far as its digits go. A class without rows never converges.
        const double blur = rows.is_present(label) ? rounding * sum_w(r) : 0.0;
        const double most = gains[chosen];
        const auto is_clear = [&](std::size_t c) {
            return static_cast<unsigned>(sum_xx[c] >= smallest_part * wxx[c]) &
                   (static_cast<unsigned>(!(gains[c] + blur >= most)) |
                    static_cast<unsigned>(gains[c] == most));
        };
        unsigned n_clear = 0;
        for (std::size_t c = 0; c < c_; ++c) n_clear += is_clear(c);
        if (n_clear == c_) return true;
        for (std::size_t c = 0; c < c_; ++c) {
            if (is_clear(c) != 0) continue;
            if (c == chosen || !(sum_xx[c] > 0.0)) return false;
            const double error = rounding * (wxx[c] / sum_xx[c]) * (gains[c] + sum_w(r));
            if (!(gains[c] + error < gains[chosen])) return false;
        }
        return true;
    }

    const Kernels& kernels_ = kernels();
    std::size_t c_, width_, used_;
    Numbers w_, r_;                              // by block, class and row
    Numbers p_;                                  // of one block
    Numbers moments_, sum_xx_, slopes_, gains_;  // by class and score
    TwoPasses two_passes_;
    bool tame_ = true;
    bool exact_ = false;  // whether no number is held at the smallest tame one
};

}  // namespace caltree
