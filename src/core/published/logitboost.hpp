// LogitBoost with lines over single scores: the node model, grown an iteration at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <span>
#include <vector>

#include "data/data.hpp"
#include "kernels/kernels.hpp"
#include "published/model.hpp"
#include "published/node_rows.hpp"
#include "published/one_pass.hpp"
#include "published/two_passes.hpp"

namespace caltree {

// The rows of one node and the state of boosting on them.
class Booster {
  public:
    Booster(std::size_t n_classes, std::size_t n_scores)
        : m_(n_classes),
          c_(n_scores),
          rows_(n_classes, n_scores),
          one_pass_(rows_),
          two_passes_(rows_),
          p_(n_classes * block_rows),
          all_classes_(n_classes),
          model_(n_classes, n_scores),
          lines_(n_classes) {
        std::iota(all_classes_.begin(), all_classes_.end(), std::size_t{0});
    }

    void load(const Data& data, std::span<const Row> rows) {
        rows_.load(data, rows);
        one_pass_.reset(rows_);
        two_passes_.reset(rows_);
        in_one_pass_ = m_ > 2 && rows_.any_varies() && rows.size() >= fewest_for_one_pass;
        only_varying_ = false;
    }

    // Leaves out the scores that have one value only; true if that is all of them.
    bool set_constant_scores_aside() {
        only_varying_ = true;
        return !rows_.any_varies();
    }

    void start(const Model& model) {
        model_ = model;
        const std::size_t n = rows_.padded_size();
        reserve_numbers(F_, state_columns() * n);
        std::fill_n(F_.begin(), state_columns() * n, 0.0);
        rows_.for_blocks([&](std::size_t begin, std::size_t count) {
            for (std::size_t s = 0; s < state_columns(); ++s) {
                double* f = p_.data() + s * boosting_rows;
                set_line(f, {state_term(s, 0), state_term(s, 1), 0}, begin, count);
                for (std::size_t c = 1; c < c_; ++c) {
                    add_line(f, {0.0, state_term(s, c + 1), c}, 1.0, begin, count);
                }
            }
            move(begin, count);
        });
    }

    // One iteration. False, with nothing changed, if some class can use no score.
    bool step() {
        mirrored_ = false;
        if (m_ == 2) {
            const std::span<const std::size_t> second{&all_classes_[1], 1};
            two_passes_.respond(rows_, F_.data(), second);
            mirrored_ = two_passes_.first_sum() >= mirrored_above * rows_.total();
            if (mirrored_ &&
                !two_passes_.fit_lines(rows_, F_.data(), second, only_varying_, lines_)) {
                return false;
            }
        }
        if (!mirrored_ && !fit_lines(awake())) return false;
        for (std::size_t j = 0; j < m_; ++j) {
            if (mirrored_) {
                add_to_model(j, lines_[1], j == 1 ? 1.0 : -1.0);
            } else {
                add_to_model(j, lines_[j], 1.0);
            }
        }
        follow(*this);
        return true;
    }

    // Moves the state as the last iteration of `other` says.
    void follow(const Booster& other) {
        const double scale = model_.scale();
        rows_.for_blocks<block_rows>([&](std::size_t begin, std::size_t count) {
            if (other.mirrored_) {
                add_line(F_.data() + begin, other.lines_[1], 1.0, begin, count);
            } else if (m_ == 2) {
                add_line(F_.data() + begin, other.lines_[1], scale, begin, count);
                add_line(F_.data() + begin, other.lines_[0], -scale, begin, count);
            } else if (in_one_pass_) {
                // Not centred: what is added to all classes changes no probability.
                for (std::size_t j = 0; j < m_; ++j) {
                    double* Fj = F_.data() + j * rows_.padded_size() + begin;
                    add_line(Fj, other.lines_[j], scale, begin, count);
                }
            } else {
                follow_centred(other, begin, count);
            }
        });
    }

    // Replaces the intercepts so that the (constant) scores give smoothed class frequencies.
    void set_frequencies() {
        std::vector<double> counts(m_, 1.0);  // Laplace's correction
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            counts[static_cast<std::size_t>(rows_.label(i))] += rows_.weight(i);
        }
        Model model = model_;
        for (std::size_t j = 0; j < m_; ++j) {
            double slopes = 0.0;
            for (std::size_t c = 0; c < c_; ++c) slopes += model.at(j, c + 1) * rows_.column(c)[0];
            model.at(j, 0) = std::log(counts[j]) / model.scale() - slopes;
        }
        start(model);
    }

    // Squared differences between probabilities and classes, summed over rows and classes.
    double squared_error() {
        double sum = 0.0;
        rows_.for_blocks<block_rows>([&](std::size_t begin, std::size_t count) {
            probabilities(begin, count);
            for (std::size_t j = 0; j < m_; ++j) {
                sum += kernels_.squared_error(p_.data() + j * block_rows, rows_.labels(begin),
                                              static_cast<double>(j), rows_.weights(begin), count);
            }
        });
        return sum;
    }

    // The weight of the rows whose class is not the most probable one, the first of equals.
    double wrong_rows() {
        double sum = 0.0;
        rows_.for_blocks([&](std::size_t begin, std::size_t count) {
            const std::size_t end = std::min(rows_.size(), begin + count);
            for (std::size_t i = begin; i < end; ++i) {
                if (static_cast<double>(most_probable(i)) != rows_.label(i)) sum += rows_.weight(i);
            }
        });
        return sum;
    }

