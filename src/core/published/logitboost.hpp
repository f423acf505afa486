// LogitBoost with lines over single scores: the node model, grown an iteration at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <span>
#include <vector>

#include "data/data.hpp"
#include "data/stop.hpp"
#include "kernels/kernels.hpp"

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

// The rows of one node, gathered side by side, and the state of boosting on them.
class Booster {
  public:
    Booster(std::size_t n_classes, std::size_t n_scores)
        : m_(n_classes),
          c_(n_scores),
          width_(padded(n_scores)),
          p_(n_classes * block_rows),
          slopes_(width_),
          errors_(width_),
          usable_(n_scores, 1),
          all_classes_(n_classes),
          model_(n_classes, n_scores),
          lines_(n_classes) {
        std::iota(all_classes_.begin(), all_classes_.end(), std::size_t{0});
    }

    void load(const Data& data, std::span<const Row> rows) {
        n_rows_ = rows.size();
        n_ = padded_rows(n_rows_);
        total_ = total_weight(data, rows);
        resize(x_, n_ * width_);
        resize(labels_, n_);
        resize(weights_, n_);
        for (std::size_t c = 0; c < c_; ++c) {
            const double* from = data.score_column(c);
            for (std::size_t i = 0; i < n_rows_; ++i) x_[i * width_ + c] = from[rows[i]];
        }
        std::vector<std::uint8_t> seen(m_, 0);
        bool tame_weights = true;
        for (std::size_t i = 0; i < n_rows_; ++i) {
            std::fill(x_.begin() + signed_size(i * width_ + c_),
                      x_.begin() + signed_size((i + 1) * width_), 0.0);
            x_[(i + 1) * width_ - 2] = 1.0;
            labels_[i] = static_cast<double>(data.labels[rows[i]]);
            weights_[i] = data.weight(rows[i]);
            tame_weights = tame_weights && is_tame(weights_[i]);
            seen[data.labels[rows[i]]] = 1;
        }
        exact_ = !tame_weights;
        present_.clear();
        absent_.clear();
        for (const std::size_t j : all_classes_) (seen[j] != 0 ? present_ : absent_).push_back(j);
        for (std::size_t i = n_rows_; i < n_; ++i) {
            std::fill_n(x_.begin() + signed_size(i * width_), width_, 0.0);
            labels_[i] = 0.0;
            weights_[i] = 0.0;
        }
    }

    // Marks the scores that have one value only; true if that is all of them.
    bool set_constant_scores_aside() {
        bool all = true;
        for (std::size_t c = 0; c < c_; ++c) {
            double low = x_[c];
            double high = x_[c];
            for (std::size_t i = 1; i < n_rows_; ++i) {
                low = std::min(low, x_[i * width_ + c]);
                high = std::max(high, x_[i * width_ + c]);
            }
            usable_[c] = low < high ? 1 : 0;
            all = all && usable_[c] == 0;
        }
        return all;
    }

    void start(const Model& model) {
        model_ = model;
        resize(F_, state_columns() * n_);
        std::fill_n(F_.begin(), state_columns() * n_, 0.0);
        for_blocks([&](std::size_t begin, std::size_t count) {
            for (std::size_t s = 0; s < state_columns(); ++s) {
                double* f = p_.data() + s * boosting_rows;
                set_line(f, {state_term(s, 0), state_term(s, 1), 0}, 1.0, begin, count);
                for (std::size_t c = 1; c < c_; ++c) {
                    add_line(f, {0.0, state_term(s, c + 1), c}, 1.0, begin, count);
                }
            }
            move(begin, count);
        });
    }

    // One iteration. False, with nothing changed, if some class can use no score.
    bool step() {
        mirrored_ = m_ == 2;
        if (mirrored_) {
            respond({&all_classes_[1], 1});
            mirrored_ = sum_w_[0] >= mirrored_above * total_;
        }
        if (mirrored_) {
            if (!fit_lines({&all_classes_[1], 1})) return false;
            add_to_model(0, lines_[1], -1.0);
            add_to_model(1, lines_[1], 1.0);
        } else {
            const std::span<const std::size_t> classes = awake();
            respond(classes);
            if (!fit_lines(classes)) return false;
            for (std::size_t j = 0; j < m_; ++j) add_to_model(j, lines_[j], 1.0);
        }
        follow(*this);
        return true;
    }

