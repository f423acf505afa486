// Fuzzes trees of shrunken node models and their forests on random data sets, and checks what must
// hold whatever the data are.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "data/bins.hpp"
#include "random_shrunken_data.hpp"
#include "shrunken/grower.hpp"
#include "tree/bootstrap.hpp"
#include "tree/collapse.hpp"
#include "tree/predict.hpp"
#include "tree/prune.hpp"

using namespace caltree;
using namespace caltree::testing;

namespace {

// What has been seen: a test of nothing proves nothing.
struct {
    std::size_t on_numbers = 0, on_categories = 0, on_scores = 0, with_missing = 0, by_code = 0;
    std::size_t only_missing = 0, with_temperature = 0, without_temperature = 0, rising = 0;
} seen;

// The attributes, then the scores.
std::vector<BinnedColumn> binned_columns(const DataSet& set) {
    std::vector<BinnedColumn> columns = binned(set.columns, set.weights, set.max_bins);
    const Data data = set.data();
    for (std::size_t c = 0; c < set.n_scores; ++c) {
        const ColumnView view{data.score_column(c), 1};
        const Column column = numeric_column(view, set.n_rows, 0.0);
        columns.push_back(binned_numeric(column, set.weights, set.max_bins));
    }
    return columns;
}

bool all_finite(std::span<const double> values) {
    return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

bool nearly(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(1.0, std::abs(b)); }

double value_of(const DataSet& set, std::size_t attribute, std::size_t row) {
    return attribute < set.n_attributes()
               ? set.matrix[row * set.n_attributes() + attribute]
               : set.scores[(attribute - set.n_attributes()) * set.n_rows + row];
}

// Bins rise, and a threshold divides the rows as the bins do.
void check_bins(const DataSet& set, const std::vector<BinnedColumn>& columns) {
    for (std::size_t a = 0; a < columns.size(); ++a) {
        const BinnedColumn& column = columns[a];
        CHECK(column.codes.size() == set.n_rows);
        for (const Bin code : column.codes) CHECK(code <= column.n_bins);
        if (!column.numeric) continue;
        CHECK(column.n_bins <= set.max_bins);
        CHECK(column.lower.size() == column.n_bins && column.upper.size() == column.n_bins);
        for (std::size_t bin = 0; bin < column.n_bins; ++bin) {
            CHECK(column.lower[bin] <= column.upper[bin]);
            if (bin + 1 == column.n_bins) break;
            CHECK(column.upper[bin] < column.lower[bin + 1]);
            const double threshold = column.threshold(bin);
            for (std::size_t i = 0; i < set.n_rows && column.n_bins < 20; ++i) {
                if (column.codes[i] == column.n_bins) continue;
                CHECK((value_of(set, a, i) > threshold) == (column.codes[i] > bin));
            }
        }
    }
}

struct Parts {
    std::vector<Row> rows, held_out;
};

Parts random_parts(Chance& chance, const DataSet& set) {
    Parts parts;
    const double share = chance.one_of({0.0, 0.2, 0.9});
    for (std::size_t i = 0; i < set.n_rows; ++i) {
        (chance.happens(share) ? parts.held_out : parts.rows).push_back(static_cast<Row>(i));
    }
    if (parts.rows.empty()) std::swap(parts.rows, parts.held_out);
    return parts;
}

GrowthSettings random_settings(Chance& chance) {
    GrowthSettings settings;
    settings.penalty = chance.one_of({0.05, 0.05, 1e-9, 10.0, 1e9});
    settings.min_samples_split = chance.one_of({2.0, 4.0, 8.0, 40.0});
    settings.min_samples_leaf = chance.one_of({0.001, 1.0, 2.0, 10.0});
    if (chance.happens(0.2)) settings.max_depth = chance.from_to(0, 3);
    if (chance.happens(0.3)) settings.max_features = chance.from_to(1, 3);
    settings.seed = chance.from_to(0, 1000);
    settings.objective = chance.happens(0.5) ? Objective::deviance : Objective::squared_error;
    if (chance.happens(0.7)) settings.sizes = {infinity, 100.0, 20.0, settings.min_samples_split};
    if (chance.happens(0.1)) settings.sizes = {7.0};
    return settings;
}

std::vector<std::size_t> depths(const Structure& tree) {
    std::vector<std::size_t> depth(tree.size(), 0);
    for (std::size_t v = 1; v < tree.size(); ++v) {
        depth[v] = depth[static_cast<std::size_t>(tree.parent[v])] + 1;
    }
    return depth;
}

// Children come after their parents, side by side, and share the rows among them.
void check_structure(const Structure& tree, double total, const GrowthSettings& settings) {
    CHECK(tree.size() > 0 && tree.parent[0] == -1);
    CHECK(nearly(tree.n_rows[0], total));
    for (const std::size_t depth : depths(tree)) CHECK(depth <= settings.max_depth);
    CHECK(all_finite(tree.threshold) && all_finite(tree.gain) && all_finite(tree.n_rows));
    std::vector<int> parents(tree.size(), 0);
    for (std::size_t v = 0; v < tree.size(); ++v) {
        if (tree.is_leaf(v)) {
            CHECK(tree.n_children[v] == 0 && tree.first_child[v] == -1 && tree.table[v] == -1);
            continue;
        }
        CHECK(tree.n_rows[v] >= settings.min_samples_split && tree.gain[v] > 0.0);
        CHECK(tree.n_children[v] == 2 && (tree.missing[v] == 0 || tree.missing[v] == 1));
        CHECK(tree.missing_rows[v] >= 0.0 && tree.missing_rows[v] <= tree.n_rows[v] * 1.000001);
        double below = 0.0;
        for (std::int32_t b = 0; b < 2; ++b) {
            const auto child = static_cast<std::size_t>(tree.first_child[v] + b);
            CHECK(child > v && child < tree.size());
            CHECK(tree.parent[child] == static_cast<std::int32_t>(v));
            CHECK(tree.n_rows[child] >= settings.min_samples_leaf * 0.999999);
            ++parents[child];
            below += tree.n_rows[child];
        }
        CHECK(nearly(below, tree.n_rows[v]));
        for (std::int32_t c = 0; c < tree.table_size[v]; ++c) {
            const std::int32_t branch = tree.branches[static_cast<std::size_t>(tree.table[v] + c)];
            CHECK(branch == 0 || branch == 1);
        }
    }
    for (std::size_t v = 1; v < tree.size(); ++v) CHECK(parents[v] == 1);
}

void check_models(const Regressors& regressors, const Structure& tree, const FittedNodes& models) {
    CHECK(models.error.size() == tree.size() && models.held_out_error.size() == tree.size());
    CHECK(models.own.size() == tree.size());
    CHECK(models.parameters.size() == tree.size() * regressors.n_parameters());
    CHECK(all_finite(models.error) && all_finite(models.held_out_error));
    CHECK(all_finite(models.parameters));
    for (std::size_t v = 0; v < tree.size(); ++v) {
        CHECK(models.error[v] >= 0.0 && models.error[v] <= 700.0 * tree.n_rows[v] + 1e-6);
        CHECK(models.held_out_error[v] >= 0.0);
    }
}

// Nowhere does a model fall with the score: the bend is not steeper than the log-odds.
void check_rising(const DataSet& set, const Structure& tree, const FittedNodes& models) {
    const double offset = set.offset.empty() ? 0.0 : 1.0;
    for (std::size_t v = 0; v < tree.size(); ++v) {
        const double own = models.parameters[3 * v + 1] + offset;
        const double bending = std::abs(models.parameters[3 * v + 2]);
        CHECK(bending <= own + 1e-9 * (1.0 + std::abs(own)));
    }
    seen.rising += tree.size();
}

void check_row(const double* p, std::size_t n_states, double total) {
    double sum = 0.0;
    for (std::size_t j = 0; j < n_states; ++j) {
        CHECK(p[j] >= 0.0 && p[j] <= total + 1e-9);
        sum += p[j];
    }
    CHECK(n_states == 1 || std::abs(sum - total) < 1e-9);
}

Routes routes_of(const DataSet& set, const Structure& tree) {
    return {tree.attribute, tree.threshold, tree.first_child, tree.missing,
            tree.table,     tree.branches,  set.n_categories};
}

// Rows take the way in prediction that they took in training.
void check_ways(const DataSet& set, const Structure& tree, std::span<const Row> rows,
                std::span<const double> weights) {
    const Router router(routes_of(set, tree));
    std::vector<double> counts(tree.size(), 0.0);
    for (const Row row : rows) {
        std::size_t node = 0;
        while (true) {
            counts[node] += weights[row];
            if (router.is_leaf(node)) break;
            const auto attribute = static_cast<std::size_t>(router.attribute(node));
            node = router.child(node, value_of(set, attribute, row));
            CHECK(node < tree.size());
        }
    }
    for (std::size_t v = 0; v < tree.size(); ++v) CHECK(nearly(counts[v], tree.n_rows[v]));
    // Whatever a value is, it goes somewhere.
    for (std::size_t v = 0; v < tree.size(); ++v) {
        if (tree.is_leaf(v)) continue;
        for (const double value : {not_a_number, -infinity, infinity, -0.0, 1e308, 1e9, 0.5}) {
            const std::size_t child = router.child(v, value);
            CHECK(child == static_cast<std::size_t>(tree.first_child[v]) ||
                  child == static_cast<std::size_t>(tree.first_child[v]) + 1);
        }
    }
}

// Categories that no row of a node has go where missing values go, unless codes are cut in their
// order.
void check_other_categories(const DataSet& set, const Structure& tree, std::span<const Row> rows) {
    std::vector<std::vector<Row>> reached(tree.size());
    reached[0].assign(rows.begin(), rows.end());
    const Router router(routes_of(set, tree));
    for (std::size_t v = 0; v < tree.size(); ++v) {
        if (tree.is_leaf(v)) continue;
        const auto attribute = static_cast<std::size_t>(tree.attribute[v]);
        for (const Row row : reached[v]) {
            reached[router.child(v, value_of(set, attribute, row))].push_back(row);
        }
        if (tree.table[v] < 0) continue;
        std::vector<bool> present(static_cast<std::size_t>(tree.table_size[v]), false);
        for (const Row row : reached[v]) {
            const double value = value_of(set, attribute, row);
            if (!std::isnan(value)) present[static_cast<std::size_t>(value)] = true;
        }
        const auto first = tree.branches.begin() + tree.table[v];
        const auto size = static_cast<std::ptrdiff_t>(present.size());
        const bool by_code = std::is_sorted(first, first + size);
        seen.by_code += by_code && present.size() > 8;
        for (std::ptrdiff_t c = 0; c < size; ++c) {
            const bool known = present[static_cast<std::size_t>(c)];
            CHECK(known || by_code || first[c] == tree.missing[v]);
        }
    }
}

// The probabilities of all rows, a column a class, by trees whose weights sum to 1 on every way.
std::vector<double> predicted(const DataSet& set, const Regressors& regressors,
                              const Structure& trees, std::span<const double> weight,
                              std::span<const double> parameters,
                              std::span<const std::int32_t> roots) {
    const ModelShape shape{set.n_states(), regressors.width(), set.n_scores};
    const Predictor predictor({routes_of(set, trees), weight, parameters, roots, shape});
    std::vector<double> found(set.n_rows * set.n_classes);
    const NewRows rows{set.table(), set.scores.data(), set.offset_or_null()};
    predictor.probabilities(rows, found.data());
    for (std::size_t i = 0; i < set.n_rows; ++i) {
        check_row(&found[i * set.n_classes], set.n_classes, 1.0);
        for (const std::int32_t root : roots) {
            const auto leaf = static_cast<std::size_t>(predictor.leaf(rows, i, root));
            CHECK(leaf < trees.size() && trees.is_leaf(leaf));
        }
    }
    return found;
}

// A tree that is read at one size predicts what it predicted while it grew.
void check_predictions(const DataSet& set, const Regressors& regressors, const GrownTree& tree,
                       const GrowthSettings& settings, std::span<const Row> held_out) {
    const std::size_t n_states = set.n_states();
    const std::size_t n_sizes = settings.sizes.size();
    CHECK(tree.predictions.size() == n_sizes * held_out.size() * n_states);
    const std::vector<std::int32_t> roots{0};
    for (std::size_t s = 0; s < n_sizes; ++s) {
        std::vector<double> shares(n_sizes, 0.0);
        shares[s] = 1.0;
        const CollapsedTree cut =
            collapse(tree.structure, tree.nodes,
                     Levels(tree.structure, tree.structure.n_rows, settings.sizes, shares));
        const std::vector<double> found =
            predicted(set, regressors, cut.tree, cut.weight, cut.parameters, roots);
        for (std::size_t i = 0; i < held_out.size(); ++i) {
            const double* known = &tree.predictions[(s * held_out.size() + i) * n_states];
            const double* again = &found[held_out[i] * set.n_classes];
            check_row(known, n_states, 1.0);
            for (std::size_t j = 0; j < n_states && set.tame; ++j) {
                // Of two classes the one log-odds is that of the second.
                CHECK(std::abs(known[j] - again[n_states == 1 ? 1 : j]) < 1e-7);
            }
        }
    }
}

// What some levels leave is a tree, whose inner nodes one of them goes below; and whichever way
// a row goes, all levels have their say.
void check_collapsed(const Structure& tree, const FittedNodes& models, std::span<const double> rank,
                     std::span<const double> lowest) {
    const std::vector<double> shares{0.25, 0.0, 0.5};
    CHECK(lowest.size() == shares.size());
    const Levels levels(tree, rank, lowest, shares);
    const CollapsedTree result = collapse(tree, models, levels);
    CHECK(result.weight.size() == result.tree.size());
    CHECK(result.tree.size() >= 1 && result.tree.size() <= tree.size());
    CHECK(result.parameters.size() * tree.size() == models.parameters.size() * result.tree.size());
    std::size_t children = 1;
    for (std::size_t v = 0; v < result.tree.size(); ++v) {
        CHECK(result.tree.n_rows[v] > 0.0);
        if (!result.tree.is_leaf(v)) {
            const auto first = static_cast<std::size_t>(result.tree.first_child[v]);
            const auto count = static_cast<std::size_t>(result.tree.n_children[v]);
            CHECK(first > v && first + count <= result.tree.size());
            children += count;
            continue;
        }
        double sum = result.weight[v];
        for (std::int32_t above = result.tree.parent[v]; above >= 0;
             above = result.tree.parent[static_cast<std::size_t>(above)]) {
            sum += result.weight[static_cast<std::size_t>(above)];
        }
        CHECK(std::abs(sum - 0.75) < 1e-12);
    }
    CHECK(children == result.tree.size());
    CHECK(all_finite(held_out_gains(tree, models, levels, 2)));
}

// By how much the leaves below a node have less error than it has.
double gain_below(const Structure& tree, const FittedNodes& models, std::size_t node,
                  std::span<const double> leaves, double limit) {
    if (leaves[node] > limit) return 0.0;
    double gain = models.error[node];
    for (std::int32_t b = 0; b < tree.n_children[node]; ++b) {
        const auto child = static_cast<std::size_t>(tree.first_child[node] + b);
        gain += gain_below(tree, models, child, leaves, limit) - models.error[child];
    }
    return gain;
}

// At every level the tree has no more leaves than it may, and each split gains enough.
void check_levels(const Structure& tree, const FittedNodes& models, double least_gain) {
    const PruningOrder order = pruning_order(tree, models, least_gain);
    std::vector<double> rank;
    for (std::size_t v = 0; v < tree.size(); ++v) {
        const auto parent = static_cast<std::size_t>(std::max(tree.parent[v], 0));
        CHECK(order.leaves[parent] <= order.leaves[v] || v == 0);
        CHECK(order.strength[parent] >= order.strength[v] || v == 0);
        CHECK(std::isfinite(order.strength[v]) && !(tree.is_leaf(v) && order.leaves[v] < infinity));
        rank.push_back(-order.leaves[v]);
    }
    for (const double limit : {1.0, 2.0, 4.0, 8.0, 1e9}) {
        double leaves = order.leaves[0] <= limit ? 0.0 : 1.0;
        for (std::size_t v = 0; v < tree.size(); ++v) {
            if (order.leaves[v] <= limit) {
                const double least = least_gain * tree.n_rows[v];
                CHECK(gain_below(tree, models, v, order.leaves, limit) >= least * (1.0 - 1e-9));
            } else if (v > 0 && order.leaves[static_cast<std::size_t>(tree.parent[v])] <= limit) {
                ++leaves;
            }
        }
        CHECK(leaves <= limit);
        check_collapsed(tree, models, rank, std::vector<double>{-1.0, -2.0, -limit});
    }
    const std::vector<double> strengths{infinity, order.strength[0], order.strength[0] / 2.0};
    check_collapsed(tree, models, order.strength, strengths);
    check_collapsed(tree, models, tree.n_rows, std::vector<double>{infinity, 40.0, 4.0});
}

void check_pruning(const Structure& tree, const FittedNodes& models) {
    const PruningSequence sequence = pruning_sequence(tree, models);
    CHECK(!sequence.alpha.empty() && sequence.alpha[0] == 0.0);
    CHECK(all_finite(sequence.alpha) && all_finite(sequence.held_out));
    for (const double least_gain : {0.0, 1e-5, 1e-2}) check_levels(tree, models, least_gain);
}

void count_splits(const DataSet& set, const Structure& tree) {
    for (std::size_t v = 0; v < tree.size(); ++v) {
        if (tree.is_leaf(v)) continue;
        const auto attribute = static_cast<std::size_t>(tree.attribute[v]);
        const bool is_score = attribute >= set.n_attributes();
        const bool nominal = !is_score && set.n_categories[attribute] > 0;
        ++(is_score ? seen.on_scores : nominal ? seen.on_categories : seen.on_numbers);
        seen.with_missing += tree.missing_rows[v] > 0.0;
        seen.only_missing += tree.threshold[v] == std::numeric_limits<double>::max();
    }
}

bool same_bits(std::span<const double> one, std::span<const double> other) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end(), [](double a, double b) {
        return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
    });
}