    double error(Criterion criterion) {
        return criterion == Criterion::wrong_rows ? wrong_rows()
                                                  : squared_error() / static_cast<double>(m_);
    }

    const Model& model() const { return model_; }
    double total() const { return rows_.total(); }

  private:
    // With two classes the line of class 0 mirrors that of class 1, and the state is the one
    // column F_1 - F_0; but 1 - p loses its digits once p is nearly 1, and where such rows carry
    // the weight the two classes part. Below this average weight both lines are computed.
    static constexpr double mirrored_above = 1e-4;

    // In smaller nodes, which are soon pure, most lines would have to be fitted again.
    static constexpr std::size_t fewest_for_one_pass = 32;

    std::size_t state_columns() const { return m_ == 2 ? 1 : m_; }
    double state_term(std::size_t column, std::size_t term) const {
        return m_ == 2 ? model_.at(1, term) - model_.at(0, term) : model_.at(column, term);
    }

    std::size_t most_probable(std::size_t row) const {
        if (m_ == 2) return F_[row] > 0.0 ? 1 : 0;
        const double* F = F_.data() + row;
        std::size_t best = 0;
        for (std::size_t j = 1; j < m_; ++j) {
            if (F[j * rows_.padded_size()] > F[best * rows_.padded_size()]) best = j;
        }
        return best;
    }

    void follow_centred(const Booster& other, std::size_t begin, std::size_t count) {
        for (std::size_t first = begin; first < begin + count; first += boosting_rows) {
            const std::size_t some = std::min(boosting_rows, begin + count - first);
            for (std::size_t j = 0; j < m_; ++j) {
                set_line(p_.data() + j * boosting_rows, other.lines_[j], first, some);
            }
            move(first, some);
        }
    }

    // F += (m-1)/m (f - mean of f) for the block of f that stands in p_.
    void move(std::size_t begin, std::size_t count) {
        if (m_ == 2) {
            for (std::size_t i = 0; i < count; ++i) F_[begin + i] += model_.scale() * p_[i];
        } else {
            kernels_.add_centred(F_.data() + begin, rows_.padded_size(), p_.data(), m_, count);
        }
    }

    // Class probabilities of a block of rows, one column of block_rows for each class.
    void probabilities(std::size_t begin, std::size_t count) {
        if (m_ == 2) {
            kernels_.sigmoid(F_.data() + begin, p_.data(), p_.data() + block_rows, count);
        } else {
            kernels_.softmax(F_.data() + begin, {all_classes_.data(), m_}, rows_.padded_size(),
                             p_.data(), count);
        }
    }

    // The classes whose lines must be fitted. Where a class without rows is so improbable that
    // 1 - p is 1 to the last digit, its responses are all -1, and -1 is its line.
    std::span<const std::size_t> awake() {
        const std::vector<std::size_t>& present = rows_.present();
        const std::vector<std::size_t>& absent = rows_.absent();
        if (m_ == 2 || absent.empty()) return all_classes_;
        // exp(-38) is below half a unit in the last place of 1; exp(-700) is not yet lost.
        constexpr double low = -700.0, high = -38.0;
        asleep_.assign(absent.begin(), absent.end());
        const std::size_t n = rows_.padded_size();
        rows_.for_blocks([&](std::size_t begin, std::size_t count) {
            kernels_.highest(F_.data() + begin, {present.data(), present.size()}, n, p_.data(),
                             count);
            std::erase_if(asleep_, [&](std::size_t j) {
                const double* Fj = F_.data() + j * n + begin;
                return !kernels_.all_between(Fj, p_.data(), low, high, count);
            });
        });
        for (const std::size_t j : asleep_) lines_[j] = {-1.0, 0.0, 0};
        awake_.clear();
        std::set_difference(all_classes_.begin(), all_classes_.end(), asleep_.begin(),
                            asleep_.end(), std::back_inserter(awake_));
        return awake_;
    }

    bool fit_lines(std::span<const std::size_t> classes) {
        if (in_one_pass_) return one_pass_.fit_lines(rows_, F_.data(), classes, lines_);
        two_passes_.respond(rows_, F_.data(), classes);
        return two_passes_.fit_lines(rows_, F_.data(), classes, only_varying_, lines_);
    }

    void add_to_model(std::size_t label, const Line& line, double sign) {
        model_.at(label, 0) += sign * line.intercept;
        model_.at(label, line.score + 1) += sign * line.slope;
    }

    void add_line(double* f, const Line& line, double factor, std::size_t begin,
                  std::size_t count) const {
        kernels_.add_line(f, rows_.column(line.score) + begin, factor * line.intercept,
                          factor * line.slope, count);
    }

    void set_line(double* f, const Line& line, std::size_t begin, std::size_t count) const {
        kernels_.set_line(f, rows_.column(line.score) + begin, line.intercept, line.slope, count);
    }

    const Kernels& kernels_ = kernels();
    std::size_t m_, c_;
    NodeRows rows_;
    OnePass one_pass_;
    TwoPasses two_passes_;
    Numbers F_;  // the state, a column of all rows for each class
    Numbers p_;  // probabilities or lines of one block
    std::vector<std::size_t> all_classes_, awake_, asleep_;
    Model model_;
    std::vector<Line> lines_;
    bool in_one_pass_ = false;
    bool only_varying_ = false;
    bool mirrored_ = false;
};

}  // namespace caltree