    // Moves the state as the last iteration of `other` says.
    void follow(const Booster& other) {
        for_blocks([&](std::size_t begin, std::size_t count) {
            if (other.mirrored_) {
                add_line(F_.data() + begin, other.lines_[1], 1.0, begin, count);
            } else if (m_ == 2) {
                add_line(F_.data() + begin, other.lines_[1], model_.scale(), begin, count);
                add_line(F_.data() + begin, other.lines_[0], -model_.scale(), begin, count);
            } else {
                for (std::size_t j = 0; j < m_; ++j) {
                    set_line(p_.data() + j * boosting_rows, other.lines_[j], 1.0, begin, count);
                }
                move(begin, count);
            }
        });
    }

    // Replaces the intercepts so that the (constant) scores give smoothed class frequencies.
    void set_frequencies() {
        std::vector<double> counts(m_, 1.0);  // Laplace's correction
        for (std::size_t i = 0; i < n_rows_; ++i) {
            counts[static_cast<std::size_t>(labels_[i])] += weights_[i];
        }
        Model model = model_;
        for (std::size_t j = 0; j < m_; ++j) {
            double slopes = 0.0;
            for (std::size_t c = 0; c < c_; ++c) slopes += model.at(j, c + 1) * x_[c];
            model.at(j, 0) = std::log(counts[j]) / model.scale() - slopes;
        }
        start(model);
    }

    // Squared differences between probabilities and classes, summed over rows and classes.
    double squared_error() {
        double sum = 0.0;
        for_blocks<block_rows>([&](std::size_t begin, std::size_t count) {
            probabilities(begin, count);
            for (std::size_t j = 0; j < m_; ++j) {
                sum +=
                    kernels_.squared_error(p_.data() + j * block_rows, labels_.data() + begin,
                                           static_cast<double>(j), weights_.data() + begin, count);
            }
        });
        return sum;
    }

    // The weight of the rows whose class is not the most probable one, the first of equals.
    double wrong_rows() {
        double sum = 0.0;
        for_blocks([&](std::size_t begin, std::size_t count) {
            const std::size_t end = std::min(n_rows_, begin + count);
            for (std::size_t i = begin; i < end; ++i) {
                if (static_cast<double>(most_probable(i)) != labels_[i]) sum += weights_[i];
            }
        });
        return sum;
    }

    double error(Criterion criterion) {
        return criterion == Criterion::wrong_rows ? wrong_rows()
                                                  : squared_error() / static_cast<double>(m_);
    }

    const Model& model() const { return model_; }
    double total() const { return total_; }

  private:
    struct Line {
        double intercept = 0.0;
        double slope = 0.0;
        std::size_t score = 0;
    };

    // With two classes the line of class 0 mirrors that of class 1, and the state is the one
    // column F_1 - F_0; but 1 - p loses its digits once p is nearly 1, and where such rows carry
    // the weight the two classes part. Below this average weight both lines are computed.
    static constexpr double mirrored_above = 1e-4;

    // Sums above this are the same whether weights too small to be tame are added or not.
    static constexpr double smallest_sum = 0x1p-100;

    // Whether products with a weight are as far from the smallest numbers as those without.
    static bool is_tame(double weight) {
        return weight == 0.0 || (weight > 0x1p-60 && weight < 0x1p60);
    }

    static std::ptrdiff_t signed_size(std::size_t size) {
        return static_cast<std::ptrdiff_t>(size);
    }
    static void resize(std::vector<double>& array, std::size_t size) {
        if (array.size() < size) array.resize(size);
    }