struct Ready {
    std::vector<BinnedColumn> columns;
    Regressors scores;
    std::vector<double> weights;

    explicit Ready(const DataSet& set)
        : columns(binned_columns(set)),
          scores(regressors(set.data(), set.offset_or_null(), set.all_scores)) {
        for (std::size_t i = 0; i < set.n_rows; ++i) {
            weights.push_back(set.weight(static_cast<Row>(i)));
        }
    }
    std::span<const BinnedColumn> some(const DataSet& set, bool splits_on_scores) const {
        return std::span(columns).first(splits_on_scores ? columns.size() : set.n_attributes());
    }
};

void check_tree(const DataSet& set, const Ready& ready, const Parts& parts,
                std::span<const double> weights, const GrowthSettings& settings,
                bool splits_on_scores) {
    const Data data = set.data();
    const auto columns = ready.some(set, splits_on_scores);
    ShrunkenGrower grower(data, columns, ready.scores, weights, settings);
    GrownTree tree = grower.grow(parts.rows, parts.held_out);
    double total = 0.0;
    for (const Row row : parts.rows) total += weights[row];
    check_structure(tree.structure, total, settings);
    check_models(ready.scores, tree.structure, tree.nodes);
    if (settings.rising) check_rising(set, tree.structure, tree.nodes);
    check_ways(set, tree.structure, parts.rows, weights);
    check_other_categories(set, tree.structure, parts.rows);
    check_predictions(set, ready.scores, tree, settings, parts.held_out);
    check_pruning(tree.structure, tree.nodes);
    ShrunkenGrower again(data, columns, ready.scores, weights, settings);
    const GrownTree same = again.grow(parts.rows, parts.held_out);
    CHECK(same_bits(tree.nodes.parameters, same.nodes.parameters));
    CHECK(same_bits(tree.predictions, same.predictions));
    count_splits(set, tree.structure);
    judge_splits(tree.structure, tree.nodes);
    CHECK(all_finite(tree.structure.gain));
}

