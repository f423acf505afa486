// Predicts by random boosted trees, and sees that rows go where the router of other trees sends
// them.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <vector>

#include "data/random.hpp"
#include "tree/predict.hpp"
#include "tree/predict_boosted.hpp"
#include "tree/structure.hpp"

using namespace caltree;

namespace {

#define CHECK(condition)                                                         \
    do {                                                                         \
        if (!(condition)) {                                                      \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            std::exit(1);                                                        \
        }                                                                        \
    } while (false)

// Two attributes, of which the second has categories, and a score for each log-odds.
struct Case {
    Case(Random& random, std::size_t states) : n_states(states) {
        const std::size_t n_trees = 1 + random.below(6);
        for (std::size_t t = 0; t < n_trees; ++t) add_tree(random, random.below(12));
        for (std::size_t i = 0; i < n_states * (n_states + 1); ++i) {
            parameters.push_back(number(random));
        }
        n_rows = random.below(600);
        for (std::size_t i = 0; i < n_rows; ++i) {
            matrix.push_back(random.below(5) == 0 ? nan : number(random));
            matrix.push_back(random.below(5) == 0 ? nan : static_cast<double>(random.below(6)));
        }
        for (std::size_t i = 0; i < n_rows * n_states; ++i) scores.push_back(number(random));
    }

    static double number(Random& random) {
        return static_cast<double>(random.below(1000)) / 250.0 - 2.0;
    }

    void add_tree(Random& random, std::size_t n_splits) {
        const std::size_t root = tree.add_leaves(-1, 1);
        roots.push_back(static_cast<std::int32_t>(root));
        state.push_back(static_cast<std::int32_t>(random.below(n_states)));
        // A leaf is split when it is reached, so that children stand behind their parents.
        for (std::size_t v = root; n_splits > 0 && v < tree.size(); ++v) {
            if (random.below(3) == 0 && v + 1 < tree.size()) continue;
            split(random, v);
            --n_splits;
        }
        while (value.size() < tree.size()) value.push_back(number(random));
    }

    void split(Random& random, std::size_t v) {
        const std::size_t a = random.below(2 + n_states);
        tree.attribute[v] = static_cast<std::int32_t>(a);
        tree.threshold[v] = random.below(6) == 0 ? only_missing : number(random);
        tree.missing[v] = static_cast<std::int32_t>(random.below(2));
        tree.n_children[v] = 2;
        if (a == 1) {
            std::int32_t* branch = tree.add_table(v, 4, 0);
            for (std::size_t c = 0; c < 4; ++c) {
                branch[c] = static_cast<std::int32_t>(random.below(2));
            }
        }
        const auto first =
            static_cast<std::int32_t>(tree.add_leaves(static_cast<std::int32_t>(v), 2));
        tree.first_child[v] = first;
    }

    Routes routes() const {
        return {tree.attribute, tree.threshold, tree.first_child, tree.missing,
                tree.table,     tree.branches,  n_categories};
    }
    NewRows rows() const { return {{matrix.data(), n_rows, 2, 2, 1}, scores.data()}; }

    static constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    std::size_t n_states, n_rows = 0;
    Structure tree;
    std::vector<std::int32_t> roots, state, n_categories{0, 4};
    std::vector<double> value, parameters, matrix, scores;
};

// What a case says about a row, step by step.
std::vector<double> expected(const Case& given, const Router& router, std::size_t row, double start,
                             double curve_weight, double boosted_weight) {
    const std::size_t n = given.n_states;
    const std::size_t m = n == 1 ? 2 : n;
    std::vector<double> result(m, 0.0), F(m, 0.0);
    for (std::size_t j = 0; j < n; ++j) {
        const double* beta = given.parameters.data() + j * (n + 1);
        double sum = beta[0];
        for (std::size_t k = 0; k < n; ++k)
            sum += beta[1 + k] * given.scores[k * given.n_rows + row];
        F[m - n + j] = sum;
    }
    const auto add = [&](double weight) {
        double total = 0.0;
        for (const double f : F) total += std::exp(f);
        for (std::size_t j = 0; j < m; ++j) result[j] += weight * std::exp(F[j]) / total;
    };
    add(curve_weight);
    for (double& f : F) f *= start;
    for (std::size_t t = 0; t < given.roots.size(); ++t) {
        auto node = static_cast<std::size_t>(given.roots[t]);
        while (!router.is_leaf(node)) {
            const auto a = static_cast<std::size_t>(router.attribute(node));
            node = router.child(node, given.rows().value(row, a));
        }
        F[m - n + static_cast<std::size_t>(given.state[t])] += given.value[node];
    }
    add(boosted_weight);
    return result;
}

void check_case(const Case& given, double start, double curve_weight, double boosted_weight) {
    const std::size_t n = given.n_states;
    const std::size_t m = n == 1 ? 2 : n;
    const BoostedPredictor predictor({given.routes(),
                                      given.value,
                                      given.roots,
                                      given.state,
                                      given.parameters,
                                      {n, n + 1, n},
                                      start,
                                      curve_weight,
                                      boosted_weight});
    std::vector<double> found(given.n_rows * m);
    predictor.probabilities(given.rows(), found.data());
    const Router router(given.routes());
    for (std::size_t i = 0; i < given.n_rows; ++i) {
        const std::vector<double> wanted =
            expected(given, router, i, start, curve_weight, boosted_weight);
        for (std::size_t j = 0; j < m; ++j) CHECK(std::abs(found[i * m + j] - wanted[j]) < 1e-12);
    }
}

}  // namespace

int main() {
    Random random(1);
    for (std::size_t trial = 0; trial < 300; ++trial) {
        const Case given(random, trial % 2 == 0 ? 1 : 3);
        check_case(given, 0.75, 0.25, 0.5);
        check_case(given, 0.75, 1.0, 0.0);
        check_case(given, 0.75, 0.0, 1.0);
    }
    return 0;
}