    template <std::size_t most = boosting_rows, class Work>
    void for_blocks(Work&& work) {
        for (std::size_t begin = 0; begin < n_; begin += most) {
            stop_check_.count(most);
            work(begin, std::min(most, n_ - begin));
        }
    }

    std::size_t state_columns() const { return m_ == 2 ? 1 : m_; }
    double state_term(std::size_t column, std::size_t term) const {
        return m_ == 2 ? model_.at(1, term) - model_.at(0, term) : model_.at(column, term);
    }

    std::size_t most_probable(std::size_t row) const {
        if (m_ == 2) return F_[row] > 0.0 ? 1 : 0;
        std::size_t best = 0;
        for (std::size_t j = 1; j < m_; ++j) {
            if (F_[j * n_ + row] > F_[best * n_ + row]) best = j;
        }
        return best;
    }

    ScoreRows scores(std::size_t begin) const { return {x_.data() + begin * width_, width_}; }

    // F += (m-1)/m (f - mean of f) for the block of f that stands in p_.
    void move(std::size_t begin, std::size_t count) {
        if (m_ == 2) {
            for (std::size_t i = 0; i < count; ++i) F_[begin + i] += model_.scale() * p_[i];
        } else {
            kernels_.add_centred(F_.data() + begin, n_, p_.data(), m_, count);
        }
    }

    // Class probabilities of a block of rows, one column of block_rows for each class.
    void probabilities(std::size_t begin, std::size_t count) {
        if (m_ == 2) {
            kernels_.sigmoid(F_.data() + begin, p_.data(), p_.data() + block_rows, count);
        } else {
            kernels_.softmax(F_.data() + begin, {all_classes_.data(), m_}, n_, p_.data(), count);
        }
    }

    // The classes whose lines must be fitted. Where a class without rows is so improbable that
    // 1 - p is 1 to the last digit, its responses are all -1, and -1 is its line.
    std::span<const std::size_t> awake() {
        if (m_ == 2 || absent_.empty()) return all_classes_;
        // exp(-38) is below half a unit in the last place of 1; exp(-700) is not yet lost.
        constexpr double low = -700.0, high = -38.0;
        asleep_.assign(absent_.begin(), absent_.end());
        for_blocks([&](std::size_t begin, std::size_t count) {
            kernels_.highest(F_.data() + begin, {present_.data(), present_.size()}, n_, p_.data(),
                             count);
            std::erase_if(asleep_, [&](std::size_t j) {
                const double* Fj = F_.data() + j * n_ + begin;
                return !kernels_.all_between(Fj, p_.data(), low, high, count);
            });
        });
        for (const std::size_t j : asleep_) lines_[j] = {-1.0, 0.0, 0};
        awake_.clear();
        std::set_difference(all_classes_.begin(), all_classes_.end(), asleep_.begin(),
                            asleep_.end(), std::back_inserter(awake_));
        return awake_;
    }

    Responses responses(std::size_t begin) {
        return {w_.data() + begin, z_.data() + begin, sum_w_.data()};
    }

    // Working responses and weights of some classes. Beside a sum of any size it makes no
    // difference that small weights are held at a tame one.
    void respond(std::span<const std::size_t> classes) {
        respond(classes, exact_);
        const bool lost = std::any_of(sum_w_.begin(), sum_w_.end(),
                                      [](double sum) { return !(sum > smallest_sum); });
        if (!exact_ && !tame_ && lost) respond(classes, true);
    }

    void respond(std::span<const std::size_t> classes, bool exact) {
        resize(w_, classes.size() * n_);
        resize(z_, classes.size() * n_);
        sum_w_.assign(classes.size(), 0.0);
        tame_ = true;
        exact_ = exact;
        for_blocks([&](std::size_t begin, std::size_t count) {
            const BoostedRows rows{labels_.data() + begin, weights_.data() + begin, n_};
            tame_ = respond(classes, rows, begin, count) && tame_;
        });
    }