// On the line of the temperature, probabilities are sharpened or flattened, and nothing else; free
// of it, the root fits better, for what it costs.
void check_root(const DataSet& set, const Ready& ready, const Parts& parts, double penalty) {
    const Data data = set.data();
    const Regressors& scores = ready.scores;
    Penalties costs = penalties(scores.score_scale(), penalty, scores.corrects_probabilities);
    CHECK(costs.of_nodes.size() == scores.n_parameters());
    CHECK(costs.of_root.size() == scores.n_parameters());
    if (costs.temperature.empty()) {
        ++seen.without_temperature;
        CHECK(same_bits(costs.of_root, costs.of_nodes));
        return;
    }
    ++seen.with_temperature;
    CHECK(!set.offset.empty() && costs.temperature.size() == scores.n_parameters());
    costs.temperature_only = true;
    std::vector<double> found(scores.n_parameters(), 0.0);
    NodeModelFitter fitter(data, scores, ready.weights, costs);
    fitter.fit(parts.rows, found, true);
    CHECK(all_finite(found));
    const double square = std::inner_product(costs.temperature.begin(), costs.temperature.end(),
                                             costs.temperature.begin(), 0.0);
    const double length = square > 0.0 ? std::inner_product(found.begin(), found.end(),
                                                            costs.temperature.begin(), 0.0) /
                                             square
                                       : 0.0;
    for (std::size_t t = 0; t < found.size(); ++t) {
        const double expected = length * costs.temperature[t];
        CHECK(std::abs(found[t] - expected) <= 1e-9 * (std::abs(expected) + 1.0));
    }
}

