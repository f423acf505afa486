// Splits that look for miscalibration: the gain in deviance over the node's own model.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "data/bins.hpp"
#include "data/data.hpp"
#include "data/stop.hpp"
#include "kernels/simd.hpp"
#include "shrunken/bin_sums.hpp"
#include "shrunken/one_state.hpp"

namespace caltree {

// What a set of rows says about a correction of its log-odds: weight, then for each state the sums
// of the residuals and of their variances.
struct EvidenceShape {
    std::size_t n_states = 1;

    std::size_t size() const { return 1 + 2 * n_states; }
    // From row to row, and from bin to bin, if sums are to be made of whole vectors.
    std::size_t stride() const { return (size() + 3) / 4 * 4; }

    // The deviance that a penalised Newton step would gain, times 2.
    double gain(const double* sums, double penalty) const {
        double total = 0.0;
        for (std::size_t j = 0; j < n_states; ++j) {
            const double residuals = sums[1 + 2 * j];
            total += residuals * residuals / (sums[2 + 2 * j] + penalty);
        }
        return total;
    }
};

struct ResidualSplit {
    int attribute = -1;  // -1: no split
    double gain = 0.0;
    bool by_code = true;                // whether rows of bins up to the cut go to the first child
    std::size_t cut = 0;                // if so
    std::vector<Bin> first_categories;  // or else these go to the first child
    bool missing_first = false;         // where missing values go
    double missing_rows = 0.0;

    bool found() const { return attribute >= 0; }

    // Writes the children of categories; `branches` begins with 1 for those that some row has, and
    // with the child of missing values for the others.
    void divide(std::span<std::int32_t> branches) const {
        for (std::size_t bin = 0; by_code && bin < branches.size(); ++bin) {
            branches[bin] = bin <= cut ? 0 : 1;
        }
        for (const Bin bin : first_categories) branches[bin] = 0;
    }
};

// With many categories some division into two always looks good: sorted by what they ask for, the
// better half of K useless ones gains 2 K / pi, and other rows lose as much. Each beyond the first
// few must pay for both. The noise of bootstrap samples is twice that, but averages take some of it
// back: the second number was measured. What is gained by chance spreads about its mean as the root
// of K, and the best of many nodes is well above it.
inline constexpr double free_categories = 4.0;
inline constexpr double cost_of_a_category = 1.3;
inline constexpr double cost_of_a_bagged_category = 1.8;
inline constexpr double cost_of_spread = 2.5;  // times the root
// What a category asks for is held at nothing as by so many rows: a few rows of it prove little.
inline constexpr double prior_rows = 20.0;
// Codes may have an order that means something. Cut in that order, as numbers are, they gain little
// by chance, however many there are.
inline constexpr double cost_of_code_order = 5.0;
// Where there are more than two classes, what one gains by chance others lose.
inline constexpr double cost_of_more_states = 1.5;

struct ResidualSettings {
    double penalty = 0.1;
    double min_samples_leaf = 2.0;
    double cost_of_a_category = caltree::cost_of_a_category;
    // Of the rows of the tree that is asked for. Trees of folds have fewer rows to show what a
    // category gains; for as much as it costs all rows, they would leave out what that tree has.
    double share_of_rows = 1.0;
};

class ResidualFinder {
  public:
    // `by_row`: the codes of at least these columns, by row.
    ResidualFinder(std::span<const BinnedColumn> columns, EvidenceShape shape,
                   const ResidualSettings& settings, const RowCodes* by_row = nullptr)
        : by_row_(by_row),
          columns_(columns),
          shape_(shape),
          settings_(settings),
          node_(shape.size()),
          bins_(shape.stride()),
          has_gaps_(columns.size(), 0) {}

