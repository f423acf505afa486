// Class counts and x log2 x, for whole rows and for weighted ones.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/data.hpp"

namespace caltree {

// Counts, gains and ratios that differ by less than this count as equal.
inline constexpr double tolerance = 1e-6;

inline double x_log_x(double x) { return x < tolerance ? 0.0 : x * std::log2(x); }

// Every row counts once: counts are integers and x log2 x comes from a table.
class UnitCounting {
  public:
    using Count = std::uint32_t;

    explicit UnitCounting(std::size_t n_rows) : table_(n_rows + 1) {
        for (std::size_t i = 0; i <= n_rows; ++i) table_[i] = x_log_x(static_cast<double>(i));
    }

    Count weight(Row) const { return 1; }
    double value(Count count) const { return table_[count]; }
    // By how much x log2 x grows when `count` grows by one.
    double growth(Count count, Count) const { return table_[count + 1] - table_[count]; }

  private:
    std::vector<double> table_;
};

class WeightedCounting {
  public:
    using Count = double;

    explicit WeightedCounting(std::span<const double> weights) : weights_(weights) {}

    Count weight(Row row) const { return weights_[row]; }
    double value(Count count) const { return x_log_x(count); }
    double growth(Count count, Count weight) const { return value(count + weight) - value(count); }

  private:
    std::span<const double> weights_;
};

}  // namespace caltree
