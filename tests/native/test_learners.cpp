// Boosts stumps and trees on random tables, with missing values and categories, and sees that new
// rows are predicted as the training rows were, and that all splits are where values are.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <vector>

#include "data/random.hpp"
#include "data/stop.hpp"
#include "learners/logitboost.hpp"

using namespace caltree;

namespace {

#define CHECK(condition)                                                         \
    do {                                                                         \
        if (!(condition)) {                                                      \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            std::exit(1);                                                        \
        }                                                                        \
    } while (false)

// Numbers, of which some have few values or one that most rows have, and two nominal attributes.
struct Case {
    Case(Random& random, std::size_t rows, std::size_t classes, bool with_missing)
        : n_rows(rows), n_classes(classes) {
        for (std::size_t i = 0; i < n_rows; ++i) {
            for (std::size_t a = 0; a < n_categories.size(); ++a) {
                double value = static_cast<double>(random.below(1000)) / 250.0 - 2.0;
                if (a == 1) value = random.below(4) == 0 ? value : 0.5;
                if (a == 2) value = static_cast<double>(random.below(3));
                if (n_categories[a] > 0) {
                    value = static_cast<double>(
                        random.below(static_cast<std::size_t>(n_categories[a])));
                }
                if (with_missing && a != 1 && random.below(8) == 0) value = nan;
                matrix.push_back(value);
            }
            labels.push_back(static_cast<Label>(i < n_classes ? i : random.below(n_classes)));
        }
    }

    Table table() const {
        const auto width = static_cast<std::ptrdiff_t>(n_categories.size());
        return {matrix.data(), n_rows, n_categories.size(), width, 1};
    }

    static constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    std::size_t n_rows, n_classes;
    std::vector<std::int32_t> n_categories{0, 0, 0, 3, 0, 6, 0};
    std::vector<double> matrix;
    std::vector<Label> labels;
};

void check_structure(const Case& given, const RegressionTrees& trees) {
    for (std::size_t v = 0; v < trees.value.size(); ++v) {
        CHECK(std::isfinite(trees.value[v]));
        if (trees.attribute[v] < 0) continue;
        const auto first = static_cast<std::size_t>(trees.first_child[v]);
        const auto count = static_cast<std::size_t>(trees.n_children[v]);
        CHECK(first > v && first + count <= trees.value.size());
        double shares = 0.0;
        for (std::size_t c = first; c < first + count; ++c) shares += trees.share[c];
        CHECK(std::abs(shares - 1.0) < 1e-12);
        const auto a = static_cast<std::size_t>(trees.attribute[v]);
        CHECK((given.n_categories[a] == 0) == !std::isnan(trees.cut[v]));
    }
}

// The table predicts with indices of any size what it was boosted to.
template <class Index>
void check_training_rows(const Case& given, std::optional<std::size_t> max_depth) {
    const Presorted<Index> table(given.table(), given.n_categories);
    std::vector<double> weight(given.n_rows), response(given.n_rows), predicted(given.n_rows);
    for (std::size_t i = 0; i < given.n_rows; ++i) {
        weight[i] = 0.5 + static_cast<double>(i % 3);
        response[i] = given.labels[i] == 0 ? 2.0 : -1.0;
    }
    const std::vector<Regression> regressions(3, {weight, response, predicted});
    RegressionTrees trees;
    if (max_depth) {
        TreeGrower<Index>(table, *max_depth).grow(regressions, trees);
    } else {
        StumpGrower<Index>(table).grow(regressions, trees);
    }
    CHECK(trees.roots.size() == 3);
    check_structure(given, trees);
    for (const std::int32_t root : trees.roots) {
        for (std::size_t i = 0; i < given.n_rows; ++i) {
            const double value =
                predict(trees.view(), static_cast<std::size_t>(root), given.table(), i);
            CHECK(std::abs(value - predicted[i]) < 1e-12);
        }
    }
}

void check_boosting(const Case& given, std::optional<std::size_t> max_depth) {
    const RegressionTrees trees = fit_logitboost(given.table(), given.n_categories, given.labels,
                                                 given.n_classes, 4, max_depth);
    CHECK(trees.roots.size() == 4 * n_regressions(given.n_classes));
    check_structure(given, trees);
    std::vector<double> found(given.n_rows * given.n_classes);
    predict_logitboost(trees.view(), given.table(), given.n_classes, found.data());
    for (std::size_t i = 0; i < given.n_rows; ++i) {
        double sum = 0.0;
        for (std::size_t j = 0; j < given.n_classes; ++j) sum += found[i * given.n_classes + j];
        CHECK(std::abs(sum - 1.0) < 1e-12);
    }
}

// Stops at one of the checks.
class StopAt final : public StopSource {
  public:
    explicit StopAt(std::size_t last) : last_(last) { stop_source = this; }
    ~StopAt() { stop_source = nullptr; }
    void check() override {
        if (++asked_ == last_) throw Stopped();
    }
    std::size_t asked() const { return asked_; }

  private:
    std::size_t last_, asked_ = 0;
};

template <class Work>
void check_stops(Work&& work) {
    std::size_t asked = 0;
    {
        StopAt never(0);
        work();
        asked = never.asked();
    }
    CHECK(asked >= 1);
    StopAt stop((asked + 1) / 2);
    bool stopped = false;
    try {
        work();
    } catch (const Stopped&) {
        stopped = true;
    }
    CHECK(stopped && stop.asked() == (asked + 1) / 2);
}

}  // namespace

int main() {
    Random random(1);
    const std::vector<std::optional<std::size_t>> depths{std::nullopt, 1, 3, 6};
    for (std::size_t trial = 0; trial < 200; ++trial) {
        const std::size_t n_classes = 2 + trial % 5;
        const Case given(random, n_classes + random.below(200), n_classes, trial % 2 == 0);
        check_training_rows<std::uint16_t>(given, depths[trial % 4]);
        check_training_rows<std::uint32_t>(given, depths[trial % 4]);
        check_boosting(given, depths[trial % 4]);
    }
    const Case large(random, 10'000, 3, true);
    for (const auto& depth : {depths[0], depths[2]}) {
        RegressionTrees trees;
        check_stops([&] {
            trees = fit_logitboost(large.table(), large.n_categories, large.labels, 3, 2, depth);
        });
        std::vector<double> found(large.n_rows * 3);
        check_stops([&] { predict_logitboost(trees.view(), large.table(), 3, found.data()); });
    }
    return 0;
}