    // `evidence`: of every row, in the order of `rows`, shape.stride() numbers each.
    ResidualSplit find(std::span<const Row> rows, std::span<const double> evidence,
                       std::span<const std::size_t> attributes) {
        add_up(rows.size(), evidence);
        const bool copied = copy_codes(rows);
        ResidualSplit best;
        for (const std::size_t a : attributes) {
            if (columns_[a].n_bins < 1) continue;
            stop_check_.count(rows.size());
            const Codes codes = copied ? Codes{columns_[a].n_bins, &copied_[a * copied_stride],
                                               std::span(numbers_).first(rows.size())}
                                       : Codes{columns_[a].n_bins, columns_[a].codes.data(), rows};
            if (shape_.n_states == 1 && columns_[a].numeric) {
                if (scan_numbers(a, codes, evidence, best)) continue;
            }
            if (rows.size() * 8 >= columns_[a].n_bins) {
                collect_bins(codes, evidence);
                scan(a, best);
                bins_.clear(columns_[a].n_bins);
            } else {
                collect_sorted(codes, evidence);
                scan(a, best);
            }
        }
        return best;
    }

    // From sums by bin, whole numbers of `1 / unit`. `visit_cells(a, take)` calls `take(bin, sums)`
    // for the bins of an attribute that have rows, in ascending order, and for missing values.
    template <class VisitCells>
    ResidualSplit find(VisitCells&& visit_cells, double unit, double share_of_rows) {
        settings_.share_of_rows = share_of_rows;
        keep_cells(0, visit_cells, unit);
        node_ = missing_;
        for (const Cell& cell : cells_) {
            for (std::size_t t = 0; t < node_.size(); ++t) node_[t] += sums_[cell.at + t];
        }
        ResidualSplit best;
        for (std::size_t a = 0; a < columns_.size(); ++a) {
            if (columns_[a].n_bins < 1) continue;
            if (scan_numbers(a, visit_cells, unit, best)) continue;
            keep_cells(a, visit_cells, unit);
            scan(a, best);
        }
        return best;
    }

  private:
    // Up to so many rows, codes are copied by row, before columns are looked at one by one. Columns
    // of the copy are not a power of two apart, or they would be in each other's way in the cache.
    static constexpr std::size_t most_copied_rows = 4096;
    static constexpr std::size_t copied_stride = most_copied_rows + 32;

    // An attribute: the codes of some rows.
    struct Codes {
        std::size_t n_bins;
        const Bin* codes;
        std::span<const Row> rows;

        Bin operator[](std::size_t i) const { return codes[rows[i]]; }
        std::size_t size() const { return rows.size(); }
    };

    // Whether the codes of the rows are in `copied_` now, one column after the other.
    bool copy_codes(std::span<const Row> rows) {
        if (by_row_ == nullptr || by_row_->codes.empty() || rows.size() > most_copied_rows) {
            return false;
        }
        if (numbers_.empty()) {
            numbers_.resize(most_copied_rows);
            std::iota(numbers_.begin(), numbers_.end(), Row{0});
            copied_.resize(columns_.size() * copied_stride);
        }
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (i + rows_ahead < rows.size()) prefetch(by_row_->of(rows[i + rows_ahead]));
            const Bin* from = by_row_->of(rows[i]);
            Bin* to = copied_.data() + i;
            for (std::size_t a = 0; a < columns_.size(); ++a) to[a * copied_stride] = from[a];
        }
        return true;
    }

    // Of one state, numbers of which none is missing are looked at as they come; otherwise false.
    bool scan_numbers(std::size_t attribute, const Codes& codes, std::span<const double> evidence,
                      ResidualSplit& best) {
        const bool few = codes.size() <= few_rows && codes.n_bins <= most_sorted_bins;
        cuts_.start(codes.n_bins);
        if (few ? !add_few(codes, evidence) : !add_bins(codes, evidence)) return false;
        keep_best_cut(attribute, best);
        return true;
    }

