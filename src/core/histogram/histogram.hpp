// Splits by histograms: what the rows of a node say about a correction, added up bin by bin.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/bins.hpp"
#include "data/stop.hpp"
#include "histogram/chunk.hpp"
#include "kernels/simd.hpp"
#include "shrunken/residual_split.hpp"

namespace caltree {

// The histograms of one node stand side by side: of every attribute all bins, then missing values.
struct HistogramShape {
    std::span<const std::int32_t> n_bins;  // of each attribute, or categories
    std::size_t per_cell = 3;              // numbers that are added up in each bin

    std::size_t cells(std::size_t attribute) const {
        return static_cast<std::size_t>(n_bins[attribute]) + 1;
    }
    std::size_t size() const {
        std::size_t sum = 0;
        for (std::size_t a = 0; a < n_bins.size(); ++a) sum += cells(a);
        return sum * per_cell;
    }
    // Where each attribute begins.
    std::vector<std::size_t> starts() const {
        std::vector<std::size_t> result;
        std::size_t at = 0;
        for (std::size_t a = 0; a < n_bins.size(); ++a) {
            result.push_back(at);
            at += cells(a) * per_cell;
        }
        return result;
    }
};

// The training rows of a tree, those of a node side by side, so that one histogram at a time is in
// the cache.
struct SortedRows {
    std::vector<Row> rows;
    std::vector<std::size_t> begin;  // of each slot, and the end

    void sort(const Chunk& chunk, const Positions& positions, std::size_t tree,
              const Slots& slots) {
        begin.assign(slots.count + 1, 0);
        slot_.resize(chunk.n_rows());
        for (std::size_t row = 0; row < chunk.n_rows(); ++row) {
            const bool out = Positions::holds_out(tree, chunk.fold[row]);
            slot_[row] = out ? -1 : slots.slot(tree, positions.node(tree, row));
            if (slot_[row] >= 0) ++begin[static_cast<std::size_t>(slot_[row]) + 1];
        }
        for (std::size_t s = 0; s < slots.count; ++s) begin[s + 1] += begin[s];
        rows.resize(begin.back());
        next_.assign(begin.begin(), begin.end() - 1);
        for (std::size_t row = 0; row < chunk.n_rows(); ++row) {
            if (slot_[row] < 0) continue;
            rows[next_[static_cast<std::size_t>(slot_[row])]++] = static_cast<Row>(row);
        }
    }

  private:
    std::vector<std::int32_t> slot_;
    std::vector<std::size_t> next_;
};

// What the i-th row in sight says: its weight, then for each state the residual and its variance.
inline void weigh(const Chunk& chunk, const Sight& sight, std::size_t i, double unit, Whole* to) {
    const double weight = chunk.weight(sight.row(i));
    const std::size_t label = chunk.labels[sight.row(i)];
    to[0] = whole(weight, unit);
    for (std::size_t j = 0; j < sight.n_states(); ++j) {
        const double p = sight.probability(i, j);
        to[1 + 2 * j] = whole(weight * sight.residual(i, label, j), unit);
        to[2 + 2 * j] = whole(weight * p * (1.0 - p), unit);
    }
}

class HistogramBuilder {
  public:
    HistogramBuilder(const Chunk& chunk, Sight& sight, const Units& units,
                     const HistogramShape& shape)
        : chunk_(chunk), sight_(sight), units_(units), shape_(shape), starts_(shape.starts()) {}

    // Adds to `result`, slots x shape.size(): what the rows of each bin say about a correction.
    void add_evidence(const Positions& positions, const Slots& slots, Whole* result) {
        each_tree(positions, slots, [&](const auto* codes) { add_evidence(codes, slots, result); });
    }

  private:
    static constexpr std::size_t ahead = 64;
    static constexpr std::size_t tile = 32;  // attributes whose codes are at hand

    template <class Add>
    void each_tree(const Positions& positions, const Slots& slots, Add&& add) {
        for (std::size_t tree = 0; tree < positions.n_trees; ++tree) {
            if (!slots.any(tree)) continue;
            sorted_.sort(chunk_, positions, tree, slots);
            if (chunk_.narrow != nullptr) {
                add(chunk_.narrow);
            } else {
                add(chunk_.wide);
            }
        }
    }

    // The rows of a node lie far apart: the next ones are sent for while others are worked on.
    template <class Code>
    void fetch(const Code* codes, std::size_t i) const {
        if (i + ahead >= sorted_.rows.size()) return;
        const std::size_t row = sorted_.rows[i + ahead];
        const Code* first = codes + row * chunk_.n_attributes;
        prefetch(first);
        prefetch(first + chunk_.n_attributes - 1);
        prefetch(chunk_.scores + row * sight_.n_scores());
        prefetch(chunk_.labels.data() + row);
    }

    template <class Code>
    void add_evidence(const Code* codes, const Slots& slots, Whole* result) {
        for (std::size_t s = 0; s < slots.count; ++s) {
            const double* parameters = slots.parameters + s * sight_.n_parameters();
            Whole* to = result + s * size_;
            for (std::size_t i = sorted_.begin[s]; i < sorted_.begin[s + 1]; ++i) {
                fetch(codes, i);
                sight_.add(chunk_, sorted_.rows[i], parameters);
                if (sight_.is_full() || i + 1 == sorted_.begin[s + 1]) add_up(codes, to);
            }
        }
    }

