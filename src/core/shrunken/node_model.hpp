// Node models that stay near their parent's: logistic, penalised by the distance from it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "data/data.hpp"
#include "data/stop.hpp"
#include "kernels/kernels.hpp"
#include "kernels/simd.hpp"
#include "shrunken/newton.hpp"
#include "shrunken/regressors.hpp"

namespace caltree {

// Probabilities of one row from its log-odds, and the log of the sum that norms them.
inline double probabilities_of(const double* F, double* p, std::size_t n_states) {
    if (n_states == 1) {
        const double e = std::exp(-std::abs(F[0]));
        p[0] = (F[0] >= 0.0 ? 1.0 : e) / (1.0 + e);
        return std::max(F[0], 0.0) + std::log1p(e);
    }
    const double highest = *std::max_element(F, F + n_states);
    double sum = 0.0;
    for (std::size_t j = 0; j < n_states; ++j) sum += p[j] = std::exp(F[j] - highest);
    for (std::size_t j = 0; j < n_states; ++j) p[j] /= sum;
    return highest + std::log(sum);
}

// The scores of other classes are held back more than a class's own; and so is what bends the model
// of two classes.
inline constexpr double penalty_of_others = 40.0;
// The root is held at the temperature as structured matrix scaling has it (arXiv 2511.03685): a
// class's own parameters by the number of classes, those of others by the square of it.
inline constexpr double penalty_of_root = 8.0;

inline Penalties penalties(const ScoreScale& scores, double penalty, bool corrects_probabilities,
                           bool rising = false) {
    const std::size_t width = scores.width();
    Penalties result;
    result.of_nodes.assign(scores.n_states * width, penalty);
    result.of_root = result.of_nodes;
    const bool has_temperature = corrects_probabilities && scores.is_one_classifier();
    const auto n_classes = static_cast<double>(std::max<std::size_t>(scores.n_states, 2));
    if (has_temperature) {
        std::fill(result.of_root.begin(), result.of_root.end(),
                  penalty_of_root * n_classes * penalty);
        result.temperature.assign(scores.n_states * width, 0.0);
    }
    for (std::size_t j = 0; j < scores.n_states; ++j) {
        for (std::size_t k = 0; k < scores.per_state; ++k) {
            const std::size_t t = j * width + 1 + k;
            if (scores.is_own(j, k)) continue;
            result.of_nodes[t] *= penalty_of_others;
            const bool by_classes = has_temperature && scores.n_states > 1;
            result.of_root[t] *= by_classes ? n_classes - 1.0 : penalty_of_others;
        }
        if (!has_temperature) continue;
        const std::size_t own = scores.own(j);
        const std::size_t column = scores.sees_all ? own : j * scores.per_state;
        result.temperature[j * width] = scores.centre[column];
        result.temperature[j * width + 1 + own] = scores.scale[column];
    }
    // A constant score has no slope that could fall.
    if (rising && scores.scale[0] > 0.0) {
        const double offset = corrects_probabilities ? 1.0 : 0.0;
        result.rising = RisingSlopes{offset, scores.scale[0], scores.scale[1]};
    }
    return result;
}

// The state of the rows (log-odds, probabilities) and the fit of one node at a time.
class NodeModelFitter {
  public:
    NodeModelFitter(const Data& data, const Regressors& regressors, std::span<const double> weights,
                    Penalties penalties)
        : data_(data),
          r_(regressors),
          weights_(weights),
          newton_(regressors.n_states, std::move(penalties)),
          probability_(data.n_rows() * regressors.n_states),
          row_loss_(data.n_rows()),
          F_(regressors.n_states),
          gradient_(regressors.n_parameters()),
          hessian_(regressors.n_states * regressors.width() * regressors.width()) {
        if (is_simple()) collect_records();
    }

    // From the parent's parameters to this node's, which are written in their place. Returns the
    // weight of the rows.
    double fit(std::span<const Row> rows, std::vector<double>& parameters, bool is_root) {
        if (!is_simple()) {
            double weight = 0.0;
            for (const Row row : rows) weight += weights_[row];
            fit_rows(rows, parameters, is_root, weight);
            return weight;
        }
        const double weight = read_rows(rows);
        fit_rows(rows, parameters, is_root, weight);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            probability_[rows[i]] = p_[i];
            row_loss_[rows[i]] = loss_[i];
        }
        return weight;
    }

    // Writes what the rows of the last fit say about a correction: see EvidenceShape.
    void write_evidence(std::span<const Row> rows, double* to, std::size_t stride) const {
        if (is_simple()) {
            for (std::size_t i = 0; i < rows.size(); ++i, to += stride) {
                to[0] = weight_[i];
                to[1] = weight_[i] * (is_second_[i] - p_[i]);
                to[2] = weight_[i] * p_[i] * (1.0 - p_[i]);
            }
            return;
        }
        for (const Row row : rows) {
            double* sums = std::exchange(to, to + stride);
            const double* p = probability(row);
            *sums++ = weights_[row];
            for (std::size_t j = 0; j < r_.n_states; ++j) {
                *sums++ = weights_[row] * ((is_class(row, j) ? 1.0 : 0.0) - p[j]);
                *sums++ = weights_[row] * p[j] * (1.0 - p[j]);
            }
        }
    }

