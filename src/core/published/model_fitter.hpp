// The node models of a grown tree, from the root down, each starting where its parent's ended.
// Once a node is fitted, the subtrees below it know nothing of each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "published/entropy.hpp"
#include "published/iterations.hpp"
#include "published/logitboost.hpp"
#include "tree/fitted_nodes.hpp"
#include "tree/partition.hpp"
#include "tree/structure.hpp"

namespace caltree {

// A node with fewer rows keeps its parent's model.
inline constexpr double fewest_rows_for_a_model = 5.0;

struct ModelSettings {
    std::optional<std::size_t> iterations;  // none: chosen in every node anew
    std::size_t max_iterations = 200;
    std::size_t n_folds = 5;
    ConstantScores constant_scores = ConstantScores::keep_model;
    Criterion criterion = Criterion::squared_error;
    bool keep_parameters = true;
};

class ModelFitter {
  public:
    ModelFitter(const Data& data, const Structure& tree, const ModelSettings& settings,
                std::span<const Row> rows, std::span<const Row> held_out)
        : data_(data),
          tree_(tree),
          settings_(settings),
          rows_(rows.begin(), rows.end()),
          held_out_(held_out.begin(), held_out.end()) {
        prepare();
    }

    // Fits the nodes of more than `most_rows` rows. What is left are subtrees, the parts; returns
    // how many rows each of them has.
    std::vector<std::size_t> fit_top(std::size_t most_rows) {
        Work work(data_);
        auto start = std::make_shared<const Model>(data_.n_classes, data_.n_scores);
        fit_subtree(work, {0, 0, rows_.size(), 0, held_out_.size(), std::move(start)}, most_rows);
        std::vector<std::size_t> sizes;
        for (const Pending& part : parts_) sizes.push_back(part.end - part.begin);
        return sizes;
    }

    // Several parts may be fitted at a time, each once.
    void fit_part(std::size_t part) {
        Work work(data_);
        fit_subtree(work, parts_.at(part), 0);
    }

    FittedNodes take() { return std::move(result_); }

  private:
    struct Pending {
        std::size_t node, begin, end, held_out_begin, held_out_end;
        std::shared_ptr<const Model> start;
    };

    // What one thread works with.
    struct Work {
        explicit Work(const Data& data)
            : booster(data.n_classes, data.n_scores), judge(data.n_classes, data.n_scores) {}

        Booster booster, judge;
        std::vector<Row> scratch;
        std::vector<Pending> pending;
    };

    std::size_t parameters_per_node() const { return data_.n_classes * (data_.n_scores + 1); }

    void prepare() {
        result_.error.assign(tree_.size(), 0.0);
        result_.held_out_error.assign(tree_.size(), 0.0);
        result_.own.assign(tree_.size(), 0);
        if (settings_.keep_parameters) {
            result_.parameters.assign(tree_.size() * parameters_per_node(), 0.0);
        }
        result_.total = total_weight(data_, rows_);
        result_.held_out_total = total_weight(data_, held_out_);
    }

    // Leaves out what has at most `most_rows` rows, if that is not 0.
    void fit_subtree(Work& work, Pending root, std::size_t most_rows) {
        work.pending.push_back(std::move(root));
        while (!work.pending.empty()) {
            Pending next = std::move(work.pending.back());
            work.pending.pop_back();
            if (next.end - next.begin > most_rows || most_rows == 0) {
                visit(work, next);
            } else {
                parts_.push_back(std::move(next));
            }
        }
    }

    void visit(Work& work, const Pending& at) {
        const std::span<Row> rows(rows_.data() + at.begin, at.end - at.begin);
        const std::span<Row> held_out(held_out_.data() + at.held_out_begin,
                                      at.held_out_end - at.held_out_begin);
        std::shared_ptr<const Model> model = at.start;
        if (!rows.empty()) {
            work.booster.load(data_, rows);
            work.booster.start(*at.start);
            if (boost(work.booster, rows, *at.start)) {
                result_.own[at.node] = 1;
                model = std::make_shared<const Model>(work.booster.model());
            }
            result_.error[at.node] = work.booster.error(settings_.criterion);
        }
        if (!held_out.empty()) {
            work.judge.load(data_, held_out);
            work.judge.start(*model);
            result_.held_out_error[at.node] = work.judge.error(settings_.criterion);
        }
        if (settings_.keep_parameters) store(at.node, *model);
        if (!tree_.is_leaf(at.node)) descend(work, at, rows, held_out, model);
    }

    // True if the model changed.
    bool boost(Booster& booster, std::span<const Row> rows, const Model& start) const {
        if (booster.total() + tolerance < fewest_rows_for_a_model) return false;
        if (settings_.constant_scores == ConstantScores::frequencies &&
            booster.set_constant_scores_aside()) {
            booster.set_frequencies();
            return true;
        }
        if (!settings_.iterations && rows.size() < settings_.n_folds) return false;
        const std::size_t iterations =
            settings_.iterations
                ? *settings_.iterations
                : choose_iterations_here(data_, rows, start, settings_.n_folds,
                                         settings_.max_iterations, settings_.criterion);
        std::size_t run = 0;
        while (run < iterations && booster.step()) ++run;
        return run > 0;
    }

    void store(std::size_t node, const Model& model) {
        double* to = result_.parameters.data() + node * parameters_per_node();
        for (const double coefficient : model.coefficients()) *to++ = model.scale() * coefficient;
    }

    void descend(Work& work, const Pending& at, std::span<Row> rows, std::span<Row> held_out,
                 const std::shared_ptr<const Model>& model) {
        const auto n_branches = static_cast<std::size_t>(tree_.n_children[at.node]);
        const auto first = static_cast<std::size_t>(tree_.first_child[at.node]);
        const auto branch = [&](Row row) { return branch_of(tree_, data_.columns, at.node, row); };
        std::vector<std::size_t> starts, held_out_starts;
        partition(rows, n_branches, branch, work.scratch, starts);
        partition(held_out, n_branches, branch, work.scratch, held_out_starts);
        for (std::size_t b = n_branches; b-- > 0;) {
            work.pending.push_back({first + b, at.begin + starts[b], at.begin + starts[b + 1],
                                    at.held_out_begin + held_out_starts[b],
                                    at.held_out_begin + held_out_starts[b + 1], model});
        }
    }

    const Data& data_;
    const Structure& tree_;
    const ModelSettings settings_;
    std::vector<Row> rows_, held_out_;  // those of a node side by side
    std::vector<Pending> parts_;
    FittedNodes result_;
};

}  // namespace caltree
