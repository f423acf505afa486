// Splits by histograms: what the rows of a node say about a correction, added up bin by bin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bins.hpp"
#include "chunk.hpp"
#include "residual.hpp"
#include "simd.hpp"

namespace caltree {

// The histograms of one node stand side by side: of every attribute all bins, then missing values.
struct HistogramShape {
    std::span<const std::int32_t> n_bins;  // of each attribute, or categories
    std::size_t n_states = 1;

    std::size_t evidence() const { return EvidenceShape{n_states}.size(); }
    std::size_t cells() const {
        std::size_t sum = 0;
        for (const std::int32_t count : n_bins) sum += static_cast<std::size_t>(count) + 1;
        return sum;
    }
    std::size_t size() const { return cells() * evidence(); }
    // Where each attribute begins.
    std::vector<std::size_t> starts() const {
        std::vector<std::size_t> result;
        std::size_t at = 0;
        for (const std::int32_t count : n_bins) {
            result.push_back(at);
            at += (static_cast<std::size_t>(count) + 1) * evidence();
        }
        return result;
    }
};

class HistogramBuilder {
  public:
    HistogramBuilder(const Chunk& chunk, Sight& sight, const Units& units,
                     const HistogramShape& shape)
        : chunk_(chunk),
          sight_(sight),
          units_(units),
          shape_(shape),
          starts_(shape.starts()),
          evidence_(shape.evidence()) {}

    // Adds to `result`, slots x shape.size().
    void add(const Positions& positions, const Slots& slots, Whole* result) {
        for (std::size_t tree = 0; tree < positions.n_trees; ++tree) {
            if (!slots.any(tree)) continue;
            sort_rows(positions, tree, slots);
            if (chunk_.narrow != nullptr) {
                add(chunk_.narrow, slots, result);
            } else {
                add(chunk_.wide, slots, result);
            }
        }
    }

  private:
    static constexpr std::size_t ahead = 64;

    // The rows of a node side by side, so that one histogram at a time is in the cache.
    void sort_rows(const Positions& positions, std::size_t tree, const Slots& slots) {
        begin_.assign(slots.count + 1, 0);
        slot_.resize(chunk_.n_rows());
        for (std::size_t row = 0; row < chunk_.n_rows(); ++row) {
            const bool out = Positions::holds_out(tree, chunk_.fold[row]);
            slot_[row] = out ? -1 : slots.slot(tree, positions.node(tree, row));
            if (slot_[row] >= 0) ++begin_[static_cast<std::size_t>(slot_[row]) + 1];
        }
        for (std::size_t s = 0; s < slots.count; ++s) begin_[s + 1] += begin_[s];
        rows_.resize(begin_.back());
        next_.assign(begin_.begin(), begin_.end() - 1);
        for (std::size_t row = 0; row < chunk_.n_rows(); ++row) {
            if (slot_[row] < 0) continue;
            rows_[next_[static_cast<std::size_t>(slot_[row])]++] = static_cast<Row>(row);
        }
    }

    template <class Code>
    void add(const Code* codes, const Slots& slots, Whole* result) {
        for (std::size_t s = 0; s < slots.count; ++s) {
            const double* parameters = slots.parameters + s * sight_.n_parameters();
            Whole* to = result + s * shape_.size();
            for (std::size_t i = begin_[s]; i < begin_[s + 1]; ++i) {
                if (i + ahead < rows_.size()) fetch(codes, rows_[i + ahead]);
                sight_.add(chunk_, rows_[i], parameters);
                if (sight_.is_full() || i + 1 == begin_[s + 1]) add_up(codes, to);
            }
        }
    }

    // The rows of a node lie far apart: the next ones are sent for while others are worked on.
    template <class Code>
    void fetch(const Code* codes, Row row) const {
        const Code* first = codes + std::size_t{row} * chunk_.n_attributes;
        prefetch(first);
        prefetch(first + chunk_.n_attributes - 1);
        prefetch(chunk_.scores + std::size_t{row} * sight_.n_scores());
        prefetch(chunk_.labels.data() + row);
    }

    template <class Code>
    void add_up(const Code* codes, Whole* to) {
        sight_.predict();
        for (std::size_t i = 0; i < sight_.size(); ++i) {
            weigh(i);
            const Code* row = codes + sight_.row(i) * chunk_.n_attributes;
            if (shape_.n_states == 1) {  // the most frequent case, unrolled
                add_one_state(row, to);
            } else {
                add_states(row, to);
            }
        }
        sight_.clear();
    }