    // Probabilities of rows under some parameters.
    void apply(std::span<const Row> rows, const std::vector<double>& parameters) {
        each_row(rows, parameters, [](Row, double, const double*) {});
    }

    double* probability(Row row) { return probability_.data() + std::size_t{row} * r_.n_states; }
    const double* probability(Row row) const {
        return probability_.data() + std::size_t{row} * r_.n_states;
    }
    double weight(Row row) const { return weights_[row]; }
    bool is_class(Row row, std::size_t state) const {
        return data_.labels[row] == (r_.n_states == 1 ? 1 : state);
    }
    // Of a row under the last parameters.
    double deviance(Row row) const {
        const double* p = probability(row);
        const std::size_t label = data_.labels[row];
        const double likely = r_.n_states > 1 ? p[label] : (label == 1 ? p[0] : 1.0 - p[0]);
        return -std::log(std::max(likely, smallest_likelihood));
    }
    double squared_error(Row row) const {
        const double* p = probability(row);
        double sum = 0.0;
        for (std::size_t j = 0; j < r_.n_states; ++j) {
            const double residual = (is_class(row, j) ? 1.0 : 0.0) - p[j];
            sum += residual * residual;
        }
        return r_.n_states == 1 ? sum : sum / static_cast<double>(r_.n_states);
    }

  private:
    // Whether it is the most frequent case: two classes, a score and its bend. Then what is known
    // of a node's rows is put side by side, since each step of the fit reads all of it.
    bool is_simple() const { return r_.n_states == 1 && r_.width() == 3; }

    struct Record {
        double offset, score, bend, signed_weight;  // negative, if only -0, for the first class
    };

    void collect_records() {
        records_.resize(data_.n_rows());
        for (std::size_t row = 0; row < records_.size(); ++row) {
            records_[row] = {r_.offset[row], r_.values[2 * row], r_.values[2 * row + 1],
                             data_.labels[row] == 1 ? weights_[row] : -weights_[row]};
        }
    }

