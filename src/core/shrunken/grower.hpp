// A tree of shrunken node models, grown where its models are still wrong.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "data/bins.hpp"
#include "data/data.hpp"
#include "data/random.hpp"
#include "shrunken/node_model.hpp"
#include "shrunken/residual_split.hpp"
#include "tree/fitted_nodes.hpp"
#include "tree/partition.hpp"
#include "tree/structure.hpp"

namespace caltree {

enum class Objective { squared_error, deviance };

struct GrowthSettings {
    double penalty = 0.1;
    double min_samples_split = 16.0;
    double min_samples_leaf = 2.0;
    std::size_t max_depth = std::numeric_limits<std::size_t>::max();
    std::size_t max_features = std::numeric_limits<std::size_t>::max();
    std::uint64_t seed = 0;  // of the choice of attributes
    bool rising = false;     // whether a higher score must not give a lower probability
    double cost_of_a_category = caltree::cost_of_a_category;
    double share_of_rows = 1.0;  // see ResidualSettings
    Objective objective = Objective::squared_error;
    // Of the held-out rows, also predict what the tree would if nodes of fewer rows were not split;
    // in descending order.
    std::vector<double> sizes;
};

struct GrownTree {
    Structure structure;
    FittedNodes nodes;  // the error is the deviance; parameters: n_nodes x n_parameters
    std::vector<double> predictions;  // sizes x held-out rows x n_states
};

class ShrunkenGrower {
  public:
    // `columns` may have more attributes than the data: scores that a tree may split on, too.
    // `by_row`: the same codes, and possibly further ones, by row.
    ShrunkenGrower(const Data& data, std::span<const BinnedColumn> columns,
                   const Regressors& regressors, std::span<const double> weights,
                   const GrowthSettings& settings, const RowCodes* by_row = nullptr)
        : data_(data),
          columns_(columns),
          r_(regressors),
          weights_(weights),
          settings_(settings),
          fitter_(data, regressors, weights,
                  penalties(regressors.score_scale(), settings.penalty,
                            regressors.corrects_probabilities, settings.rising)),
          finder_(columns, {regressors.n_states},
                  {settings.penalty, settings.min_samples_leaf, settings.cost_of_a_category,
                   settings.share_of_rows},
                  by_row),
          random_(settings.seed) {}

    GrownTree grow(std::vector<Row> rows, std::vector<Row> held_out) {
        rows_ = std::move(rows);
        held_out_ = std::move(held_out);
        tree().add_leaves(-1, 1);
        prepare();
        std::vector<Pending> pending;
        pending.push_back({0, 0, rows_.size(), 0, held_out_.size(), 0, 0,
                           std::vector<double>(r_.n_parameters(), 0.0)});
        while (!pending.empty()) {
            Pending next = std::move(pending.back());
            pending.pop_back();
            visit(next, pending);
        }
        return std::move(result_);
    }

  private:
    struct Pending {
        std::size_t node, begin, end, held_out_begin, held_out_end, depth, next_size;
        std::vector<double> parameters;
    };

    Structure& tree() { return result_.structure; }
    FittedNodes& nodes() { return result_.nodes; }

    void prepare() {
        for (const Row row : rows_) nodes().total += weights_[row];
        nodes().held_out_total = total_weight(data_, held_out_);
        result_.predictions.assign(settings_.sizes.size() * held_out_.size() * r_.n_states, 0.0);
        place_.assign(settings_.sizes.empty() ? 0 : data_.n_rows(), 0);
        if (settings_.sizes.empty()) return;
        for (std::size_t i = 0; i < held_out_.size(); ++i) {
            place_[held_out_[i]] = static_cast<Row>(i);
        }
    }

    void visit(Pending& at, std::vector<Pending>& pending) {
        const std::span<Row> rows(rows_.data() + at.begin, at.end - at.begin);
        const std::span<Row> held_out(held_out_.data() + at.held_out_begin,
                                      at.held_out_end - at.held_out_begin);
        const double n_rows = rows.empty() ? 0.0 : fitter_.fit(rows, at.parameters, at.node == 0);
        tree().n_rows[at.node] = n_rows;
        fitter_.apply(held_out, at.parameters);
        store(at, rows, held_out);
        const bool inner = split(at, rows);
        predict(at, held_out, n_rows, inner);
        if (inner) descend(at, rows, held_out, pending);
    }

    void store(const Pending& at, std::span<const Row> rows, std::span<const Row> held_out) {
        const std::size_t width = r_.n_parameters();
        nodes().error.resize(tree().size(), 0.0);
        nodes().held_out_error.resize(tree().size(), 0.0);
        nodes().own.resize(tree().size(), 1);
        nodes().parameters.resize(tree().size() * width, 0.0);
        r_.unscaled(at.parameters, nodes().parameters.data() + at.node * width);
        // Bagged trees are not pruned.
        for (const Row row : settings_.sizes.empty() ? rows : rows.first(0)) {
            nodes().error[at.node] += weights_[row] * fitter_.deviance(row);
        }
        for (const Row row : held_out) {
            nodes().held_out_error[at.node] +=
                data_.weight(row) * (settings_.objective == Objective::deviance
                                         ? fitter_.deviance(row)
                                         : fitter_.squared_error(row));
        }
    }

