// What all bindings share: arrays in, arrays out, sizes checked at the door.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bindings/released.hpp"
#include "data/columns.hpp"
#include "data/data.hpp"
#include "tree/predict.hpp"

namespace caltree {

namespace nb = nanobind;

template <class T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Indices = Array<std::int32_t>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>;
template <class T>
using RowMajor = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ColumnMajor = nb::ndarray<const double, nb::ndim<2>, nb::f_contig, nb::device::cpu>;

inline void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

template <class T>
std::span<const T> view(const Array<T>& array) {
    return {array.data(), array.shape(0)};
}

// Hands a vector over to numpy, which frees it.
template <class T>
nb::object to_numpy(std::vector<T>&& values, std::vector<std::size_t> shape = {}) {
    auto* owned = new std::vector<T>(std::move(values));
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    if (shape.empty()) shape = {owned->size()};
    return nb::cast(nb::ndarray<nb::numpy, T>(owned->data(), shape.size(), shape.data(), owner));
}

inline Table table_of(const Matrix& matrix) {
    return {matrix.data(), matrix.shape(0), matrix.shape(1), matrix.stride(0), matrix.stride(1)};
}

inline void check_attributes(const Array<std::int32_t>& n_categories, const Array<double>& fills) {
    require(fills.shape(0) == n_categories.shape(0), "one fill per attribute");
    for (std::size_t a = 0; a < n_categories.shape(0); ++a) {
        const std::int32_t count = n_categories.data()[a];
        const double fill = fills.data()[a];
        require(count >= 0, "numbers of categories must not be negative");
        require(std::isfinite(fill), "fills must be finite");
        require(count == 0 || (fill >= 0.0 && fill < count), "a nominal fill must be a category");
    }
}

using Models = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

inline void check_offset(const std::optional<ColumnMajor>& offset, std::size_t n_rows,
                         std::size_t n_classes) {
    require(!offset || (offset->shape(0) == n_rows &&
                        offset->shape(1) == (n_classes == 2 ? 1 : n_classes)),
            "the offset has another shape");
}

inline void check_scores(const Matrix& matrix, const ColumnMajor& scores, std::size_t n_scores) {
    require(matrix.shape(0) == scores.shape(0), "scores and matrix differ in length");
    require(scores.shape(1) == n_scores, "scores has another width");
}

inline void check_shape(const ModelShape& shape) {
    require(shape.n_states >= 1 && shape.n_states != 2 && shape.width >= 1,
            "one log-odds, or at least three");
    require(shape.sees_all() || shape.n_states * (shape.width - 1) == shape.n_scores,
            "a log-odds sees all scores or its own");
}

// Where rows go, and everything that keeps its arrays alive.
struct RouteArrays {
    Array<std::int32_t> attribute;
    Array<double> threshold;
    Array<std::int32_t> first_child, n_children, missing, table, branches, n_categories;

    std::size_t n_nodes() const { return attribute.shape(0); }
    std::size_t n_attributes() const { return n_categories.shape(0); }

    Routes view() const {
        return {caltree::view(attribute),   caltree::view(threshold), caltree::view(first_child),
                caltree::view(missing),     caltree::view(table),     caltree::view(branches),
                caltree::view(n_categories)};
    }

    // A split may also be on one of some scores, whose numbers follow those of the attributes.
    void check(std::size_t n_scores) const {
        const std::size_t n = n_nodes();
        require(n > 0 && threshold.shape(0) == n && first_child.shape(0) == n &&
                    n_children.shape(0) == n && missing.shape(0) == n && table.shape(0) == n,
                "one entry per node");
        for (std::size_t v = 0; v < n; ++v) check_node(v, n_scores);
    }

    void check_roots(const Array<std::int32_t>& roots) const {
        require(roots.shape(0) > 0, "at least one tree");
        for (const std::int32_t root : caltree::view(roots)) {
            require(root >= 0 && static_cast<std::size_t>(root) < n_nodes(),
                    "a root is out of range");
        }
    }

