// Random data sets for the tests of the published method.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "checks.hpp"
#include "data/columns.hpp"
#include "data/data.hpp"
#include "tree/ways.hpp"

namespace caltree::testing {

struct DataSet {
    std::size_t n_rows = 0, n_classes = 0, n_scores = 0;
    std::vector<double> matrix;  // row-major
    std::vector<std::int32_t> n_categories;
    std::vector<double> fills, weights, scores;
    std::vector<Label> labels;
    Columns columns;

    std::size_t n_attributes() const { return n_categories.size(); }
    Table table() const {
        const auto width = static_cast<std::ptrdiff_t>(n_attributes());
        return {matrix.data(), n_rows, n_attributes(), width, 1};
    }
    Data data() const { return {columns, labels, weights, scores.data(), n_scores, n_classes}; }

    void encode() {
        columns.n_rows = n_rows;
        columns.columns.clear();
        for (std::size_t a = 0; a < n_attributes(); ++a) {
            const auto count = static_cast<std::uint32_t>(n_categories[a]);
            columns.columns.push_back(
                count > 0 ? nominal_column(table().column(a), n_rows, count, fills[a])
                          : numeric_column(table().column(a), n_rows, fills[a]));
        }
    }
};

inline double random_value(Chance& chance, std::int32_t n_categories, int kind, bool equal) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (equal) return n_categories > 0 ? 0.0 : 1.5;
    if (chance.happens(0.05)) return std::numeric_limits<double>::quiet_NaN();
    if (n_categories > 0) return static_cast<double>(chance.below(n_categories));
    switch (kind) {
        case 0:
            return chance.between(-3.0, 3.0);
        case 1:
            return std::round(chance.between(-3.0, 3.0));
        case 2:
            return chance.between(-1.0, 1.0) * 1e-5;  // gaps too narrow for a cut
        case 3:
            return chance.one_of({-infinity, -1e308, -0.0, 0.0, 5e-324, 1e308, infinity});
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
            return margin * 1e100;
        case 3:
            return margin * 1e-100;
        case 4:
            return hit ? 30.0 : -30.0;  // the answer itself
        case 5:
            return chance.one_of({-1e100, 1e-300, 0.0, 1.0, 1e100});
        default:
            return 0.3;
    }
}

inline DataSet random_data_set(Chance& chance) {
    DataSet set;
    set.n_rows = chance.one_of<std::size_t>(
        {1, 2, 5, chance.from_to(3, 40), chance.from_to(20, 150), chance.from_to(200, 600)});
    set.n_classes = chance.happens(0.5) ? 2 : chance.from_to(3, 12);
    set.n_scores = chance.happens(0.7) ? chance.from_to(1, 6) : chance.from_to(1, 30);
    const std::size_t n_attributes = chance.from_to(1, 5);
    const bool equal = chance.happens(0.05);
    std::vector<int> kinds;
    for (std::size_t a = 0; a < n_attributes; ++a) {
        const bool nominal = chance.happens(0.4);
        const std::size_t most = chance.happens(0.2) ? set.n_rows + 2 : 5;
        set.n_categories.push_back(nominal ? static_cast<std::int32_t>(chance.from_to(1, most))
                                           : 0);
        set.fills.push_back(nominal ? static_cast<double>(chance.below(set.n_categories.back()))
                                    : chance.between(-1.0, 1.0));
        kinds.push_back(static_cast<int>(chance.below(5)));
    }
    const bool pure = chance.happens(0.05);
    for (std::size_t i = 0; i < set.n_rows; ++i) {
        double signal = chance.uniform();
        for (std::size_t a = 0; a < n_attributes; ++a) {
            const double value = random_value(chance, set.n_categories[a], kinds[a], equal);
            set.matrix.push_back(value);
            if (value > 0.5) signal += 0.7;
        }
        const auto label = static_cast<std::size_t>(signal * 1.5) % set.n_classes;
        set.labels.push_back(static_cast<Label>(pure ? 0 : label));
    }
    set.encode();
    const int score_kind = static_cast<int>(chance.below(8));
    for (std::size_t c = 0; c < set.n_scores; ++c) {
        const int kind = score_kind < 7 ? score_kind : static_cast<int>(chance.below(7));
        for (std::size_t i = 0; i < set.n_rows; ++i) {
            const bool hit = set.labels[i] == c % set.n_classes;
            set.scores.push_back(equal ? 2.0 : random_score(chance, kind, hit));
        }
    }
    if (chance.happens(0.4)) {
        for (std::size_t i = 0; i < set.n_rows; ++i) {
            set.weights.push_back(chance.one_of({0.01, 0.5, 1.0, 2.0, 1000.0}));
        }
    }
    return set;
}

inline std::vector<Row> all_rows(const DataSet& set) {
    std::vector<Row> rows(set.n_rows);
    std::iota(rows.begin(), rows.end(), Row{0});
    return rows;
}

}  // namespace caltree::testing