    double read_rows(std::span<const Row> rows) {
        const std::size_t padded = padded_rows(rows.size());
        if (p_.size() < padded) {
            for (std::vector<double>* values :
                 {&offset_, &score_, &bend_, &weight_, &is_second_, &p_, &loss_}) {
                values->resize(padded, 0.0);
            }
        }
        double total = 0.0;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (i + rows_ahead < rows.size()) {
                const Row ahead = rows[i + rows_ahead];
                prefetch(&records_[ahead]);
                prefetch(&probability_[ahead]);
                prefetch(&row_loss_[ahead]);
            }
            const Record& record = records_[rows[i]];
            offset_[i] = record.offset;
            score_[i] = record.score;
            bend_[i] = record.bend;
            weight_[i] = std::abs(record.signed_weight);
            is_second_[i] = std::signbit(record.signed_weight) ? 0.0 : 1.0;
            p_[i] = probability_[rows[i]];
            loss_[i] = row_loss_[rows[i]];
            total += weight_[i];
        }
        std::fill(weight_.begin() + rows.size(), weight_.begin() + padded, 0.0);
        return total;
    }

    void fit_rows(std::span<const Row> rows, std::vector<double>& parameters, bool is_root,
                  double weight) {
        // The parent's fit has left behind what it says of these rows.
        const double loss = is_root ? evaluate(rows, parameters) : last_loss(rows);
        newton_.start(parameters, is_root, is_root ? weight : 0.0, loss);
        bool moved = true;
        while (!newton_.is_done()) {
            if (moved) {
                differentiate(rows);
                newton_.set_derivatives(gradient_.data(), hessian_.data());
                if (newton_.is_done()) break;
            }
            moved = newton_.judge(evaluate(rows, newton_.trial()));
        }
        if (!moved) evaluate(rows, newton_.parameters());
        parameters = newton_.parameters();
    }

    double last_loss(std::span<const Row> rows) const {
        double loss = 0.0;
        if (is_simple()) {
            for (std::size_t i = 0; i < rows.size(); ++i) loss += weight_[i] * loss_[i];
        } else {
            for (const Row row : rows) loss += weights_[row] * row_loss_[row];
        }
        return loss;
    }

    const double* values(Row row, std::size_t state) const {
        return r_.values.data() + std::size_t{row} * r_.n_scores + r_.first(state);
    }

    void log_odds(Row row, const std::vector<double>& parameters, double* F) const {
        const double* beta = parameters.data();
        for (std::size_t j = 0; j < r_.n_states; ++j) {
            const double* x = values(row, j);
            double sum = r_.offset[std::size_t{row} * r_.n_states + j] + *beta++;
            for (std::size_t k = 0; k < r_.per_state; ++k) sum += *beta++ * x[k];
            F[j] = sum;
        }
    }

    // The loss of the rows; leaves their probabilities behind.
    double evaluate(std::span<const Row> rows, const std::vector<double>& parameters) {
        double loss = 0.0;
        if (is_simple()) return evaluate_side_by_side(rows.size(), parameters);
        each_row(rows, parameters, [&](Row row, double norm, const double* F) {
            const std::size_t label = data_.labels[row];
            row_loss_[row] = norm - (r_.n_states > 1 ? F[label] : (label == 1 ? F[0] : 0.0));
            loss += weights_[row] * row_loss_[row];
        });
        return loss;
    }

    LogisticRows side_by_side() const {
        return {offset_.data(), score_.data(), bend_.data(), weight_.data(), is_second_.data()};
    }

    double evaluate_side_by_side(std::size_t n, const std::vector<double>& parameters) {
        stop_check_.count(n);
        return kernels_.logistic_losses(side_by_side(), parameters.data(), p_.data(), loss_.data(),
                                        padded_rows(n));
    }

    // Leaves the probabilities of rows behind, and calls `use(row, norm, F)` for each.
    template <class Use>
    void each_row(std::span<const Row> rows, const std::vector<double>& parameters, Use&& use) {
        if (r_.n_states == 1) {
            for (std::size_t begin = 0; begin < rows.size(); begin += block_rows) {
                use_block(rows.subspan(begin, std::min(block_rows, rows.size() - begin)),
                          parameters, use);
            }
            return;
        }
        for (const Row row : rows) {
            stop_check_.count(r_.n_states);
            log_odds(row, parameters, F_.data());
            use(row, probabilities_of(F_.data(), probability(row), r_.n_states), F_.data());
        }
    }

    // Of two classes: exponentials and logarithms of several rows at once.
    template <class Use>
    void use_block(std::span<const Row> rows, const std::vector<double>& parameters, Use&& use) {
        std::array<double, block_rows> F, p, norm;
        stop_check_.count(rows.size());
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (is_simple()) {
                const Record& at = records_[rows[i]];
                F[i] =
                    at.offset + parameters[0] + parameters[1] * at.score + parameters[2] * at.bend;
            } else {
                log_odds(rows[i], parameters, &F[i]);
            }
        }
        const std::size_t padded = padded_rows(rows.size());
        std::fill(F.begin() + rows.size(), F.begin() + padded, 0.0);
        kernels_.logistic(F.data(), p.data(), norm.data(), padded);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            probability_[rows[i]] = p[i];
            use(rows[i], norm[i], &F[i]);
        }
    }

    // Minus the gradient and the Hessian of the loss, state by state, where the rows are. Memory is
    // read as it stands: a Hessian over all scores is large, and one over a state's own is not.
    void differentiate(std::span<const Row> rows) {
        std::fill(gradient_.begin(), gradient_.end(), 0.0);
        std::fill(hessian_.begin(), hessian_.end(), 0.0);
        if (is_simple()) {
            differentiate_side_by_side(rows.size());
        } else if (r_.sees_all()) {
            for (std::size_t state = 0; state < r_.n_states; ++state) {
                stop_check_.count(rows.size());
                for (const Row row : rows) add_derivatives(row, state);
            }
        } else {
            for (const Row row : rows) {
                stop_check_.count(r_.n_states);
                for (std::size_t state = 0; state < r_.n_states; ++state) {
                    add_derivatives(row, state);
                }
            }
        }
    }

    void differentiate_side_by_side(std::size_t n) {
        stop_check_.count(n);
        std::array<double, 6> triangle;
        kernels_.logistic_derivatives(side_by_side(), p_.data(), gradient_.data(), triangle.data(),
                                      padded_rows(n));
        for (std::size_t a = 0, t = 0; a < 3; ++a) {
            for (std::size_t b = 0; b <= a; ++b) hessian_[a * 3 + b] = triangle[t++];
        }
    }

    void add_derivatives(Row row, std::size_t state) {
        const std::size_t width = r_.width();
        double* gradient = gradient_.data() + state * width;
        double* hessian = hessian_.data() + state * width * width;
        const double p = probability(row)[state];
        const double g = weights_[row] * ((is_class(row, state) ? 1.0 : 0.0) - p);
        const double h = weights_[row] * p * (1.0 - p);
        const double* x = values(row, state);
        gradient[0] += g;
        hessian[0] += h;
        for (std::size_t a = 1; a < width; ++a) {
            gradient[a] += g * x[a - 1];
            hessian[a * width] += h * x[a - 1];
            for (std::size_t b = 1; b <= a; ++b) {
                hessian[a * width + b] += h * x[a - 1] * x[b - 1];
            }
        }
    }

    const Data& data_;
    const Regressors& r_;
    std::span<const double> weights_;  // one per row
    NewtonFit newton_;
    std::vector<double> probability_;  // n_rows x n_states
    std::vector<double> row_loss_;     // the deviance of the rows of a fit, halved
    std::vector<double> F_, gradient_, hessian_;
    // In the most frequent case: what is known of every row, and of the rows of a fit, one after
    // the other.
    std::vector<Record> records_;
    std::vector<double> offset_, score_, bend_, weight_, is_second_, p_, loss_;
    const Kernels& kernels_ = kernels();
    StopCheck stop_check_;
};

}  // namespace caltree