    bool respond(std::span<const std::size_t> classes, const BoostedRows& rows, std::size_t begin,
                 std::size_t count) {
        const double* F = F_.data() + begin;
        Responses to = responses(begin);
        if (m_ > 2) {
            return kernels_.respond_to_all(F, {classes.data(), classes.size()}, rows, exact_,
                                           p_.data(), to, count);
        }
        bool tame = true;
        for (const std::size_t label : classes) {
            tame = kernels_.respond_to_two(F, label, rows, exact_, to, count) && tame;
            to = {to.w + n_, to.z + n_, to.sum_w + 1};
        }
        return tame;
    }

    // Weighted simple regression of the responses of some classes on each score: the best line of
    // each class. False if some class has none.
    bool fit_lines(std::span<const std::size_t> classes) {
        if (std::any_of(sum_w_.begin(), sum_w_.end(), [](double sum) { return !(sum > 0.0); })) {
            return false;
        }
        sum_up(classes.size());
        if (!exact_ && !tame_ && any_score_hardly_varies(classes.size())) {
            respond(classes, true);
            return fit_lines(classes);
        }
        for (std::size_t r = 0; r < classes.size(); ++r) {
            if (!best_line(r, lines_[classes[r]])) return false;
        }
        return true;
    }

    // The means of scores and responses by their weights, and sums of squares around them.
    void sum_up(std::size_t m) {
        means_.assign(m * width_, 0.0);
        for_blocks([&](std::size_t begin, std::size_t count) {
            kernels_.first_moments(responses(begin), m, n_, scores(begin), total_, exact_,
                                   means_.data(), count);
        });
        for (std::size_t r = 0; r < m; ++r) {
            double* sums = means_.data() + r * width_;
            const double sum_w = sums[width_ - 2];
            for (std::size_t c = 0; c < width_; ++c) sums[c] /= sum_w;
        }
        second_.assign(2 * m * width_, 0.0);
        for_blocks([&](std::size_t begin, std::size_t count) {
            kernels_.second_moments(responses(begin), m, n_, scores(begin), means_.data(),
                                    second_.data(), count);
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

    bool best_line(std::size_t r, Line& line) {
        const double* sum_xx = second_.data() + 2 * r * width_;
        kernels_.slopes_and_errors(sum_xx, width_, slopes_.data(), errors_.data());
        double best = 0.0;
        std::size_t chosen = c_;
        for (std::size_t c = 0; c < c_; ++c) {
            if (usable_[c] == 0 || sum_xx[c] == 0.0) continue;
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

    void add_to_model(std::size_t label, const Line& line, double sign) {
        model_.at(label, 0) += sign * line.intercept;
        model_.at(label, line.score + 1) += sign * line.slope;
    }

    void add_line(double* f, const Line& line, double factor, std::size_t begin,
                  std::size_t count) const {
        kernels_.add_line(f, x_.data() + begin * width_ + line.score, width_,
                          factor * line.intercept, factor * line.slope, count);
    }

    void set_line(double* f, const Line& line, double factor, std::size_t begin,
                  std::size_t count) const {
        kernels_.set_line(f, x_.data() + begin * width_ + line.score, width_,
                          factor * line.intercept, factor * line.slope, count);
    }

    const Kernels& kernels_ = kernels();
    std::size_t m_, c_, width_;
    std::size_t n_rows_ = 0, n_ = 0;  // without and with the rows that only pad
    double total_ = 0.0;
    std::vector<double> x_, labels_, weights_;    // the rows
    std::vector<double> F_, w_, z_;               // the state, a column of n_ a class
    std::vector<double> p_;                       // probabilities or lines of one block
    std::vector<double> sum_w_, means_, second_;  // by class
    std::vector<double> slopes_, errors_;         // of one class, by score
    std::vector<std::uint8_t> usable_;
    std::vector<std::size_t> all_classes_, present_, absent_, awake_, asleep_;
    Model model_;
    std::vector<Line> lines_;
    bool mirrored_ = false;
    bool tame_ = true;    // whether all responses are far from the smallest numbers
    bool exact_ = false;  // whether they are found without that: once needed, always needed
    StopCheck stop_check_;
};

}  // namespace caltree
