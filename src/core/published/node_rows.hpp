// The rows of one node, gathered side by side.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <vector>

#include "data/data.hpp"
#include "data/stop.hpp"
#include "kernels/kernels.hpp"

namespace caltree {

// Memory that begins where a line of the cache does, so that no vector lies across two.
template <class T>
struct CacheLines {
    using value_type = T;
    static constexpr std::align_val_t line{64};

    CacheLines() = default;
    template <class U>
    CacheLines(const CacheLines<U>&) {}
    T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), line)); }
    void deallocate(T* array, std::size_t) { ::operator delete(array, line); }
    bool operator==(const CacheLines&) const { return true; }
};
using Numbers = std::vector<double, CacheLines<double>>;

// Boosting uses the memory of one node again for the next.
inline void reserve_numbers(Numbers& array, std::size_t size) {
    if (array.size() < size) array.resize(size);
}

class NodeRows {
  public:
    NodeRows(std::size_t n_classes, std::size_t n_scores)
        : m_(n_classes), c_(n_scores), width_(padded(n_scores)), centres_(n_scores) {}

    void load(const Data& data, std::span<const Row> rows) {
        n_rows_ = rows.size();
        n_ = (n_rows_ + widest - 1) / widest * widest;
        total_ = total_weight(data, rows);
        load_labels(data, rows);
        reserve_numbers(columns_, n_ * c_);
        varies_.assign(c_, 0);
        for (std::size_t c = 0; c < c_; ++c) {
            const double* from = data.score_column(c);
            double* to = columns_.data() + c * n_;
            for (std::size_t i = 0; i < n_rows_; ++i) to[i] = from[rows[i]];
            std::fill(to + n_rows_, to + n_, to[n_rows_ - 1]);  // these decide nothing
            std::size_t others = 0;
            for (std::size_t i = 1; i < n_rows_; ++i) others += to[i] != to[0] ? 1 : 0;
            varies_[c] = others > 0 ? 1 : 0;
        }
        any_varies_ = std::any_of(varies_.begin(), varies_.end(), [](auto v) { return v != 0; });
        has_matrix_ = has_centred_matrix_ = false;
    }

    // Sets the scores of a row side by side, for scores(), once they are needed.
    void make_matrix() {
        if (has_matrix_) return;
        has_matrix_ = true;
        fill_matrix(x_, [](std::size_t) { return 0.0; });
    }

    // The same about zero, for centred_scores(): less is lost where sums of squares are
    // differences.
    void make_centred_matrix() {
        if (has_centred_matrix_) return;
        has_centred_matrix_ = true;
        for (std::size_t c = 0; c < c_; ++c) centres_[c] = mean(column(c));
        fill_matrix(centred_, [this](std::size_t c) { return centres_[c]; });
    }

    // Calls `work(first row, number of rows)` for all blocks of rows.
    template <std::size_t most = boosting_rows, class Work>
    void for_blocks(Work&& work) {
        for (std::size_t begin = 0; begin < n_; begin += most) {
            stop_check_.count(most);
            work(begin, std::min(most, n_ - begin));
        }
    }

    std::size_t n_classes() const { return m_; }
    std::size_t n_scores() const { return c_; }
    std::size_t width() const { return width_; }
    std::size_t size() const { return n_rows_; }
    std::size_t padded_size() const { return n_; }
    double total() const { return total_; }
    bool weighted() const { return weighted_; }
    bool tame_weights() const { return tame_weights_; }
    const std::vector<std::size_t>& present() const { return present_; }
    const std::vector<std::size_t>& absent() const { return absent_; }
    bool is_present(std::size_t label) const { return seen_[label] != 0; }
    double label(std::size_t row) const { return labels_[row]; }
    double weight(std::size_t row) const { return weights_[row]; }
    const double* labels(std::size_t begin) const { return labels_.data() + begin; }
    const double* weights(std::size_t begin) const { return weights_.data() + begin; }
    BoostedRows block(std::size_t begin) const { return {labels(begin), weights(begin), n_}; }
    ScoreRows scores(std::size_t begin) const { return {x_.data() + begin * width_, width_}; }
    ScoreRows centred_scores(std::size_t begin) const {
        return {centred_.data() + begin * width_, width_};
    }

    // One score of all rows, as it is; whether it varies; and what it was centred by.
    const double* column(std::size_t score) const { return columns_.data() + score * n_; }
    bool varies(std::size_t score) const { return varies_[score] != 0; }
    bool any_varies() const { return any_varies_; }
    double centre(std::size_t score) const { return centres_[score]; }

  private:
    // Rows are padded to whole vectors, whatever the machine.
    static constexpr std::size_t widest = 8;

    // Whether products with a weight are as far from the smallest numbers as those without.
    static bool is_tame(double weight) {
        return weight == 0.0 || (weight > 0x1p-60 && weight < 0x1p60);
    }

    void load_labels(const Data& data, std::span<const Row> rows) {
        labels_.assign(n_, 0.0);
        weights_.assign(n_, 0.0);
        seen_.assign(m_, 0);
        weighted_ = data.weighted();
        tame_weights_ = true;
        for (std::size_t i = 0; i < n_rows_; ++i) {
            const Label label = data.labels[rows[i]];
            labels_[i] = static_cast<double>(label);
            weights_[i] = data.weight(rows[i]);
            tame_weights_ = tame_weights_ && is_tame(weights_[i]);
            seen_[label] = 1;
        }
        present_.clear();
        absent_.clear();
        for (std::size_t j = 0; j < m_; ++j) (seen_[j] != 0 ? present_ : absent_).push_back(j);
    }

    template <class CentreOf>
    void fill_matrix(Numbers& x, CentreOf&& centre_of) {
        reserve_numbers(x, n_ * width_);
        std::fill_n(x.begin(), n_ * width_, 0.0);
        for (std::size_t c = 0; c < c_; ++c) {
            const double* from = column(c);
            const double centre = centre_of(c);
            for (std::size_t i = 0; i < n_rows_; ++i) x[i * width_ + c] = from[i] - centre;
        }
        for (std::size_t i = 0; i < n_rows_; ++i) x[i * width_ + c_] = 1.0;
    }

    // Of one value alone, that value.
    double mean(const double* column) const {
        double sum = 0.0;
        for (std::size_t i = 0; i < n_rows_; ++i) sum += column[i] - column[0];
        return column[0] + sum / static_cast<double>(n_rows_);
    }

    std::size_t m_, c_, width_;
    std::size_t n_rows_ = 0, n_ = 0;  // without and with the rows that only pad
    double total_ = 0.0;
    Numbers x_, centred_, columns_;  // scores by row, about zero, by column
    std::vector<double> centres_;
    Numbers labels_, weights_;
    std::vector<std::uint8_t> seen_, varies_;
    std::vector<std::size_t> present_, absent_;
    bool weighted_ = false, tame_weights_ = true, any_varies_ = false;
    bool has_matrix_ = false, has_centred_matrix_ = false;
    StopCheck stop_check_;
};

}  // namespace caltree
