// Sums of what rows say, by the bins of an attribute.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/bins.hpp"
#include "data/data.hpp"
#include "kernels/kernels.hpp"
#include "kernels/marks.hpp"

namespace caltree {

// All bins are empty between one attribute and the next: only those that have rows are cleared, so
// that a node of few rows does not pay for all bins.
class BinSums {
  public:
    // `stride`: numbers of each row that are added up, a multiple of 4.
    explicit BinSums(std::size_t stride) : stride_(stride) {}

    // `evidence`: of every row, in the order of `rows`, whose codes are at most `n_bins`.
    void add(const Bin* codes, std::size_t n_bins, std::span<const Row> rows,
             std::span<const double> evidence) {
        const std::size_t n_cells = n_bins + 1;
        if (sums_.size() < n_cells * stride_) sums_.resize(n_cells * stride_, 0.0);
        if (seen_.size() < n_cells + marks_in_a_word) seen_.resize(n_cells + marks_in_a_word, 0);
        kernels_.add_to_bins(codes, rows.data(), rows.size(), evidence.data(), stride_,
                             sums_.data(), seen_.data());
    }

    const double* sums() const { return sums_.data(); }
    std::size_t place(std::size_t bin) const { return bin * stride_; }

    // Calls `visit(bin, place)` for every bin that has rows, in ascending order.
    template <class Visit>
    void for_seen(std::size_t n_bins, Visit&& visit) {
        seen_[n_bins] = 0;  // that of missing values
        for_marks(seen_.data(), n_bins, [&](std::size_t bin) { visit(bin, place(bin)); });
    }

    // All bins are empty then.
    void clear(std::size_t n_bins) {
        for_seen(n_bins, [&](std::size_t, std::size_t at) { empty(at); });
        empty(place(n_bins));
        std::fill_n(seen_.data(), n_bins, std::uint8_t{0});
    }

    // Of one state: writes sums up to each bin that has rows, and returns how many have. All bins
    // are empty then.
    std::size_t take_cuts(std::size_t n_bins, const CutColumns& to) {
        seen_[n_bins] = 0;
        empty(place(n_bins));
        return kernels_.take_bins(sums_.data(), seen_.data(), n_bins, to);
    }

  private:
    // By fours: a loop over all would become a call, which takes longer than this does.
    void empty(std::size_t at) {
        for (double *to = &sums_[at], *end = to + stride_; to != end; to += 4) {
            to[0] = to[1] = to[2] = to[3] = 0.0;
        }
    }

    const Kernels& kernels_ = kernels();
    std::size_t stride_;
    std::vector<double> sums_;
    std::vector<std::uint8_t> seen_;  // by bin: whether it has rows
};

}  // namespace caltree
