// Sums of what rows say, by the bins of an attribute.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "data/bins.hpp"
#include "data/data.hpp"
#include "kernels/kernels.hpp"

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
        if (seen_.size() < n_cells + word) seen_.resize(n_cells + word, 0);
        kernels_.add_to_bins(codes, rows.data(), rows.size(), evidence.data(), stride_,
                             sums_.data(), seen_.data());
    }

    const double* sums() const { return sums_.data(); }
    std::size_t place(std::size_t bin) const { return bin * stride_; }

    // Calls `visit(bin, place)` for every bin that has rows, in ascending order.
    template <class Visit>
    void for_seen(std::size_t n_bins, Visit&& visit) {
        seen_[n_bins] = 0;  // that of missing values
        for (std::size_t begin = 0; begin < n_bins; begin += word) {
            for (std::uint64_t left = bits(begin); left != 0; left &= left - 1) {
                const std::size_t bin = begin + static_cast<std::size_t>(std::countr_zero(left));
                visit(bin, place(bin));
            }
        }
    }

    // The same, after which all bins are empty.
    template <class Visit>
    void take(std::size_t n_bins, Visit&& visit) {
        for_seen(n_bins, [&](std::size_t bin, std::size_t at) {
            visit(bin, at);
            empty(at);
        });
        empty(place(n_bins));
        std::fill_n(seen_.data(), n_bins, std::uint8_t{0});
    }

    void clear(std::size_t n_bins) {
        take(n_bins, [](std::size_t, std::size_t) {});
    }

  private:
    static constexpr std::size_t word = 64;

    // By fours: a loop over all would become a call, which takes longer than this does.
    void empty(std::size_t at) {
        for (double *to = &sums_[at], *end = to + stride_; to != end; to += 4) {
            to[0] = to[1] = to[2] = to[3] = 0.0;
        }
    }

    // The first byte is the lowest.
    static std::uint64_t eight_bytes(const std::uint8_t* from) {
        std::uint64_t result = 0;
        if constexpr (std::endian::native == std::endian::little) {
            std::memcpy(&result, from, sizeof(result));
        } else {
            for (std::size_t b = 0; b < 8; ++b) result |= std::uint64_t{from[b]} << 8 * b;
        }
        return result;
    }

    // As many marks as fit into a word, a bit each.
    std::uint64_t bits(std::size_t begin) const {
        std::uint64_t result = 0;
        for (std::size_t k = 0; k < word; k += 8) {
            // Each mark is a byte of 0 or 1: their products meet side by side in the last byte.
            const std::uint64_t marks = eight_bytes(&seen_[begin + k]);
            result |= (marks * 0x0102040810204080U >> 56) << k;
        }
        return result;
    }

    const Kernels& kernels_ = kernels();
    std::size_t stride_;
    std::vector<double> sums_;
    std::vector<std::uint8_t> seen_;  // by bin: whether it has rows
};

}  // namespace caltree
