// The published folds: rows grouped by class, dealt out like cards, cut into blocks.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "data/data.hpp"

namespace caltree {

struct Fold {
    std::vector<Row> train;
    std::vector<Row> test;
};

// The rows in dealt order.
inline std::vector<Row> deal(std::span<const Label> labels, std::span<const Row> rows,
                             std::size_t n_folds) {
    std::vector<Row> grouped(rows.begin(), rows.end());
    const std::size_t n = grouped.size();
    for (std::size_t free = 0; free < n;) {
        const Label label = labels[grouped[free++]];
        for (std::size_t i = free; i < n; ++i) {
            if (labels[grouped[i]] == label) std::swap(grouped[i], grouped[free++]);
        }
    }
    std::vector<Row> dealt;
    dealt.reserve(n);
    for (std::size_t first = 0; first < n_folds; ++first) {
        for (std::size_t i = first; i < n; i += n_folds) dealt.push_back(grouped[i]);
    }
    return dealt;
}

inline std::vector<Fold> make_folds(std::span<const Label> labels, std::span<const Row> rows,
                                    std::size_t n_folds) {
    const std::vector<Row> dealt = deal(labels, rows, n_folds);
    std::vector<Fold> folds(n_folds);
    auto begin = dealt.begin();
    for (std::size_t f = 0; f < n_folds; ++f) {
        const std::size_t size = dealt.size() / n_folds + (f < dealt.size() % n_folds ? 1 : 0);
        const auto end = begin + static_cast<std::ptrdiff_t>(size);
        folds[f].test.assign(begin, end);
        folds[f].train.assign(dealt.begin(), begin);
        folds[f].train.insert(folds[f].train.end(), end, dealt.end());
        begin = end;
    }
    return folds;
}

}  // namespace caltree