    // The same from sums by bin.
    template <class VisitCells>
    bool scan_numbers(std::size_t attribute, VisitCells&& visit_cells, double unit,
                      ResidualSplit& best) {
        const BinnedColumn& column = columns_[attribute];
        if (shape_.n_states > 1 || !column.numeric || has_gaps_[attribute] != 0) return false;
        const double factor = 1.0 / unit;  // a power of two
        const std::size_t n_bins = column.n_bins;
        bool any_missing = false;
        StateSums left;
        cuts_.start(n_bins);
        visit_cells(attribute, [&](std::size_t bin, const std::int64_t* sums) {
            if (sums[0] <= 0) return;  // rows may have no weight
            if (bin == n_bins) {
                any_missing = true;
                return;
            }
            const std::array<double, 3> scaled{static_cast<double>(sums[0]) * factor,
                                               static_cast<double>(sums[1]) * factor,
                                               static_cast<double>(sums[2]) * factor};
            cuts_.add(bin, scaled.data(), left);
        });
        if (any_missing) {
            has_gaps_[attribute] = 1;  // in other nodes, too, most likely
            return false;
        }
        if (cuts_.size() > 0) keep_best_cut(attribute, best);
        return true;
    }

    // Of an attribute without missing values.
    void keep_best_cut(std::size_t attribute, ResidualSplit& best) {
        const double before = shape_.gain(node_.data(), settings_.penalty);
        const Cut cut = cuts_.best(cuts_.size() - 1, node_sums(), cut_limits(before, best));
        if (!cut.found) return;
        const std::size_t bin = cuts_.bin(cut.place);
        best.attribute = static_cast<int>(attribute);
        best.gain = cut.gain;
        best.by_code = true;
        best.first_categories.clear();
        best.missing_first = cut.rows_left >= node_[0] - cut.rows_left;
        best.missing_rows = 0.0;
        best.cut = halfway(bin, cuts_.bin(cut.place + 1));
    }

    bool add_few(const Codes& codes, std::span<const double> evidence) {
        for (std::size_t i = 0; i < codes.size(); ++i) {
            if (codes[i] == codes.n_bins) return false;
        }
        const FewRows sorted(codes.size(), [&](std::size_t i) { return codes[i]; });
        StateSums left;
        for (std::size_t i = 0; i < codes.size();) {
            const std::size_t bin = sorted.bin(i);
            std::array<double, 3> sums{};
            for (; i < codes.size() && sorted.bin(i) == bin; ++i) {
                const double* from = evidence.data() + sorted.row(i) * shape_.stride();
                for (std::size_t t = 0; t < 3; ++t) sums[t] += from[t];
            }
            cuts_.add(bin, sums.data(), left);
        }
        return true;
    }

    bool add_bins(const Codes& codes, std::span<const double> evidence) {
        if (codes.size() * 8 < codes.n_bins) return false;
        bins_.add(codes.codes, codes.n_bins, codes.rows, evidence);
        const bool any_missing = bins_.sums()[bins_.place(codes.n_bins)] > 0.0;
        cuts_.take(bins_, codes.n_bins);
        return !any_missing;
    }

    StateSums node_sums() const { return {node_[0], node_[1], node_[2]}; }
    CutLimits cut_limits(double before, const ResidualSplit& best) const {
        return {settings_.penalty, settings_.min_samples_leaf, before, best.gain};
    }
    // Through the bins that no row is in.
    static std::size_t halfway(std::size_t bin, std::size_t next) {
        return bin + (next - bin - 1) / 2;
    }

    // One of the different bins among the node's rows, and where its sums stand.
    struct Cell {
        Bin bin;
        std::size_t at;
    };

    // All rows of the node.
    void add_up(std::size_t n_rows, std::span<const double> evidence) {
        std::fill(node_.begin(), node_.end(), 0.0);
        if (shape_.n_states > 1) {
            for (std::size_t i = 0; i < n_rows; ++i) add(node_.data(), evidence, i);
            return;
        }
        StateSums all;  // in registers
        for (std::size_t i = 0; i < n_rows; ++i) {
            const double* from = evidence.data() + i * EvidenceShape{}.stride();
            all.rows += from[0];
            all.residual += from[1];
            all.variance += from[2];
        }
        node_ = {all.rows, all.residual, all.variance};
    }

    void add(double* to, std::span<const double> evidence, std::size_t i) const {
        const double* from = evidence.data() + i * shape_.stride();
        for (std::size_t t = 0; t < shape_.size(); ++t) to[t] += from[t];
    }

