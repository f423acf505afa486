// Attributes in bins: equal to their distinct values where these are few, else quantiles of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "data/columns.hpp"

namespace caltree {

using Bin = std::uint16_t;

inline constexpr std::size_t most_bins = 65'534;  // one more is needed for missing values

namespace detail {

// The last of the numbers that are rounded to this one in single precision, or to one below it.
inline double last_rounded_to(float single) {
    const double next = std::nextafter(single, std::numeric_limits<float>::infinity());
    const double edge = (static_cast<double>(single) + next) / 2.0;
    return static_cast<float>(edge) == single
               ? edge
               : std::nextafter(edge, -std::numeric_limits<double>::infinity());
}

// Whether single precision reaches as far.
inline bool is_single(double value) { return std::abs(value) < std::numeric_limits<float>::max(); }

// About halfway between two values, the first of which it may be. Between values that are not of
// single precision, every number goes the same way as the number it is rounded to: then models that
// take single precision send rows where this one does.
inline double threshold_between(double below, double above) {
    double halfway = below / 2.0 + above / 2.0;
    if (!(halfway >= below && halfway < above)) halfway = below;
    if (!is_single(below) || !is_single(above)) return halfway;
    const auto first = static_cast<float>(below);
    const auto last = static_cast<float>(above);
    if (first == last || (first == below && last == above)) return halfway;
    return last_rounded_to(std::min(static_cast<float>(halfway), std::nextafter(last, first)));
}

}  // namespace detail

struct BinnedColumn {
    std::vector<Bin> codes;  // one per row; n_bins where the value is missing
    std::size_t n_bins = 0;  // or categories
    bool numeric = true;
    std::vector<double> lower, upper;  // numeric: the smallest and largest value of each bin

    // Rows of bins up to `bin` have values not above this, the others have values above it.
    double threshold(std::size_t bin) const {
        return detail::threshold_between(upper[bin], lower[bin + 1]);
    }
};

// The codes of all columns once more, those of a row side by side: a few rows of all columns are in
// few places of the memory then.
struct RowCodes {
    // More columns take more room than they save time.
    static constexpr std::size_t most_columns = 64;

    explicit RowCodes(std::span<const BinnedColumn> columns) : n_columns(columns.size()) {
        if (columns.empty() || n_columns > most_columns) return;
        codes.resize(columns[0].codes.size() * n_columns);
        for (std::size_t a = 0; a < n_columns; ++a) {
            const std::vector<Bin>& from = columns[a].codes;
            for (std::size_t row = 0; row < from.size(); ++row) {
                codes[row * n_columns + a] = from[row];
            }
        }
    }

    const Bin* of(std::size_t row) const { return codes.data() + row * n_columns; }

    std::size_t n_columns;
    std::vector<Bin> codes;  // none if there are many columns
};

namespace detail {

// The first bin is 0, and a new one begins where a value would overfill the last.
inline std::vector<Bin> bin_of_code(const std::vector<double>& count, std::size_t n_bins) {
    std::size_t distinct = 0;
    double rows = 0.0;
    for (const double rows_of_value : count) {
        distinct += rows_of_value > 0.0;
        rows += rows_of_value;
    }
    std::vector<Bin> bins(count.size(), 0);
    std::size_t bin = 0;
    double in_bin = 0.0;
    for (std::size_t code = 0; code < count.size(); ++code) {
        if (count[code] > 0.0) {
            const std::size_t left = n_bins - bin;  // of the bins, this one included
            const double with_it = (in_bin + count[code]) * static_cast<double>(left);
            const bool full = distinct <= n_bins || with_it > rows;
            if (in_bin > 0.0 && full && left > 1) {
                ++bin;
                rows -= in_bin;
                in_bin = 0.0;
            }
            in_bin += count[code];
        }
        bins[code] = static_cast<Bin>(bin);
    }
    return bins;
}

}  // namespace detail

// `weights`: one per row, or none.
inline BinnedColumn binned_numeric(const Column& column, std::span<const double> weights,
                                   std::size_t max_bins) {
    const std::size_t n_rows = column.codes.size();
    std::vector<double> count(column.n_codes, 0.0);
    for (std::size_t row = 0; row < n_rows; ++row) {
        if (std::isnan(column.view[row])) continue;
        count[column.codes[row]] += weights.empty() ? 1.0 : weights[row];
    }
    const std::vector<Bin> bins = detail::bin_of_code(count, max_bins);
    BinnedColumn result;
    for (std::size_t code = 0; code < count.size(); ++code) {
        if (count[code] == 0.0) continue;
        const double value = column.value(static_cast<std::uint32_t>(code));
        if (bins[code] == result.lower.size()) {
            result.lower.push_back(value);
            result.upper.push_back(value);
        }
        result.upper[bins[code]] = value;
    }
    result.n_bins = result.lower.size();
    result.codes.resize(n_rows);
    for (std::size_t row = 0; row < n_rows; ++row) {
        result.codes[row] = std::isnan(column.view[row]) ? static_cast<Bin>(result.n_bins)
                                                         : bins[column.codes[row]];
    }
    return result;
}

// A column of more categories than fit is left without bins: nothing is split on it.
inline BinnedColumn binned_nominal(const Column& column) {
    BinnedColumn result;
    result.numeric = false;
    result.codes.resize(column.codes.size(), 0);
    if (column.n_codes > most_bins) return result;
    result.n_bins = column.n_codes;
    for (std::size_t row = 0; row < result.codes.size(); ++row) {
        const bool missing = !is_category(column.view[row], column.n_codes);
        result.codes[row] = static_cast<Bin>(missing ? column.n_codes : column.codes[row]);
    }
    return result;
}

inline std::vector<BinnedColumn> binned(const Columns& columns, std::span<const double> weights,
                                        std::size_t max_bins) {
    std::vector<BinnedColumn> result;
    for (const Column& column : columns.columns) {
        result.push_back(column.numeric ? binned_numeric(column, weights, max_bins)
                                        : binned_nominal(column));
    }
    return result;
}

}  // namespace caltree
