// Marks of bins that have rows: a byte of 0 or 1 each.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace caltree {

inline constexpr std::size_t marks_in_a_word = 64;

// The first byte is the lowest. Static, since each instruction set has one of its own.
static inline std::uint64_t eight_bytes(const std::uint8_t* from) {
    std::uint64_t result = 0;
    if constexpr (std::endian::native == std::endian::little) {
        std::memcpy(&result, from, sizeof(result));
    } else {
        for (std::size_t b = 0; b < 8; ++b) result |= std::uint64_t{from[b]} << 8 * b;
    }
    return result;
}

// As many marks as fit into a word, a bit each.
static inline std::uint64_t word_of_marks(const std::uint8_t* marks) {
    std::uint64_t result = 0;
    for (std::size_t k = 0; k < marks_in_a_word; k += 8) {
        // The products of eight bytes of 0 or 1 meet side by side in the last byte.
        result |= (eight_bytes(marks + k) * 0x0102040810204080U >> 56) << k;
    }
    return result;
}

// Calls `visit(bin)` for every bin below n_bins that has a mark, in ascending order. Marks are read
// by whole words.
template <class Visit>
static inline void for_marks(const std::uint8_t* marks, std::size_t n_bins, Visit&& visit) {
    for (std::size_t begin = 0; begin < n_bins; begin += marks_in_a_word) {
        for (std::uint64_t left = word_of_marks(marks + begin); left != 0; left &= left - 1) {
            visit(begin + static_cast<std::size_t>(std::countr_zero(left)));
        }
    }
}

}  // namespace caltree