    // Looks for a split, and makes it; false if there is none.
    bool split(const Pending& at, std::span<const Row> rows) {
        if (at.depth >= settings_.max_depth) return false;
        if (tree().n_rows[at.node] < settings_.min_samples_split) return false;
        const EvidenceShape shape{r_.n_states};
        evidence_.assign(rows.size() * shape.stride(), 0.0);
        fitter_.write_evidence(rows, evidence_.data(), shape.stride());
        sample_attributes();
        const ResidualSplit found = finder_.find(rows, evidence_, attributes_);
        if (found.found()) apply(found, at.node, rows);
        return found.found();
    }

    void sample_attributes() {
        attributes_.resize(columns_.size());
        std::iota(attributes_.begin(), attributes_.end(), std::size_t{0});
        if (settings_.max_features >= attributes_.size()) return;
        for (std::size_t i = 0; i < settings_.max_features; ++i) {
            std::swap(attributes_[i], attributes_[i + random_.below(attributes_.size() - i)]);
        }
        attributes_.resize(settings_.max_features);
    }

    void apply(const ResidualSplit& split, std::size_t node, std::span<const Row> rows) {
        const BinnedColumn& column = columns_[static_cast<std::size_t>(split.attribute)];
        const std::size_t first = tree().add_leaves(static_cast<std::int32_t>(node), 2);
        tree().attribute[node] = split.attribute;
        tree().first_child[node] = static_cast<std::int32_t>(first);
        tree().n_children[node] = 2;
        tree().gain[node] = split.gain;
        tree().missing[node] = split.missing_first ? 0 : 1;
        tree().missing_rows[node] = split.missing_rows;
        if (!column.numeric) {
            divide_categories(split, column, node, rows);
            return;
        }
        tree().cut[node] = static_cast<std::uint32_t>(split.cut);
        // Beyond the last bin there are only missing values.
        tree().threshold[node] =
            split.cut + 1 < column.n_bins ? column.threshold(split.cut) : only_missing;
    }

    // Unless codes are cut in their order, categories that no row here has go where most rows go,
    // or where missing ones do.
    void divide_categories(const ResidualSplit& split, const BinnedColumn& column, std::size_t node,
                           std::span<const Row> rows) {
        std::int32_t* branches = tree().add_table(node, column.n_bins, tree().missing[node]);
        for (const Row row : rows) {
            if (column.codes[row] < column.n_bins) branches[column.codes[row]] = 1;
        }
        split.divide({branches, column.n_bins});
    }

    std::uint32_t branch(std::size_t node, Row row) {
        const BinnedColumn& column = columns_[static_cast<std::size_t>(tree().attribute[node])];
        const Bin code = column.codes[row];
        if (code == column.n_bins) return static_cast<std::uint32_t>(tree().missing[node]);
        if (column.numeric) return code > tree().cut[node] ? 1 : 0;
        const auto begin = static_cast<std::size_t>(tree().table[node]);
        return static_cast<std::uint32_t>(tree().branches[begin + code]);
    }

    void predict(Pending& at, std::span<const Row> held_out, double n_rows, bool inner) {
        while (at.next_size < settings_.sizes.size() &&
               (!inner || n_rows < settings_.sizes[at.next_size])) {
            double* to = result_.predictions.data() + at.next_size * held_out_.size() * r_.n_states;
            for (const Row row : held_out) {
                std::copy_n(fitter_.probability(row), r_.n_states, to + place_[row] * r_.n_states);
            }
            ++at.next_size;
        }
    }

    void descend(const Pending& at, std::span<Row> rows, std::span<Row> held_out,
                 std::vector<Pending>& pending) {
        const auto n_branches = static_cast<std::size_t>(tree().n_children[at.node]);
        const auto first = static_cast<std::size_t>(tree().first_child[at.node]);
        const auto which = [&](Row row) { return branch(at.node, row); };
        std::vector<std::size_t> starts, held_out_starts;
        partition(rows, n_branches, which, scratch_, starts);
        partition(held_out, n_branches, which, scratch_, held_out_starts);
        for (std::size_t b = n_branches; b-- > 0;) {
            pending.push_back({first + b, at.begin + starts[b], at.begin + starts[b + 1],
                               at.held_out_begin + held_out_starts[b],
                               at.held_out_begin + held_out_starts[b + 1], at.depth + 1,
                               at.next_size, at.parameters});
        }
    }

    const Data& data_;
    std::span<const BinnedColumn> columns_;
    const Regressors& r_;
    std::span<const double> weights_;  // one per row
    GrowthSettings settings_;
    NodeModelFitter fitter_;
    ResidualFinder finder_;
    Random random_;
    std::vector<Row> rows_, held_out_, scratch_, place_;
    std::vector<double> evidence_;
    std::vector<std::size_t> attributes_;
    GrownTree result_;
};

}  // namespace caltree
