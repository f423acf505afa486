// Random data sets for the tests of shrunken trees.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "checks.hpp"
#include "data/bins.hpp"
#include "data/columns.hpp"
#include "data/data.hpp"
#include "tree/ways.hpp"

namespace caltree::testing {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

struct DataSet {
    std::size_t n_rows = 0, n_classes = 0, n_scores = 0, max_bins = 0;
    bool all_scores = true;
    bool tame = true;            // the scores are of ordinary size
    std::vector<double> matrix;  // row-major
    std::vector<std::int32_t> n_categories;
    std::vector<double> weights, scores, offset;
    std::vector<Label> labels;
    Columns columns;

    std::size_t n_attributes() const { return n_categories.size(); }
    std::size_t n_states() const { return n_classes == 2 ? 1 : n_classes; }
    const double* offset_or_null() const { return offset.empty() ? nullptr : offset.data(); }
    Table table() const {
        const auto width = static_cast<std::ptrdiff_t>(n_attributes());
        return {matrix.data(), n_rows, n_attributes(), width, 1};
    }
    Data data() const { return {columns, labels, weights, scores.data(), n_scores, n_classes}; }
    double weight(Row row) const { return weights.empty() ? 1.0 : weights[row]; }
};

inline double random_value(Chance& chance, std::int32_t n_categories, int kind) {
    if (chance.happens(0.1)) return not_a_number;
    if (n_categories > 0) {
        return static_cast<double>(chance.from_to(0, static_cast<std::size_t>(n_categories) - 1));
    }
    switch (kind) {
        case 0:
            return chance.between(-3.0, 3.0);
        case 1:
            return std::round(chance.between(-3.0, 3.0));
        case 2:
            return chance.one_of({-1e308, -1.0, -0.0, 0.0, 5e-324, 1e-323, 1.0, 1e308});
        case 3:
            return not_a_number;
        default:
            return 7.0;
    }
}

inline double random_score(Chance& chance, int kind, bool hit) {
    const double margin = chance.between(-2.0, 2.0) + (hit ? 1.0 : 0.0);
    switch (kind) {
        case 0:
            return margin;
        case 1:
            return std::round(margin);
        case 2:
            return 0.3;
        case 3:
            return hit ? 30.0 : -30.0;  // the answer itself
        case 4:
            return margin * 1e100;
        default:
            return chance.one_of({-1e100, 1e-300, 0.0, 1.0, 1e100});
    }
}

inline void add_attributes(Chance& chance, DataSet& set, std::vector<int>& kinds) {
    const std::size_t n_attributes = chance.from_to(1, 5);
    for (std::size_t a = 0; a < n_attributes; ++a) {
        const std::size_t most = chance.happens(0.2) ? set.n_rows + 20 : 5;
        const bool nominal = chance.happens(0.4);
        set.n_categories.push_back(nominal ? static_cast<std::int32_t>(chance.from_to(1, most))
                                           : 0);
        kinds.push_back(static_cast<int>(chance.from_to(0, 4)));
    }
}

// Two classes have a log-odds a classifier, and then what bends each of them.
inline void add_bends(DataSet& set) {
    for (std::size_t i = 0; i < set.n_scores * set.n_rows; ++i) {
        const double size = std::abs(set.scores[i]);
        set.scores.push_back(-size - 2.0 * std::log1p(std::exp(-size)));
    }
    set.n_scores *= 2;
}

inline void add_scores(Chance& chance, DataSet& set) {
    const std::size_t several = chance.one_of<std::size_t>({1, 1, 2, 3});
    set.n_scores = several * set.n_states();
    set.tame = chance.happens(0.7);
    for (std::size_t c = 0; c < set.n_scores; ++c) {
        const int kind = static_cast<int>(chance.from_to(0, set.tame ? 2 : 5));
        for (std::size_t i = 0; i < set.n_rows; ++i) {
            const bool hit = set.labels[i] == (set.n_classes == 2 ? 1 : c % set.n_classes);
            set.scores.push_back(random_score(chance, kind, hit));
        }
    }
    if (several == 1 && chance.happens(0.4)) {
        set.offset = set.scores;  // what one classifier says
    } else if (chance.happens(0.7)) {
        for (std::size_t i = 0; i < set.n_rows * set.n_states(); ++i) {
            set.offset.push_back(chance.happens(0.05) ? chance.one_of({-36.7, 36.7})
                                                      : chance.between(-3.0, 3.0));
        }
    }
    if (set.n_classes == 2) add_bends(set);
}

inline DataSet random_data_set(Chance& chance) {
    DataSet set;
    set.n_rows = chance.one_of<std::size_t>(
        {1, 2, 5, chance.from_to(3, 40), chance.from_to(20, 150), chance.from_to(200, 500)});
    set.n_classes = chance.happens(0.5) ? 2 : chance.from_to(3, 6);
    set.max_bins = chance.one_of<std::size_t>({2, 3, 16, 255, most_bins});
    set.all_scores = chance.happens(0.5);
    std::vector<int> kinds;
    add_attributes(chance, set, kinds);
    for (std::size_t i = 0; i < set.n_rows; ++i) {
        double signal = chance.uniform();
        for (std::size_t a = 0; a < set.n_attributes(); ++a) {
            const double value = random_value(chance, set.n_categories[a], kinds[a]);
            set.matrix.push_back(value);
            if (value > 0.5 || std::isnan(value)) signal += 0.7;
        }
        set.labels.push_back(
            static_cast<Label>(static_cast<std::size_t>(signal * 1.5) % set.n_classes));
    }
    set.columns.n_rows = set.n_rows;
    for (std::size_t a = 0; a < set.n_attributes(); ++a) {
        const ColumnView view = set.table().column(a);
        const auto count = static_cast<std::uint32_t>(set.n_categories[a]);
        // What stands in for missing values elsewhere plays no part here.
        set.columns.columns.push_back(count > 0 ? nominal_column(view, set.n_rows, count, 0.0)
                                                : numeric_column(view, set.n_rows, 1.0));
    }
    add_scores(chance, set);
    if (chance.happens(0.4)) {
        for (std::size_t i = 0; i < set.n_rows; ++i) {
            set.weights.push_back(chance.one_of({0.01, 0.5, 1.0, 2.0, 1000.0}));
        }
    }
    return set;
}

}  // namespace caltree::testing
