// Attributes as codes: the rank of a number among the distinct ones, or a category's index.
//
// Numbers are sorted once, here, for every tree that will ever be grown on them. A tree recovers
// its own sorted order from the ranks by counting, in linear time.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "data/stop.hpp"

namespace caltree {

// Neighbouring values no further apart than this are never separated by a cut.
inline constexpr double minimum_gap = 1e-5;

// A column of a matrix that may be strided.
struct ColumnView {
    const double* first;
    std::ptrdiff_t stride;
    double operator[](std::size_t row) const {
        return first[static_cast<std::ptrdiff_t>(row) * stride];
    }
};

struct Column {
    std::vector<std::uint32_t> codes;  // one per row
    std::uint32_t n_codes = 0;         // number of distinct values, or of categories
    bool numeric = true;

    // Where to find the values again, rather than a copy of them; `fill` stands in for NaN.
    ColumnView view{};
    double fill = 0.0;
    // Numeric: a row of each code, and how many codes further the values are more than minimum_gap
    // away (at most `far`: that far or more).
    std::vector<std::uint32_t> row_of_code;
    std::vector<std::uint8_t> gap;
    static constexpr std::uint8_t far = 255;

    double value(std::uint32_t code) const { return filled(row_of_code[code]); }
    // Whether the value of the higher code is more than minimum_gap above that of the lower one.
    bool far_apart(std::uint32_t lower, std::uint32_t upper) const {
        if (gap[lower] < far) return upper - lower >= gap[lower];
        return value(upper) - value(lower) > minimum_gap;
    }
    double filled(std::size_t row) const {
        // Adding zero turns -0 into +0: the two are one value.
        return (std::isnan(view[row]) ? fill : view[row]) + 0.0;
    }
};

struct Columns {
    std::size_t n_rows = 0;
    std::vector<Column> columns;
};

namespace detail {

struct Keyed {
    std::uint64_t key;
    std::uint32_t row;
};

// Maps doubles to integers that sort alike.
inline std::uint64_t sortable(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const std::uint64_t sign = std::uint64_t{1} << 63;
    return (bits & sign) != 0 ? ~bits : bits | sign;
}

inline double from_sortable(std::uint64_t key) {
    const std::uint64_t sign = std::uint64_t{1} << 63;
    return std::bit_cast<double>((key & sign) != 0 ? key & ~sign : ~key);
}

// Least significant digit first, eleven bits a pass; passes over a digit all keys share are
// skipped, so that small integers cost two or three passes and not six.
inline void radix_sort(std::vector<Keyed>& keyed, std::vector<Keyed>& scratch) {
    constexpr int bits = 11;
    constexpr int passes = 6;
    constexpr std::size_t radix = std::size_t{1} << bits;
    std::vector<std::array<std::uint32_t, radix>> counts(passes);
    for (auto& count : counts) count.fill(0);
    for (const Keyed& item : keyed) {
        for (int pass = 0; pass < passes; ++pass) {
            ++counts[static_cast<std::size_t>(pass)][(item.key >> (pass * bits)) & (radix - 1)];
        }
    }
    scratch.resize(keyed.size());
    for (int pass = 0; pass < passes; ++pass) {
        check_stop();
        auto& count = counts[static_cast<std::size_t>(pass)];
        if (count[(keyed[0].key >> (pass * bits)) & (radix - 1)] == keyed.size()) continue;
        std::uint32_t start = 0;
        for (std::uint32_t& entry : count) start += std::exchange(entry, start);
        for (const Keyed& item : keyed) {
            scratch[count[(item.key >> (pass * bits)) & (radix - 1)]++] = item;
        }
        keyed.swap(scratch);
    }
}

// For each of the ascending values, how many values further on they are more than minimum_gap away.
inline std::vector<std::uint8_t> gaps(const std::vector<double>& values) {
    std::vector<std::uint8_t> gap(values.size());
    std::size_t next = 0;
    for (std::size_t code = 0; code < values.size(); ++code) {
        while (next < values.size() && !(values[next] - values[code] > minimum_gap)) ++next;
        gap[code] = static_cast<std::uint8_t>(std::min<std::size_t>(next - code, Column::far));
    }
    return gap;
}

}  // namespace detail

// The column keeps looking at `view`, which must outlive it; `fill` stands in for NaN.
inline Column numeric_column(ColumnView view, std::size_t n_rows, double fill) {
    Column column;
    column.view = view;
    column.fill = fill;
    column.codes.resize(n_rows);
    std::vector<detail::Keyed> keyed(n_rows);
    std::vector<detail::Keyed> scratch;
    for (std::size_t row = 0; row < n_rows; ++row) {
        keyed[row] = {detail::sortable(column.filled(row)), static_cast<std::uint32_t>(row)};
    }
    if (n_rows > 0) detail::radix_sort(keyed, scratch);
    std::vector<double> values;
    for (std::size_t i = 0; i < n_rows; ++i) {
        if (i == 0 || keyed[i].key != keyed[i - 1].key) {
            values.push_back(detail::from_sortable(keyed[i].key));
            column.row_of_code.push_back(keyed[i].row);
        }
        column.codes[keyed[i].row] = static_cast<std::uint32_t>(column.row_of_code.size() - 1);
    }
    column.gap = detail::gaps(values);
    column.row_of_code.shrink_to_fit();
    column.n_codes = static_cast<std::uint32_t>(column.row_of_code.size());
    return column;
}

// Whether a number in an encoded matrix stands for a category; NaN does not.
inline bool is_category(double value, std::uint32_t n_categories) {
    return value >= 0.0 && value < static_cast<double>(n_categories);
}

// The category that a number stands for; anything that is not one of them counts as `fill`.
inline std::uint32_t category_code(double value, std::uint32_t n_categories, double fill) {
    return static_cast<std::uint32_t>(is_category(value, n_categories) ? value : fill);
}

inline Column nominal_column(ColumnView view, std::size_t n_rows, std::uint32_t n_categories,
                             double fill) {
    Column column;
    column.numeric = false;
    column.view = view;
    column.fill = fill;
    column.n_codes = n_categories;
    column.codes.resize(n_rows);
    for (std::size_t row = 0; row < n_rows; ++row) {
        column.codes[row] = category_code(view[row], n_categories, fill);
    }
    return column;
}

}  // namespace caltree