    // What a row says: its weight, then for each state the residual and its variance.
    void weigh(std::size_t i) {
        const double weight = chunk_.weight(sight_.row(i));
        const std::size_t label = chunk_.labels[sight_.row(i)];
        evidence_[0] = whole(weight, units_.plain);
        for (std::size_t j = 0; j < shape_.n_states; ++j) {
            const double p = sight_.probability(i, j);
            evidence_[1 + 2 * j] = whole(weight * sight_.residual(i, label, j), units_.plain);
            evidence_[2 + 2 * j] = whole(weight * p * (1.0 - p), units_.plain);
        }
    }

    template <class Code>
    void add_one_state(const Code* row, Whole* to) const {
        const Whole weight = evidence_[0], residual = evidence_[1], variance = evidence_[2];
        for (std::size_t a = 0; a < chunk_.n_attributes; ++a) {
            Whole* cell = to + starts_[a] + std::size_t{row[a]} * 3;
            cell[0] += weight;
            cell[1] += residual;
            cell[2] += variance;
        }
    }

    template <class Code>
    void add_states(const Code* row, Whole* to) const {
        for (std::size_t a = 0; a < chunk_.n_attributes; ++a) {
            Whole* cell = to + starts_[a] + std::size_t{row[a]} * evidence_.size();
            for (std::size_t t = 0; t < evidence_.size(); ++t) cell[t] += evidence_[t];
        }
    }

    const Chunk& chunk_;
    Sight& sight_;
    Units units_;
    HistogramShape shape_;
    std::vector<std::size_t> starts_, begin_, next_;
    std::vector<std::int32_t> slot_;
    std::vector<Row> rows_;
    std::vector<Whole> evidence_;
};

// The best splits of several nodes, a row each; `branches` has those of nominal attributes, by
// category, side by side.
struct BestSplits {
    std::vector<std::int32_t> attribute;  // -1: none
    std::vector<double> gain, missing_rows;
    std::vector<std::int32_t> cut, missing, table, table_size, branches;
};

class SplitSearch {
  public:
    SplitSearch(const HistogramShape& shape, std::span<const std::uint8_t> numeric,
                const ResidualSettings& settings, double unit)
        : shape_(shape), starts_(shape.starts()), unit_(unit) {
        for (std::size_t a = 0; a < numeric.size(); ++a) {
            BinnedColumn column;
            column.n_bins = static_cast<std::size_t>(shape.n_bins[a]);
            column.numeric = numeric[a] != 0;
            columns_.push_back(std::move(column));
        }
        finder_.emplace(columns_, EvidenceShape{shape.n_states}, settings);
    }

    void find(const Whole* histograms, BestSplits& result) {
        sums_.resize(shape_.size());
        for (std::size_t t = 0; t < sums_.size(); ++t) {
            sums_[t] = static_cast<double>(histograms[t]) / unit_;
        }
        const ResidualSplit best = finder_->find(sums_, starts_);
        result.attribute.push_back(best.attribute);
        result.gain.push_back(best.gain);
        result.missing_rows.push_back(best.missing_rows);
        result.cut.push_back(static_cast<std::int32_t>(best.cut));
        result.missing.push_back(best.missing_first ? 0 : 1);
        const bool nominal =
            best.found() && !columns_[static_cast<std::size_t>(best.attribute)].numeric;
        result.table.push_back(nominal ? static_cast<std::int32_t>(result.branches.size()) : -1);
        result.table_size.push_back(0);
        if (nominal) divide_categories(best, result);
    }

  private:
    // Categories that no row here has go where most rows go, or where missing ones do.
    void divide_categories(const ResidualSplit& best, BestSplits& result) const {
        const auto a = static_cast<std::size_t>(best.attribute);
        const std::size_t first = result.branches.size();
        result.table_size.back() = static_cast<std::int32_t>(columns_[a].n_bins);
        for (std::size_t bin = 0; bin < columns_[a].n_bins; ++bin) {
            const bool any = sums_[starts_[a] + bin * shape_.evidence()] > 0.0;
            result.branches.push_back(any ? 1 : result.missing.back());
        }
        for (const Bin bin : best.first_categories) result.branches[first + bin] = 0;
    }

    HistogramShape shape_;
    std::vector<std::size_t> starts_;
    double unit_;
    std::vector<BinnedColumn> columns_;
    std::optional<ResidualFinder> finder_;
    std::vector<double> sums_;
};

}  // namespace caltree