// Trees on bootstrap samples, every other one on scores, too, side by side in one forest.
void check_forest(Chance& chance, const DataSet& set, const Ready& ready, GrowthSettings settings) {
    settings.sizes = {infinity, 60.0, 16.0, 4.0};
    settings.min_samples_split = 4.0;
    const Data data = set.data();
    Structure all;
    std::vector<double> coefficients, weight;
    std::vector<std::int32_t> roots;
    // Of both kinds of trees: one a size.
    const std::vector<double> shares{0.1, 0.0, 0.1, 0.05, 0.0, 0.15, 0.1, 0.0};
    for (std::size_t t = 0; t < 4; ++t) {
        Random random(chance.from_to(0, 1'000'000));
        // The later two trees draw whole groups.
        const std::size_t n_groups = std::min<std::size_t>(set.n_rows, 7);
        std::vector<std::uint32_t> groups(t < 2 ? 0 : set.n_rows);
        for (std::size_t i = 0; i < groups.size(); ++i)
            groups[i] = static_cast<std::uint32_t>(i % n_groups);
        const Bootstrap sample = bootstrap(data, random, groups, n_groups);
        CHECK(sample.in_bag.size() + sample.out_of_bag.size() == set.n_rows);
        for (std::size_t i = n_groups; i < groups.size(); ++i)
            CHECK((sample.weights[i] > 0.0) == (sample.weights[i - n_groups] > 0.0));
        settings.seed = random.next();
        const bool on_scores = t % 2 == 1;
        const Parts parts{sample.in_bag, sample.out_of_bag};
        check_tree(set, ready, parts, sample.weights, settings, on_scores);
        ShrunkenGrower grower(data, ready.some(set, on_scores), ready.scores, sample.weights,
                              settings);
        const GrownTree tree = grower.grow(sample.in_bag, sample.out_of_bag);
        const auto first = static_cast<std::int32_t>(all.size());
        roots.push_back(first);
        const std::size_t n_sizes = settings.sizes.size();
        const Levels levels(tree.structure, tree.structure.n_rows, settings.sizes,
                            std::span(shares).subspan(t % 2 * n_sizes, n_sizes));
        for (std::size_t v = 0; v < tree.structure.size(); ++v) weight.push_back(levels.weight(v));
        const std::size_t at = all.add_leaves(-1, tree.structure.size());
        for (std::size_t v = 0; v < tree.structure.size(); ++v) {
            if (tree.structure.is_leaf(v)) continue;
            copy_split(tree.structure, v, all, at + v);
            all.first_child[at + v] = first + tree.structure.first_child[v];
        }
        coefficients.insert(coefficients.end(), tree.nodes.parameters.begin(),
                            tree.nodes.parameters.end());
    }
    predicted(set, ready.scores, all, weight, coefficients, roots);
}