    // The sums of each bin, in ascending order; of missing values, if any, apart.
    void collect_bins(const Codes& codes, std::span<const double> evidence) {
        bins_.add(codes.codes, codes.n_bins, codes.rows, evidence);
        sums_ = bins_.sums();
        const double* last = sums_ + bins_.place(codes.n_bins);
        missing_.assign(last, last + shape_.size());
        cells_.clear();
        bins_.for_seen(codes.n_bins, [&](std::size_t bin, std::size_t at) {
            // Rows may have no weight.
            if (sums_[at] > 0.0) cells_.push_back({static_cast<Bin>(bin), at});
        });
    }

    template <class VisitCells>
    void keep_cells(std::size_t attribute, VisitCells&& visit_cells, double unit) {
        const std::size_t size = shape_.size(), n_bins = columns_[attribute].n_bins;
        const double factor = 1.0 / unit;  // a power of two
        cells_.clear();
        sorted_.resize(n_bins * size);
        missing_.assign(size, 0.0);
        double* next = sorted_.data();
        visit_cells(attribute, [&](std::size_t bin, const std::int64_t* sums) {
            double* to = missing_.data();
            if (bin < n_bins) {
                if (sums[0] <= 0) return;  // rows may have no weight
                cells_.push_back({static_cast<Bin>(bin), cells_.size() * size});
                to = next;
                next += size;
            }
            for (std::size_t t = 0; t < size; ++t) to[t] = static_cast<double>(sums[t]) * factor;
        });
        sums_ = sorted_.data();
    }

    void collect_sorted(const Codes& codes, std::span<const double> evidence) {
        cells_.clear();
        missing_.assign(shape_.size(), 0.0);
        keyed_.clear();
        for (std::size_t i = 0; i < codes.size(); ++i) {
            keyed_.push_back(std::uint64_t{codes[i]} << 32 | i);
        }
        std::sort(keyed_.begin(), keyed_.end());
        const std::size_t size = shape_.size();
        sorted_.clear();
        for (const std::uint64_t key : keyed_) {
            const auto bin = static_cast<Bin>(key >> 32);
            const std::size_t i = key & 0xffffffffU;
            if (bin == codes.n_bins) {
                add(missing_.data(), evidence, i);
                continue;
            }
            if (cells_.empty() || cells_.back().bin != bin) {
                cells_.push_back({bin, sorted_.size()});
                sorted_.resize(sorted_.size() + size, 0.0);
            }
            add(sorted_.data() + cells_.back().at, evidence, i);
        }
        sums_ = sorted_.data();
    }

    // By the correction that the state with most to gain asks for: but for the prior, the best
    // division into two is then one of neighbours.
    void order_categories() {
        std::size_t state = 0;
        double most = -1.0;
        for (std::size_t j = 0; j < shape_.n_states; ++j) {
            double sum = 0.0;
            for (const Cell& cell : cells_)
                sum += std::abs(residuals(cell, j) * correction(cell, j));
            if (sum > most) {
                most = sum;
                state = j;
            }
        }
        std::stable_sort(cells_.begin(), cells_.end(), [&](const Cell& a, const Cell& b) {
            return correction(a, state) < correction(b, state);
        });
    }

    double residuals(const Cell& cell, std::size_t j) const { return sums_[cell.at + 1 + 2 * j]; }
    double correction(const Cell& cell, std::size_t j) const {
        const double prior = prior_rows * node_[2 + 2 * j] / node_[0];
        return residuals(cell, j) / (sums_[cell.at + 2 + 2 * j] + settings_.penalty + prior);
    }

    // One pass over the cells in their order.
    struct Pass {
        std::size_t attribute;
        bool by_code;   // whether bins ascend
        double chance;  // what is gained by chance
        bool missing_first = false;
    };

    void scan(std::size_t attribute, ResidualSplit& best) {
        if (cells_.empty()) return;
        if (columns_[attribute].numeric) {
            scan({attribute, true, 0.0}, best);
            return;
        }
        const double times =
            settings_.share_of_rows * (shape_.n_states > 1 ? cost_of_more_states : 1.0);
        const double beyond = std::max(0.0, effective_categories() - free_categories);
        const double chance =
            settings_.cost_of_a_category * beyond + cost_of_spread * std::sqrt(beyond);
        if (chance > cost_of_code_order) {
            scan({attribute, true, times * cost_of_code_order}, best);
        }
        order_categories();
        scan({attribute, false, times * chance}, best);
    }

