// Cuts under a model of one log-odds, by far the most frequent case.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/kernels.hpp"

namespace caltree {

// What some rows say: their weight, and the sums of the residuals and of their variances.
struct StateSums {
    double rows = 0.0, residual = 0.0, variance = 0.0;
};

// What is asked of a cut.
struct CutLimits {
    double penalty, min_rows;
    double before;  // what the node gains without a cut
    double least;   // a cut must gain more than this beyond it
};

// The best cut: after the bin at some place.
struct Cut {
    bool found = false;
    std::size_t place = 0;
    double gain = 0.0, rows_left = 0.0;
};

// Bins one after the other, with what the rows of each of them say, and then all rows up to each.
class Cuts {
  public:
    // `first`: what comes before all bins.
    void start(const StateSums& first, std::size_t most_bins) {
        const std::size_t room = padded_rows(most_bins) + row_multiple;
        if (bin_.size() < room) {
            bin_.resize(room);
            for (std::vector<double>* sums : {&rows_, &residual_, &variance_, &gain_}) {
                sums->resize(room);
            }
        }
        first_ = first;
        size_ = 0;
    }

    // Takes what the rows of the next bin say.
    void add(std::size_t bin, const double* sums) {
        bin_[size_] = static_cast<std::uint32_t>(bin);
        rows_[size_] = sums[0];
        residual_[size_] = sums[1];
        variance_[size_] = sums[2];
        ++size_;
    }

    std::size_t size() const { return size_; }
    std::size_t bin(std::size_t place) const { return bin_[place]; }

    // The best of the cuts after each of the first `n` bins.
    Cut best(std::size_t n, const StateSums& node, const CutLimits& limits) {
        add_up(n);
        std::size_t begin = 0;
        while (begin < n && rows_[begin] < limits.min_rows) ++begin;
        while (n > begin && node.rows - rows_[n - 1] < limits.min_rows) --n;
        kernels_.cut_gains({&residual_[begin], &variance_[begin]}, node.residual, node.variance,
                           limits.penalty, gain_.data(), padded_rows(n - begin));
        Cut result{.gain = limits.least};
        for (std::size_t place = begin; place < n; ++place) {
            const double gain = gain_[place - begin] - limits.before;
            if (gain > result.gain + 1e-9) result = {true, place, gain, rows_[place]};
        }
        return result;
    }

  private:
    void add_up(std::size_t n) {
        StateSums left = first_;
        for (std::size_t i = 0; i < n; ++i) {
            rows_[i] = left.rows += rows_[i];
            residual_[i] = left.residual += residual_[i];
            variance_[i] = left.variance += variance_[i];
        }
    }

    const Kernels& kernels_ = kernels();
    std::size_t size_ = 0;
    StateSums first_;  // what comes before all bins
    std::vector<std::uint32_t> bin_;
    std::vector<double> rows_, residual_, variance_, gain_;
};

// Up to so many rows, sorting them is cheaper than looking at every bin.
inline constexpr std::size_t few_rows = 32;
// Bins that leave room, in a key of 15 bits, for the number of a row.
inline constexpr std::size_t most_sorted_bins = 1 << 10;

// A few rows, by bin. Each is placed behind those with a smaller key: comparing all with all takes
// less time than branches that cannot be foreseen.
class FewRows {
  public:
    // `bin_of(i)` is below most_sorted_bins.
    template <class BinOf>
    FewRows(std::size_t n, BinOf&& bin_of) {
        std::array<std::int16_t, few_rows> keys{}, places{};
        for (std::size_t i = 0; i < n; ++i) {
            keys[i] = static_cast<std::int16_t>(bin_of(i) * few_rows + i);
        }
        for (std::size_t j = 0; j < n; ++j) {
            const std::int16_t key = keys[j];
            for (std::size_t i = 0; i < few_rows; ++i) {
                places[i] = static_cast<std::int16_t>(places[i] + (keys[i] > key));
            }
        }
        for (std::size_t i = 0; i < n; ++i) sorted_[static_cast<std::size_t>(places[i])] = keys[i];
    }

    std::size_t bin(std::size_t place) const {
        return static_cast<std::size_t>(sorted_[place]) / few_rows;
    }
    std::size_t row(std::size_t place) const {
        return static_cast<std::size_t>(sorted_[place]) % few_rows;
    }

  private:
    std::array<std::int16_t, few_rows> sorted_;
};

}  // namespace caltree