// Weights of 1 are no weights, to the last bit.
void check_unit_weights(DataSet set, const Parts& parts, const GrowthSettings& settings) {
    std::vector<std::vector<double>> coefficients;
    for (const std::size_t count : {std::size_t{0}, set.n_rows}) {
        set.weights.assign(count, 1.0);
        const Ready ready(set);
        const Data data = set.data();
        ShrunkenGrower grower(data, ready.some(set, false), ready.scores, ready.weights, settings);
        coefficients.push_back(grower.grow(parts.rows, parts.held_out).nodes.parameters);
    }
    CHECK(same_bits(coefficients[0], coefficients[1]));
}

void check_data_set(std::uint64_t seed) {
    Chance chance(seed);
    const DataSet set = random_data_set(chance);
    const Ready ready(set);
    check_bins(set, ready.columns);
    CHECK(all_finite(ready.scores.values) && all_finite(ready.scores.scale));
    const Parts parts = random_parts(chance, set);
    GrowthSettings settings = random_settings(chance);
    settings.rising = set.n_classes == 2 && set.n_scores == 2 && chance.happens(0.5);
    check_tree(set, ready, parts, ready.weights, settings, chance.happens(0.3));
    check_root(set, ready, parts, settings.penalty);
    if (seed % 4 == 0) check_unit_weights(set, parts, settings);
    check_forest(chance, set, ready, settings);
}