  private:
    void check_node(std::size_t v, std::size_t n_scores) const {
        if (attribute.data()[v] < 0) return;
        const auto a = static_cast<std::size_t>(attribute.data()[v]);
        require(a < n_attributes() + n_scores, "an attribute is out of range");
        const std::int64_t count = n_children.data()[v];
        const std::int64_t first = first_child.data()[v];
        require(count >= 2 && first > static_cast<std::int64_t>(v) &&
                    first + count <= static_cast<std::int64_t>(n_nodes()),
                "a child is out of range");
        const auto is_child = [count](std::int32_t b) { return b >= 0 && b < count; };
        require(is_child(missing.data()[v]), "missing values go to no child");
        const std::int64_t categories = a < n_attributes() ? n_categories.data()[a] : 0;
        require(categories >= 0, "numbers of categories must not be negative");
        const std::int64_t begin = table.data()[v];
        if (categories == 0) return;
        require(begin >= 0 && begin + categories <= static_cast<std::int64_t>(branches.shape(0)),
                "categories are out of range");
        for (std::int64_t c = begin; c < begin + categories; ++c) {
            require(is_child(branches.data()[c]), "a category goes to no child");
        }
    }
};

// The training data, and everything that keeps its arrays alive.
class Training {
  public:
    Training(Matrix matrix, const Array<std::int32_t>& n_categories, const Array<double>& fills,
             Array<Label> labels, std::size_t n_classes, ColumnMajor scores,
             std::optional<Array<double>> weights)
        : matrix_(std::move(matrix)),
          columns_(encode(matrix_, n_categories, fills)),
          labels_(std::move(labels)),
          scores_(std::move(scores)),
          weights_(std::move(weights)),
          data_{columns_, view(labels_), {}, scores_.data(), scores_.shape(1), n_classes} {
        if (weights_) data_.weights = view(*weights_);
        check();
    }
    Training(const Training&) = delete;
    Training& operator=(const Training&) = delete;

    const Data& data() const { return data_; }

    // Row numbers as the core wants them, each checked.
    std::vector<Row> rows(const Array<Row>& array) const {
        for (const Row row : view(array)) {
            require(row < data_.n_rows(), "a row number is out of range");
        }
        return {array.data(), array.data() + array.shape(0)};
    }

  private:
    static Columns encode(const Matrix& matrix, const Array<std::int32_t>& n_categories,
                          const Array<double>& fills) {
        require(n_categories.shape(0) == matrix.shape(1), "one number of categories per attribute");
        check_attributes(n_categories, fills);
        require(matrix.shape(0) < (std::size_t{1} << 31), "at most 2^31 - 1 rows");
        const Table table = table_of(matrix);
        const Released released;
        Columns columns;
        columns.n_rows = table.n_rows;
        for (std::size_t a = 0; a < table.n_columns; ++a) {
            const auto count = static_cast<std::uint32_t>(n_categories.data()[a]);
            const double fill = fills.data()[a];
            columns.columns.push_back(
                count > 0 ? nominal_column(table.column(a), table.n_rows, count, fill)
                          : numeric_column(table.column(a), table.n_rows, fill));
        }
        return columns;
    }

    void check() const {
        require(data_.n_rows() == columns_.n_rows, "labels and matrix differ in length");
        require(scores_.shape(0) == columns_.n_rows, "scores and matrix differ in length");
        require(!weights_ || weights_->shape(0) == columns_.n_rows,
                "weights and matrix differ in length");
        require(data_.n_rows() > 0 && data_.n_scores > 0, "there must be rows and scores");
        require(data_.n_classes >= 2 && data_.n_classes <= std::numeric_limits<Label>::max(),
                "the number of classes must lie between 2 and 65535");
        for (const Label label : data_.labels) {
            require(label < data_.n_classes, "a class index is out of range");
        }
        for (const double weight : data_.weights) {
            require(weight > 0.0 && std::isfinite(weight), "weights must be positive");
        }
        for (std::size_t i = 0; i < data_.n_rows() * data_.n_scores; ++i) {
            require(std::isfinite(data_.scores[i]), "scores must be finite");
        }
    }

    Matrix matrix_;
    Columns columns_;
    Array<Label> labels_;
    ColumnMajor scores_;
    std::optional<Array<double>> weights_;
    Data data_;
};

void bind_binning(nb::module_& m);
void bind_boosted(nb::module_& m);
void bind_histogram(nb::module_& m);
void bind_learners(nb::module_& m);
void bind_published(nb::module_& m);
void bind_shrunken(nb::module_& m);
void bind_tree(nb::module_& m);

}  // namespace caltree
