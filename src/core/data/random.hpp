// Random numbers that are the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace caltree {

// SplitMix64: small, fast, and good enough to draw rows and attributes.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31);
    }

    // Below a limit of less than 2^32; the bias is below one in 2^32.
    std::size_t below(std::size_t limit) {
        return static_cast<std::size_t>(((next() >> 32) * limit) >> 32);
    }

  private:
    std::uint64_t state_;
};

}  // namespace caltree