// More categories than there are bins: nothing is split on them.
void check_too_many_categories() {
    DataSet set;
    set.n_rows = 50;
    set.n_classes = 2;
    set.n_scores = 2;
    set.max_bins = 255;
    set.n_categories = {static_cast<std::int32_t>(most_bins) + 1};
    for (std::size_t i = 0; i < set.n_rows; ++i) {
        set.matrix.push_back(static_cast<double>(i * 1000));
        set.labels.push_back(static_cast<Label>(i % 2));
        set.scores.insert(set.scores.end(), {0.5, -0.5});
    }
    set.columns.n_rows = set.n_rows;
    set.columns.columns.push_back(nominal_column(set.table().column(0), set.n_rows,
                                                 static_cast<std::uint32_t>(most_bins) + 1, 0.0));
    const Ready ready(set);
    CHECK(ready.columns[0].n_bins == 0);
    GrowthSettings settings;
    settings.min_samples_split = 2.0;
    const Data data = set.data();
    ShrunkenGrower grower(data, ready.some(set, false), ready.scores, ready.weights, settings);
    std::vector<Row> rows(set.n_rows);
    std::iota(rows.begin(), rows.end(), Row{0});
    CHECK(grower.grow(rows, {}).structure.size() == 1);
}

void check_random() {
    // The first numbers of SplitMix64 from 0, as its authors give them.
    Random random(0);
    CHECK(random.next() == 0xe220a8397b1dcdafu);
    CHECK(random.next() == 0x6e789e6aa1b965f4u);
    CHECK(random.next() == 0x06c45d188009454fu);
    for (std::size_t limit : {std::size_t{1}, std::size_t{2}, std::size_t{1} << 31}) {
        for (int i = 0; i < 1000; ++i) CHECK(random.below(limit) < limit);
    }
}

}  // namespace

int main() {
    constexpr std::size_t n_data_sets = 400;
    check_random();
    check_too_many_categories();
    for (; current_data_set < n_data_sets; ++current_data_set) check_data_set(current_data_set);
    CHECK(seen.on_numbers > 1000 && seen.on_categories > 1000 && seen.on_scores > 1000);
    CHECK(seen.with_missing > 1000 && seen.only_missing > 10 && seen.by_code > 10);
    CHECK(seen.with_temperature > 100 && seen.without_temperature > 100 && seen.rising > 1000);
    std::printf("%zu data sets\n", n_data_sets);
    return 0;
}
