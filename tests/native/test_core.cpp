// Fuzzes the core on random data sets and checks what must hold whatever the data are.
//
// The last line of output, and the file named by the first argument, is a digest of every number
// computed: builds for different instruction sets must agree on it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <span>
#include <vector>

#include "data/folds.hpp"
#include "kernels/kernels.hpp"
#include "published/grow.hpp"
#include "published/iterations.hpp"
#include "published/model_fitter.hpp"
#include "random_data.hpp"
#include "tree/predict.hpp"
#include "tree/prune.hpp"

using namespace caltree;
using namespace caltree::testing;

namespace {

bool all_finite(std::span<const double> values) {
    return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

bool nearly(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(1.0, std::abs(b)); }

// Children come after their parents, side by side, and share the rows among them.
void check_structure(const DataSet& set, const Structure& tree, double total) {
    CHECK(tree.size() > 0 && tree.parent[0] == -1);
    CHECK(nearly(tree.n_rows[0], total));
    std::vector<int> parents(tree.size(), 0);
    for (std::size_t v = 0; v < tree.size(); ++v) {
        if (tree.is_leaf(v)) {
            CHECK(tree.n_children[v] == 0 && tree.first_child[v] == -1);
            continue;
        }
        const auto attribute = static_cast<std::size_t>(tree.attribute[v]);
        CHECK(attribute < set.n_attributes());
        const std::int32_t categories = set.n_categories[attribute];
        CHECK(tree.n_children[v] == (categories > 0 ? categories : 2));
        CHECK(!std::isnan(tree.threshold[v]));
        double below = 0.0;
        for (std::int32_t b = 0; b < tree.n_children[v]; ++b) {
            const auto child = static_cast<std::size_t>(tree.first_child[v] + b);
            CHECK(child > v && child < tree.size());
            CHECK(tree.parent[child] == static_cast<std::int32_t>(v));
            ++parents[child];
            below += tree.n_rows[child];
        }
        CHECK(nearly(below, tree.n_rows[v]));
    }
    for (std::size_t v = 1; v < tree.size(); ++v) CHECK(parents[v] == 1);
}

void check_models(const DataSet& set, const Structure& tree, const FittedNodes& models) {
    CHECK(models.error.size() == tree.size() && models.held_out_error.size() == tree.size());
    CHECK(all_finite(models.error) && all_finite(models.held_out_error));
    CHECK(models.parameters.size() == tree.size() * set.n_classes * (set.n_scores + 1));
    CHECK(all_finite(models.parameters));
    for (std::size_t v = 0; v < tree.size(); ++v) {
        // A squared difference is at most 1 a class; the sum over classes is at most 2.
        CHECK(models.error[v] >= 0.0 && models.error[v] <= tree.n_rows[v] + 1e-6);
        CHECK(models.held_out_error[v] >= 0.0);
    }
}

// Which nodes are still split; what is not, is so from now on.
class SplitNodes {
  public:
    explicit SplitNodes(const Structure& tree) : tree_(tree) {
        for (std::size_t v = 0; v < tree.size(); ++v) split_.push_back(!tree.is_leaf(v));
    }
    void end(std::span<const std::size_t> nodes) {
        for (const std::size_t node : nodes) {
            CHECK(split_[node]);
            split_[node] = false;
        }
        for (std::size_t v = 1; v < tree_.size(); ++v) {
            CHECK(!split_[v] || split_[static_cast<std::size_t>(tree_.parent[v])]);
        }
    }
    std::size_t count() const {
        return static_cast<std::size_t>(std::count(split_.begin(), split_.end(), true));
    }
    std::size_t n_leaves() const {
        std::size_t leaves = split_[0] ? 0 : 1;
        for (std::size_t v = 1; v < tree_.size(); ++v) {
            leaves += !split_[v] && split_[static_cast<std::size_t>(tree_.parent[v])] ? 1 : 0;
        }
        return leaves;
    }
    bool operator[](std::size_t node) const { return split_[node]; }

  private:
    const Structure& tree_;
    std::vector<bool> split_;
};

// Step by step: how strong each is, and how many leaves are left before it.
void check_order(const Structure& tree, const FittedNodes& models, Digest& digest) {
    const PruningOrder order = pruning_order(tree, models, 0.0);
    CHECK(order.strength.size() == tree.size() && order.leaves.size() == tree.size());
    Pruner pruner(tree, models);
    SplitNodes split(tree);
    split.end(pruner.take_ended());
    for (std::size_t v = 0; v < tree.size(); ++v) {
        CHECK(split[v] == (order.strength[v] > 0.0) && split[v] == std::isfinite(order.leaves[v]));
    }
    for (double strongest = 0.0; split.count() > 0;) {
        strongest = std::max(strongest, pruner.smallest_alpha());
        const auto leaves = static_cast<double>(pruner.n_leaves());
        pruner.prune_weakest();
        const std::vector<std::size_t> ended = pruner.take_ended();
        split.end(ended);
        for (const std::size_t node : ended) {
            CHECK(order.strength[node] == strongest && order.leaves[node] == leaves);
        }
    }
    CHECK(pruner.n_leaves() == 1);
    digest.add(order.strength);
}

void check_pruning(const Structure& tree, const FittedNodes& models, Digest& digest) {
    Pruner pruner(tree, models);
    SplitNodes split(tree);
    split.end(pruner.take_ended());
    std::size_t steps = 0;
    for (std::size_t inner = split.count(); inner > 0; ++steps) {
        const double alpha = pruner.smallest_alpha();
        CHECK(std::isfinite(alpha) && alpha > 0.0);
        // Leaves that share a model count once.
        CHECK(pruner.n_leaves() >= 2 && pruner.n_leaves() <= split.n_leaves());
        pruner.prune_weakest();
        split.end(pruner.take_ended());
        CHECK(split.count() < inner);
        inner = split.count();
    }
    CHECK(std::isinf(pruner.smallest_alpha()));
    const PruningSequence sequence = pruning_sequence(tree, models);
    CHECK(sequence.alpha.size() == steps + 1 && sequence.alpha[0] == 0.0);
    CHECK(all_finite(sequence.alpha) && all_finite(sequence.held_out));
    CHECK(sequence.held_out.empty() || sequence.held_out.size() == sequence.alpha.size());
    if (!sequence.held_out.empty()) {
        // The root alone is judged by its own model.
        const double root = models.held_out_error[0] / models.held_out_total;
        CHECK(nearly(sequence.held_out.back(), root));
    }
    digest.add(sequence.alpha);
    digest.add(sequence.held_out);
    check_order(tree, models, digest);
}

// The node models by log-odds: of two classes the difference is all that counts.
std::vector<double> parameters_of(const DataSet& set, const FittedNodes& models) {
    if (set.n_classes > 2) return models.parameters;
    const std::size_t width = set.n_scores + 1;
    std::vector<double> result;
    for (std::size_t at = 0; at < models.parameters.size(); at += 2 * width) {
        for (std::size_t k = at; k < at + width; ++k) {
            result.push_back(models.parameters[k + width] - models.parameters[k]);
        }
    }
    return result;
}

void check_predictions(const DataSet& set, const Structure& tree, const FittedNodes& models,
                       std::span<const Row> rows, Digest& digest) {
    const Routes routes{tree.attribute, tree.threshold, tree.first_child, tree.missing,
                        tree.table,     tree.branches,  set.n_categories};
    std::vector<double> weight(tree.size());
    for (std::size_t v = 0; v < tree.size(); ++v) weight[v] = tree.is_leaf(v) ? 1.0 : 0.0;
    const std::vector<double> parameters = parameters_of(set, models);
    const std::vector<std::int32_t> roots{0};
    const std::size_t n_states = set.n_classes == 2 ? 1 : set.n_classes;
    const Predictor predictor(
        {routes, weight, parameters, roots, {n_states, set.n_scores + 1, set.n_scores}});
    const NewRows new_rows{set.table(), set.scores.data()};
    std::vector<double> counts(tree.size(), 0.0);
    for (const Row row : rows) {
        const auto leaf = static_cast<std::size_t>(predictor.leaf(new_rows, row, 0));
        CHECK(leaf < tree.size() && tree.is_leaf(leaf));
        counts[leaf] += set.weights.empty() ? 1.0 : set.weights[row];
    }
    // Rows take the way in prediction that they took in training.
    for (std::size_t v = 0; v < tree.size(); ++v) {
        if (tree.is_leaf(v)) CHECK(nearly(counts[v], tree.n_rows[v]));
    }
    std::vector<double> probabilities(set.n_rows * set.n_classes);
    predictor.probabilities(new_rows, probabilities.data());
    for (std::size_t i = 0; i < set.n_rows; ++i) {
        double sum = 0.0;
        for (std::size_t j = 0; j < set.n_classes; ++j) {
            const double p = probabilities[i * set.n_classes + j];
            CHECK(p >= 0.0 && p <= 1.0);
            sum += p;
        }
        CHECK(std::abs(sum - 1.0) < 1e-12);
    }
    digest.add(probabilities);
}

ModelSettings random_settings(Chance& chance, std::size_t n_rows) {
    ModelSettings settings;
    settings.iterations = chance.one_of<std::size_t>({1, 3, chance.from_to(1, 150)});
    if (n_rows <= 150 && chance.happens(0.2)) settings.iterations.reset();
    settings.max_iterations = 20;
    settings.constant_scores =
        chance.happens(0.5) ? ConstantScores::frequencies : ConstantScores::keep_model;
    if (chance.happens(0.3)) settings.criterion = Criterion::wrong_rows;
    return settings;
}

// The same, to the bit, whether subtrees are fitted together with the rest or not.
FittedNodes fit_models(const Data& data, const Structure& tree, const ModelSettings& settings,
                       std::span<const Row> rows, std::span<const Row> held_out) {
    ModelFitter at_once(data, tree, settings, rows, held_out);
    CHECK(at_once.fit_top(0).empty());
    ModelFitter in_parts(data, tree, settings, rows, held_out);
    const std::size_t n_parts = in_parts.fit_top(rows.size() / 4 + 1).size();
    for (std::size_t part = n_parts; part-- > 0;) in_parts.fit_part(part);
    const FittedNodes whole = at_once.take();
    const FittedNodes parts = in_parts.take();
    CHECK(whole.error == parts.error);
    CHECK(whole.held_out_error == parts.held_out_error);
    CHECK(whole.own == parts.own);
    CHECK(whole.parameters == parts.parameters);
    return whole;
}

void check_tree(Chance& chance, const DataSet& set, std::span<const Row> rows,
                std::span<const Row> held_out, Digest& digest) {
    const Data data = set.data();
    GrowSettings growing;
    growing.min_samples_split = chance.one_of({2.0, 16.0, 16.0});
    growing.min_samples_leaf = chance.one_of({0.5, 1.0, 2.0, 10.0});
    if (chance.happens(0.2)) growing.max_depth = chance.below(3);
    const Structure tree = grow(data, rows, growing);
    check_structure(set, tree, total_weight(data, rows));
    digest.add(tree.attribute);
    digest.add(tree.threshold);
    const ModelSettings settings = random_settings(chance, set.n_rows);
    const FittedNodes models = fit_models(data, tree, settings, rows, held_out);
    check_models(set, tree, models);
    digest.add(models.error);
    digest.add(models.parameters);
    check_pruning(tree, models, digest);
    check_predictions(set, tree, models, rows, digest);
}

// The choice is the same whether or not the folds ran ahead.
void check_choice(const DataSet& set, const std::vector<Fold>& folds, Criterion criterion,
                  Digest& digest) {
    constexpr std::size_t most = 80;
    const Data data = set.data();
    const Model start(set.n_classes, set.n_scores);
    std::vector<IterationChoice> choices;
    for (const bool ahead : {false, true}) {
        std::vector<BoostingPath> paths;
        for (const Fold& fold : folds) paths.emplace_back(data, fold, start, criterion);
        if (ahead) {
            for (BoostingPath& path : paths) path.run_ahead(most, 3);
        }
        choices.push_back(choose_iterations(
            paths.size(), most, [&](std::size_t f) -> BoostingPath& { return paths[f]; }));
    }
    for (const IterationChoice& choice : choices) {
        CHECK(!choice.sums.empty() && choice.sums.size() <= most + 1);
        CHECK(all_finite(choice.sums));
        const double lowest = *std::min_element(choice.sums.begin(), choice.sums.end());
        const double good = criterion == Criterion::squared_error
                                ? lowest
                                : good_sum(choice.sums, folds.size(), total_weight(data));
        CHECK(choice.best < choice.sums.size() && choice.sums[choice.best] <= good + plateau);
        CHECK(choice.best == choices[0].best);
        digest.add(choice.sums);
    }
}

void check_folds(const DataSet& set, std::span<const Row> rows, const std::vector<Fold>& folds) {
    std::vector<int> held_out(set.n_rows, 0);
    for (const Fold& fold : folds) {
        CHECK(fold.train.size() + fold.test.size() == rows.size());
        for (const Row row : fold.test) ++held_out[row];
        for (const Row row : fold.train) CHECK(row < set.n_rows);
    }
    for (const Row row : rows) CHECK(held_out[row] == 1);
}

void check_data_set(std::uint64_t seed, Digest& digest) {
    Chance chance(seed);
    const DataSet set = random_data_set(chance);
    const std::vector<Row> rows = all_rows(set);
    check_tree(chance, set, rows, {}, digest);
    if (set.n_rows < 2) return;
    const std::vector<Fold> folds =
        make_folds(set.labels, rows, std::min<std::size_t>(5, set.n_rows));
    check_folds(set, rows, folds);
    check_tree(chance, set, folds[0].train, folds[0].test, digest);
    if (set.n_rows > 200) return;
    for (const Criterion criterion : {Criterion::squared_error, Criterion::wrong_rows}) {
        check_choice(set, folds, criterion, digest);
    }
}

// Weights of 1 are no weights, to the last bit.
void check_unit_weights(std::uint64_t seed) {
    Chance chance(seed);
    DataSet set = random_data_set(chance);
    const std::vector<Row> rows = all_rows(set);
    std::vector<std::uint64_t> digests;
    for (const double weight : {0.0, 1.0}) {
        set.weights.assign(weight > 0.0 ? set.n_rows : 0, weight);
        Digest digest;
        Chance same(seed);
        check_tree(same, set, rows, {}, digest);
        digests.push_back(digest.value());
    }
    CHECK(digests[0] == digests[1]);
}

}  // namespace

int main(int n_arguments, char** arguments) {
    constexpr std::size_t n_data_sets = 400;
    Digest digest;
    for (; current_data_set < n_data_sets; ++current_data_set) {
        check_data_set(current_data_set, digest);
        if (current_data_set % 4 == 0) check_unit_weights(current_data_set);
    }
    if (n_arguments > 1) std::ofstream(arguments[1]) << digest.value() << '\n';
    std::printf("%zu data sets, instruction set %s, digest %016llx\n", n_data_sets, kernels().name,
                static_cast<unsigned long long>(digest.value()));
    return 0;
}
