// Numbers into bins: which bins there shall be, and which of them each number falls into.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/bins.hpp"
#include "data/columns.hpp"

namespace caltree {

// A column of numbers that may be strided.
template <class Number>
struct Numbers {
    const Number* first;
    std::ptrdiff_t stride;
    std::size_t size;
    double operator[](std::size_t i) const {
        return static_cast<double>(first[static_cast<std::ptrdiff_t>(i) * stride]);
    }
};

// The different numbers, ascending, apart from NaN; none if there are more than `most`.
template <class Number>
std::optional<std::vector<double>> distinct(const Numbers<Number>& numbers, std::size_t most) {
    // A table of keys, never more than a quarter full; the key of NaN marks a free place.
    const std::size_t places = std::bit_ceil(4 * (most + 1));
    const double free = std::nan("");
    std::vector<double> table(places, free);
    std::vector<double> found;
    for (std::size_t i = 0; i < numbers.size; ++i) {
        const double value = numbers[i] + 0.0;  // -0 and +0 are one value
        if (std::isnan(value)) continue;
        const std::uint64_t bits = std::bit_cast<std::uint64_t>(value) * 0x9e3779b97f4a7c15U;
        std::size_t at = static_cast<std::size_t>(bits >> 32) & (places - 1);
        while (!std::isnan(table[at]) && table[at] != value) at = (at + 1) & (places - 1);
        if (table[at] == value) continue;
        if (found.size() == most) return std::nullopt;
        table[at] = value;
        found.push_back(value);
    }
    std::sort(found.begin(), found.end());
    return found;
}

// Where one bin ends and the next begins: between all values if they are few, else quantiles.
inline std::vector<double> cuts(std::span<const double> values, std::span<const double> weights,
                                std::size_t max_bins) {
    const Column column = numeric_column({values.data(), 1}, values.size(), 0.0);
    const BinnedColumn bins = binned_numeric(column, weights, max_bins);
    std::vector<double> result;
    for (std::size_t bin = 0; bin + 1 < bins.n_bins; ++bin) result.push_back(bins.threshold(bin));
    return result;
}

// The number of cuts below each number; `missing` for NaN. `codes` has a column for it.
template <class Number, class Code>
void bin_numbers(const Numbers<Number>& numbers, std::span<const double> cuts, Code missing,
                 Code* codes, std::ptrdiff_t stride) {
    // Several at a time, since each waits for its own comparisons.
    constexpr std::size_t together = 8;
    for (std::size_t begin = 0; begin < numbers.size; begin += together) {
        const std::size_t n = std::min(together, numbers.size - begin);
        std::array<double, together> values{};
        std::array<const double*, together> first;
        for (std::size_t k = 0; k < n; ++k) values[k] = numbers[begin + k];
        first.fill(cuts.data());
        // Halving without a branch: which way it goes cannot be foretold.
        for (std::size_t left = cuts.size(); left > 0;) {
            const std::size_t half = (left + 1) / 2;
            for (std::size_t k = 0; k < together; ++k) {
                first[k] += half & -std::size_t{first[k][half - 1] < values[k]};
            }
            left -= half;
        }
        for (std::size_t k = 0; k < n; ++k) {
            const auto below = static_cast<Code>(first[k] - cuts.data());
            codes[static_cast<std::ptrdiff_t>(begin + k) * stride] =
                std::isnan(values[k]) ? missing : below;
        }
    }
}

}  // namespace caltree