    // The rows in sight are added up an attribute at a time, whose histogram is in the cache then.
    template <class Code>
    void add_up(const Code* codes, Whole* to) {
        sight_.predict();
        const std::size_t n = sight_.size();
        evidence_.resize(n * shape_.per_cell);
        for (std::size_t i = 0; i < n; ++i) {
            weigh(chunk_, sight_, i, units_.plain, evidence_.data() + i * shape_.per_cell);
        }
        std::array<Code, tile * block_rows> columns;
        for (std::size_t begin = 0; begin < chunk_.n_attributes; begin += tile) {
            const std::size_t count = std::min(tile, chunk_.n_attributes - begin);
            for (std::size_t i = 0; i < n; ++i) {
                const Code* row = codes + sight_.row(i) * chunk_.n_attributes + begin;
                for (std::size_t a = 0; a < count; ++a) columns[a * block_rows + i] = row[a];
            }
            for (std::size_t a = 0; a < count; ++a) {
                const Code* column = columns.data() + a * block_rows;
                if (shape_.per_cell == 3) {  // the most frequent case, unrolled
                    add_one_state(column, n, to + starts_[begin + a]);
                } else {
                    add_states(column, n, to + starts_[begin + a]);
                }
            }
        }
        sight_.clear();
    }

    template <class Code>
    void add_one_state(const Code* column, std::size_t n, Whole* to) const {
        const Whole* from = evidence_.data();
        for (std::size_t i = 0; i < n; ++i, from += 3) {
            Whole* cell = to + std::size_t{column[i]} * 3;
            cell[0] += from[0];
            cell[1] += from[1];
            cell[2] += from[2];
        }
    }

    template <class Code>
    void add_states(const Code* column, std::size_t n, Whole* to) const {
        const std::size_t size = shape_.per_cell;
        const Whole* from = evidence_.data();
        for (std::size_t i = 0; i < n; ++i, from += size) {
            Whole* cell = to + std::size_t{column[i]} * size;
            for (std::size_t t = 0; t < size; ++t) cell[t] += from[t];
        }
    }

    const Chunk& chunk_;
    Sight& sight_;
    Units units_;
    HistogramShape shape_;
    std::size_t size_ = shape_.size();
    std::vector<std::size_t> starts_;
    SortedRows sorted_;
    std::vector<Whole> evidence_;  // of the rows in sight
};

// The best splits of several nodes, a row each; `branches` has those of nominal attributes, by
// category, side by side.
struct BestSplits {
    std::vector<std::int32_t> attribute;  // -1: none
    std::vector<double> gain, missing_rows;
    std::vector<std::int32_t> cut, n_children, missing, table, table_size, branches;

    void add(int chosen, double gained, std::size_t last, std::size_t children) {
        attribute.push_back(chosen);
        gain.push_back(gained);
        cut.push_back(static_cast<std::int32_t>(last));
        n_children.push_back(static_cast<std::int32_t>(children));
        missing.push_back(0);
        missing_rows.push_back(0.0);
        table.push_back(-1);
        table_size.push_back(0);
    }
    void begin_table(std::size_t n_categories) {
        table.back() = static_cast<std::int32_t>(branches.size());
        table_size.back() = static_cast<std::int32_t>(n_categories);
    }
};

// Residual splits.
class SplitSearch {
  public:
    SplitSearch(const HistogramShape& shape, std::span<const std::uint8_t> numeric,
                std::size_t n_states, const ResidualSettings& settings, double unit)
        : shape_(shape), starts_(shape.starts()), unit_(unit) {
        for (std::size_t a = 0; a < numeric.size(); ++a) {
            BinnedColumn column;
            column.n_bins = static_cast<std::size_t>(shape.n_bins[a]);
            column.numeric = numeric[a] != 0;
            columns_.push_back(std::move(column));
        }
        finder_.emplace(columns_, EvidenceShape{n_states}, settings);
    }

    // From the histograms of one node.
    void find(const Whole* histograms, double share_of_rows, BestSplits& result) {
        const auto visit = [&](std::size_t a, auto&& take) {
            const Whole* sums = histograms + starts_[a];
            for (std::size_t bin = 0; bin < shape_.cells(a); ++bin, sums += shape_.per_cell) {
                take(bin, sums);
            }
        };
        find(visit, share_of_rows, result);
    }

    // From the cells that `visit` visits: see `ResidualFinder`.
    template <class Visit>
    void find(Visit&& visit, double share_of_rows, BestSplits& result) {
        const ResidualSplit best = finder_->find(visit, unit_, share_of_rows);
        result.add(best.attribute, best.gain, best.cut, 2);
        result.missing_rows.back() = best.missing_rows;
        result.missing.back() = best.missing_first ? 0 : 1;
        if (best.found() && !columns_[static_cast<std::size_t>(best.attribute)].numeric) {
            divide_categories(best, visit, result);
        }
    }

  private:
    // Unless codes are cut in their order, categories that no row here has go where most rows go,
    // or where missing ones do.
    template <class Visit>
    void divide_categories(const ResidualSplit& best, Visit&& visit, BestSplits& result) const {
        const auto a = static_cast<std::size_t>(best.attribute);
        const std::size_t first = result.branches.size(), n_bins = columns_[a].n_bins;
        result.begin_table(n_bins);
        result.branches.resize(first + n_bins, result.missing.back());
        visit(a, [&](std::size_t bin, const Whole* sums) {
            if (bin < n_bins && sums[0] > 0) result.branches[first + bin] = 1;
        });
        best.divide(std::span(result.branches).subspan(first));
    }

    HistogramShape shape_;
    std::vector<std::size_t> starts_;
    double unit_;
    std::vector<BinnedColumn> columns_;
    std::optional<ResidualFinder> finder_;
};

}  // namespace caltree
