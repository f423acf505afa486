// Sums of evidence along the orders of numeric attributes: several at a time, since each sum waits
// for all its additions.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "kernels/kernels.hpp"
#include "kernels/simd.hpp"
#include "learners/presorted.hpp"

namespace caltree {

inline constexpr std::size_t sums_at_a_time = 4;

// The cuts of an attribute: one behind each change of its value, with the evidence below it.
struct Cuts {
    Evidence* below = nullptr;  // room for all, and row_multiple more
    std::size_t count = 0;
    bool all_known = true;  // whether all rows have a value
    Evidence sum{};         // over those that have one
};

using SomeCuts = std::array<Cuts, sums_at_a_time>;
template <class Index>
using SomeOrders = std::array<std::span<const Ranked<Index>>, sums_at_a_time>;

namespace detail {

inline Pack2 pack(const Evidence& from) {
    Pack2 pack;
    std::memcpy(&pack, &from, sizeof pack);
    return pack;
}

inline void unpack(const Pack2& pack, Evidence& to) {
    std::memcpy(static_cast<void*>(&to), &pack, sizeof pack);
}

// Goes on with the sums along one order from a place on.
template <class Index>
void add_up_rest(const Evidence* evidence, std::span<const Ranked<Index>> order, std::size_t i,
                 Cuts& cuts) {
    Pack2 sum = pack(cuts.sum);
    Evidence* to = cuts.below + cuts.count;
    for (; i + 1 < order.size(); ++i) {
        sum = sum + pack(evidence[order[i].row]);
        unpack(sum, *to);
        to += order[i].rank < order[i + 1].rank;
    }
    if (i < order.size()) sum = sum + pack(evidence[order[i].row]);
    cuts.count = static_cast<std::size_t>(to - cuts.below);
    unpack(sum, cuts.sum);
}

}  // namespace detail

// The evidence of one regression along the orders of several attributes.
template <class Index>
void add_up(const Evidence* evidence, const SomeOrders<Index>& orders, SomeCuts& cuts) {
    std::size_t shortest = orders[0].size();
    for (const auto& order : orders) shortest = std::min(shortest, order.size());
    const auto [p, q, r, s] = orders;
    Evidence* a = cuts[0].below;
    Evidence* b = cuts[1].below;
    Evidence* c = cuts[2].below;
    Evidence* d = cuts[3].below;
    Pack2 A{}, B{}, C{}, D{};
    std::size_t i = 0;
    const auto step = [&](const std::span<const Ranked<Index>>& order, Pack2& sum, Evidence*& to) {
        sum = sum + detail::pack(evidence[order[i].row]);
        detail::unpack(sum, *to);
        to += order[i].rank < order[i + 1].rank;
    };
    for (; i + 1 < shortest; ++i) {
        step(p, A, a);
        step(q, B, b);
        step(r, C, c);
        step(s, D, d);
    }
    const std::array<const Evidence*, sums_at_a_time> ends{a, b, c, d};
    const std::array<Pack2, sums_at_a_time> sums{A, B, C, D};
    for (std::size_t j = 0; j < sums_at_a_time; ++j) {
        cuts[j].count = static_cast<std::size_t>(ends[j] - cuts[j].below);
        detail::unpack(sums[j], cuts[j].sum);
        detail::add_up_rest(evidence, orders[j], i, cuts[j]);
    }
}

}  // namespace caltree
