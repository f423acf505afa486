// What the tests of the core share: checks that name the data set, a digest of numbers, and chance.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <ranges>

#include "data/random.hpp"

namespace caltree::testing {

inline std::size_t current_data_set = 0;

#define CHECK(condition)                                                          \
    do {                                                                          \
        if (!(condition)) {                                                       \
            std::fprintf(stderr, "%s:%d: data set %zu: %s\n", __FILE__, __LINE__, \
                         caltree::testing::current_data_set, #condition);         \
            std::exit(1);                                                         \
        }                                                                         \
    } while (false)

// FNV-1a over the bits of numbers.
class Digest {
  public:
    void add(double value) { add_bits(std::bit_cast<std::uint64_t>(value)); }
    template <std::integral T>
    void add(T value) {
        add_bits(static_cast<std::uint64_t>(value));
    }
    template <std::ranges::range T>
    void add(const T& values) {
        for (const auto value : values) add(value);
    }
    std::uint64_t value() const { return state_; }

  private:
    void add_bits(std::uint64_t bits) {
        for (int byte = 0; byte < 8; ++byte) {
            state_ = (state_ ^ ((bits >> (8 * byte)) & 0xff)) * 0x100000001b3u;
        }
    }
    std::uint64_t state_ = 0xcbf29ce484222325u;
};

// The distributions of the standard library differ from one to the next; these do not.
class Chance {
  public:
    explicit Chance(std::uint64_t seed) : random_(seed) {}
    double uniform() { return static_cast<double>(random_.next() >> 11) * 0x1p-53; }
    double between(double low, double high) { return low + (high - low) * uniform(); }
    std::size_t below(std::size_t end) { return random_.below(end); }
    std::size_t from_to(std::size_t low, std::size_t high) { return low + below(high - low + 1); }
    bool happens(double probability) { return uniform() < probability; }
    template <class T>
    T one_of(std::initializer_list<T> choices) {
        return choices.begin()[below(choices.size())];
    }

  private:
    Random random_;
};

}  // namespace caltree::testing
