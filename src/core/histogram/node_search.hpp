// Splits of nodes whose rows are all at hand: histograms one attribute at a time, in the cache.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/stop.hpp"
#include "histogram/chunk.hpp"
#include "histogram/histogram.hpp"

namespace caltree {

// Sums of one attribute by bin, of which those with rows are marked.
class WholeBins {
  public:
    explicit WholeBins(std::size_t per_cell) : per_cell_(per_cell) {}

    // `codes` and `evidence`, per_cell numbers, of every row.
    template <class Code>
    void add(const Code* codes, std::size_t n_rows, std::size_t n_cells, const Whole* evidence) {
        n_cells_ = n_cells;
        if (sums_.size() < n_cells * per_cell_) sums_.resize(n_cells * per_cell_, 0);
        if (seen_.size() < words()) seen_.resize(words(), 0);
        if (per_cell_ == 3) {  // the most frequent case, unrolled
            add_rows<3>(codes, n_rows, evidence);
        } else {
            add_rows<0>(codes, n_rows, evidence);
        }
    }

    // Calls `visit(bin, sums)` for every bin that has rows, in ascending order, and empties it.
    template <class Visit>
    void take(Visit&& visit) {
        if (per_cell_ == 3) {
            take_bins<3>(visit);
        } else {
            take_bins<0>(visit);
        }
    }

  private:
    static constexpr std::size_t word = 64;

    std::size_t words() const { return n_cells_ / word + 1; }

    // `known`: per_cell, or 0.
    template <std::size_t known, class Visit>
    void take_bins(Visit& visit) {
        const std::size_t size = known > 0 ? known : per_cell_;
        for (std::size_t w = 0; w < words(); ++w) {
            for (std::uint64_t left = seen_[w]; left != 0; left &= left - 1) {
                const std::size_t bin = w * word + static_cast<std::size_t>(std::countr_zero(left));
                Whole* sums = sums_.data() + bin * size;
                visit(bin, sums);
                for (std::size_t t = 0; t < size; ++t) sums[t] = 0;
            }
            seen_[w] = 0;
        }
    }

    template <std::size_t known, class Code>
    void add_rows(const Code* codes, std::size_t n_rows, const Whole* from) {
        const std::size_t size = known > 0 ? known : per_cell_;
        for (std::size_t i = 0; i < n_rows; ++i, from += size) {
            const std::size_t bin = codes[i];
            seen_[bin / word] |= std::uint64_t{1} << bin % word;
            Whole* cell = sums_.data() + bin * size;
            for (std::size_t t = 0; t < size; ++t) cell[t] += from[t];
        }
    }

    std::size_t per_cell_, n_cells_ = 0;
    std::vector<Whole> sums_;
    std::vector<std::uint64_t> seen_;  // a bit a bin
};

// The best splits of nodes, all rows of which are in one chunk: those of their histograms, which
// need not exist as a whole.
class NodeSearch {
  public:
    NodeSearch(const Chunk& chunk, Sight& sight, const Units& units, const HistogramShape& shape,
               SplitSearch&& search)
        : chunk_(chunk),
          sight_(sight),
          units_(units),
          shape_(shape),
          search_(std::move(search)),
          bins_(shape.per_cell) {}

    void find(const Positions& positions, const Slots& slots, std::span<const double> shares,
              BestSplits& result) {
        sort(positions, slots);
        for (std::size_t s = 0; s < slots.count; ++s) {
            stop_check_.count(rows_[s].size() * chunk_.n_attributes);
            weigh_rows(rows_[s], slots.parameters + s * sight_.n_parameters());
            if (chunk_.narrow != nullptr) {
                find(chunk_.narrow, rows_[s], narrow_, shares[s], result);
            } else {
                find(chunk_.wide, rows_[s], wide_, shares[s], result);
            }
        }
    }

  private:
    static constexpr std::size_t tile = 32;  // attributes whose codes are at hand

    void sort(const Positions& positions, const Slots& slots) {
        rows_.assign(slots.count, {});
        SortedRows sorted;
        for (std::size_t tree = 0; tree < positions.n_trees; ++tree) {
            if (!slots.any(tree)) continue;
            sorted.sort(chunk_, positions, tree, slots);
            for (std::size_t s = 0; s < slots.count; ++s) {
                const auto begin = sorted.rows.begin();
                rows_[s].insert(rows_[s].end(),
                                begin + static_cast<std::ptrdiff_t>(sorted.begin[s]),
                                begin + static_cast<std::ptrdiff_t>(sorted.begin[s + 1]));
            }
        }
    }

    void weigh_rows(std::span<const Row> rows, const double* parameters) {
        evidence_.resize(rows.size() * shape_.per_cell);
        Whole* to = evidence_.data();
        for (std::size_t i = 0; i < rows.size(); ++i) {
            sight_.add(chunk_, rows[i], parameters);
            if (!sight_.is_full() && i + 1 < rows.size()) continue;
            sight_.predict();
            for (std::size_t k = 0; k < sight_.size(); ++k, to += shape_.per_cell) {
                weigh(chunk_, sight_, k, units_.plain, to);
            }
            sight_.clear();
        }
    }

    template <class Code>
    void find(const Code* codes, std::span<const Row> rows, std::vector<Code>& columns,
              double share_of_rows, BestSplits& result) {
        columns.resize(tile * rows.size());
        std::size_t at_hand = chunk_.n_attributes;  // the first attribute of the tile; none yet
        const auto visit = [&](std::size_t a, auto&& take) {
            const std::size_t first = a / tile * tile;
            if (first != at_hand) {
                at_hand = first;
                transpose(codes + first, rows, std::min(tile, chunk_.n_attributes - first),
                          columns.data());
            }
            const Code* column = columns.data() + (a - first) * rows.size();
            bins_.add(column, rows.size(), shape_.cells(a), evidence_.data());
            bins_.take(take);
        };
        search_.find(visit, share_of_rows, result);
    }

    template <class Code>
    void transpose(const Code* from, std::span<const Row> rows, std::size_t count, Code* to) const {
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const Code* row = from + std::size_t{rows[i]} * chunk_.n_attributes;
            for (std::size_t a = 0; a < count; ++a) to[a * rows.size() + i] = row[a];
        }
    }

    const Chunk& chunk_;
    Sight& sight_;
    Units units_;
    HistogramShape shape_;
    SplitSearch search_;
    WholeBins bins_;
    std::vector<std::vector<Row>> rows_;  // of each slot
    std::vector<Whole> evidence_;         // of the rows of a node
    std::vector<std::uint8_t> narrow_;    // codes of a few attributes, one after the other
    std::vector<std::uint16_t> wide_;
    StopCheck stop_check_;
};

}  // namespace caltree