    // How many categories of as many rows each would gain as much by chance.
    double effective_categories() const {
        double roots = 0.0, rows = 0.0;
        for (const Cell& cell : cells_) {
            roots += std::sqrt(sums_[cell.at]);
            rows += sums_[cell.at];
        }
        return roots * roots / rows;
    }

    void scan(Pass pass, ResidualSplit& best) {
        scan_once(pass, best);
        if (missing_[0] > 0.0) {
            pass.missing_first = true;
            scan_once(pass, best);
        }
    }

    void scan_once(const Pass& pass, ResidualSplit& best) {
        const std::size_t size = shape_.size();
        const double before = shape_.gain(node_.data(), settings_.penalty) + pass.chance;
        left_.assign(size, 0.0);
        right_.resize(size);
        if (pass.missing_first) left_ = missing_;
        const bool any_missing = missing_[0] > 0.0;
        // After the last cell only missing values are left on the other side.
        const std::size_t n_cuts = cells_.size() - (any_missing && !pass.missing_first ? 0 : 1);
        if (shape_.n_states == 1) {
            scan_one_state(pass, n_cuts, before, best);
            return;
        }
        for (std::size_t c = 0; c < n_cuts; ++c) {
            const double* cell = sums_ + cells_[c].at;
            for (std::size_t t = 0; t < size; ++t) left_[t] += cell[t];
            for (std::size_t t = 0; t < size; ++t) right_[t] = node_[t] - left_[t];
            if (left_[0] < settings_.min_samples_leaf) continue;
            if (right_[0] < settings_.min_samples_leaf) break;
            const double gain = shape_.gain(left_.data(), settings_.penalty) +
                                shape_.gain(right_.data(), settings_.penalty) - before;
            if (gain > best.gain + 1e-9) keep(pass, c, gain, best);
        }
    }

    void scan_one_state(const Pass& pass, std::size_t n_cuts, double before, ResidualSplit& best) {
        cuts_.start(cells_.size());
        StateSums left{left_[0], left_[1], left_[2]};
        for (const Cell& cell : cells_) cuts_.add(cell.bin, sums_ + cell.at, left);
        const Cut cut = cuts_.best(n_cuts, node_sums(), cut_limits(before, best));
        if (!cut.found) return;
        left_[0] = cut.rows_left;
        right_[0] = node_[0] - cut.rows_left;
        keep(pass, cut.place, cut.gain, best);
    }

    void keep(const Pass& pass, std::size_t c, double gain, ResidualSplit& best) const {
        best.attribute = static_cast<int>(pass.attribute);
        best.gain = gain;
        best.by_code = pass.by_code;
        best.first_categories.clear();
        const bool any_missing = missing_[0] > 0.0;
        best.missing_first = any_missing ? pass.missing_first : left_[0] >= right_[0];
        best.missing_rows = missing_[0];
        if (!pass.by_code) {
            for (std::size_t k = 0; k <= c; ++k) best.first_categories.push_back(cells_[k].bin);
            return;
        }
        const std::size_t bin = cells_[c].bin;
        best.cut = c + 1 < cells_.size() ? halfway(bin, cells_[c + 1].bin) : bin;
    }

    const RowCodes* by_row_;
    std::vector<Bin> copied_;
    std::vector<Row> numbers_;  // 0, 1, 2, ...
    std::span<const BinnedColumn> columns_;
    EvidenceShape shape_;
    ResidualSettings settings_;
    std::vector<double> node_, missing_, left_, right_;
    BinSums bins_;
    Cuts cuts_;
    std::vector<double> sorted_;          // sums of the bins that have rows
    const double* sums_ = nullptr;        // where those of the cells stand
    std::vector<std::uint8_t> has_gaps_;  // by attribute: whether a node had missing values
    std::vector<Cell> cells_;
    std::vector<std::uint64_t> keyed_;
    StopCheck stop_check_;
};

}  // namespace caltree
