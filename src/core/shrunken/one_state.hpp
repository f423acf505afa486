// Cuts under a model of one log-odds, by far the most frequent case.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/kernels.hpp"
#include "shrunken/bin_sums.hpp"

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

// Bins one after the other, with what the rows up to each of them say.
class Cuts {
  public:
    void start(std::size_t most_bins) {
        const std::size_t room = padded_rows(most_bins) + row_multiple;
        if (bin_.size() < room) {
            bin_.resize(room);
            for (std::vector<double>* sums : {&rows_, &residual_, &variance_, &gain_}) {
                sums->resize(room);
            }
        }
        size_ = 0;
    }

    // Takes what the rows of the next bin say, which is added to what those before it say. The
    // caller has that sum, in registers.
    void add(std::size_t bin, const double* sums, StateSums& left) {
        bin_[size_] = static_cast<std::uint32_t>(bin);
        rows_[size_] = left.rows += sums[0];
        residual_[size_] = left.residual += sums[1];
        variance_[size_] = left.variance += sums[2];
        ++size_;
    }

    // Takes what the rows of all bins say.
    void take(BinSums& bins, std::size_t n_bins) {
        size_ =
            bins.take_cuts(n_bins, {bin_.data(), rows_.data(), residual_.data(), variance_.data()});
    }

    std::size_t size() const { return size_; }
    std::size_t bin(std::size_t place) const { return bin_[place]; }

    // The best of the cuts after each of the first `n` bins.
    Cut best(std::size_t n, const StateSums& node, const CutLimits& limits) {
        std::size_t begin = 0;
        while (begin < n && rows_[begin] < limits.min_rows) ++begin;
        while (n > begin && node.rows - rows_[n - 1] < limits.min_rows) --n;
        const double most =
            kernels_.cut_gains({&residual_[begin], &variance_[begin]}, node.residual, node.variance,
                               limits.penalty, gain_.data(), padded_rows(n - begin));
        Cut result{.gain = limits.least};
        // Most attributes have no better cut than one before them.
        if (!(most - limits.before > limits.least + 1e-9)) return result;
        for (std::size_t place = begin; place < n; ++place) {
            const double gain = gain_[place - begin] - limits.before;
            if (gain > result.gain + 1e-9) result = {true, place, gain, rows_[place]};
        }
        return result;
    }

  private:
    const Kernels& kernels_ = kernels();
    std::size_t size_ = 0;
    std::vector<std::uint32_t> bin_;
    std::vector<double> rows_, residual_, variance_, gain_;
};

// Bins that leave room, in a key of 15 bits, for the number of a row.
inline constexpr std::size_t most_sorted_bins = 1 << 10;

// A few rows, by bin.
class FewRows {
  public:
    // `bin_of(i)` is below most_sorted_bins.
    template <class BinOf>
    FewRows(std::size_t n, BinOf&& bin_of) {
        std::array<std::int16_t, few_rows> keys{};
        for (std::size_t i = 0; i < n; ++i) {
            keys[i] = static_cast<std::int16_t>(bin_of(i) * few_rows + i);
        }
        kernels().sort_few(keys.data(), n, sorted_.data());
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
