// The only file that knows Python: arrays in, arrays out, sizes checked at the door.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "folds.hpp"
#include "grow.hpp"
#include "iterations.hpp"
#include "models.hpp"
#include "predict.hpp"
#include "prune.hpp"

namespace nb = nanobind;
using namespace caltree;

namespace {

template <class T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>;
using ColumnMajor = nb::ndarray<const double, nb::ndim<2>, nb::f_contig, nb::device::cpu>;

void require(bool holds, const char* what) {
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

Table table_of(const Matrix& matrix) {
    return {matrix.data(), matrix.shape(0), matrix.shape(1), matrix.stride(0), matrix.stride(1)};
}

void check_attributes(const Array<std::int32_t>& n_categories, const Array<double>& fills) {
    require(fills.shape(0) == n_categories.shape(0), "one fill an attribute");
    for (std::size_t a = 0; a < n_categories.shape(0); ++a) {
        const std::int32_t count = n_categories.data()[a];
        const double fill = fills.data()[a];
        require(count >= 0, "numbers of categories must not be negative");
        require(std::isfinite(fill), "fills must be finite");
        require(count == 0 || (fill >= 0.0 && fill < count), "a nominal fill must be a category");
    }
}

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
        require(n_categories.shape(0) == matrix.shape(1), "one number of categories an attribute");
        check_attributes(n_categories, fills);
        require(matrix.shape(0) < (std::size_t{1} << 31), "at most 2^31 - 1 rows");
        const Table table = table_of(matrix);
        const nb::gil_scoped_release release;
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

std::vector<std::pair<nb::object, nb::object>> folds(const Array<Label>& labels,
                                                     const Array<Row>& rows, std::size_t n_folds) {
    require(n_folds >= 2 && n_folds <= rows.shape(0), "between 2 and n folds");
    for (const Row row : view(rows)) require(row < labels.shape(0), "a row is out of range");
    std::vector<std::pair<nb::object, nb::object>> result;
    for (Fold& fold : make_folds(view(labels), view(rows), n_folds)) {
        result.emplace_back(to_numpy(std::move(fold.train)), to_numpy(std::move(fold.test)));
    }
    return result;
}

Structure grow_structure(const Training& training, const Array<Row>& rows, double min_samples_split,
                         double min_samples_leaf, std::size_t max_depth) {
    const std::vector<Row> checked = training.rows(rows);
    const nb::gil_scoped_release release;
    return grow(training.data(), checked, {min_samples_split, min_samples_leaf, max_depth});
}

BoostingPath boosting_path(const Training& training, const Array<Row>& train,
                           const Array<Row>& test) {
    require(train.shape(0) > 0 && test.shape(0) > 0, "both parts of a fold need rows");
    const Data& data = training.data();
    return {data, Fold{training.rows(train), training.rows(test)},
            Model(data.n_classes, data.n_scores)};
}

std::pair<std::size_t, nb::object> choose(const std::vector<BoostingPath*>& paths,
                                          std::size_t most) {
    IterationChoice choice;
    {
        const nb::gil_scoped_release release;
        choice = choose_iterations(paths.size(), most,
                                   [&](std::size_t f) -> BoostingPath& { return *paths[f]; });
    }
    return {choice.best, to_numpy(std::move(choice.sums))};
}

NodeModels fit_models(const Training& training, const Structure& tree, const Array<Row>& rows,
                      const Array<Row>& held_out, std::optional<std::size_t> iterations,
                      std::size_t max_iterations, std::size_t n_folds,
                      bool constant_scores_give_frequencies, bool keep_coefficients) {
    require(n_folds >= 2, "at least 2 folds");
    const std::vector<Row> train = training.rows(rows);
    const std::vector<Row> test = training.rows(held_out);
    ModelSettings settings;
    settings.iterations = iterations;
    settings.max_iterations = max_iterations;
    settings.n_folds = n_folds;
    settings.keep_coefficients = keep_coefficients;
    settings.constant_scores =
        constant_scores_give_frequencies ? ConstantScores::frequencies : ConstantScores::keep_model;
    const nb::gil_scoped_release release;
    return ModelFitter(training.data(), tree, settings).fit(train, test);
}

std::pair<nb::object, nb::object> sequence(const Structure& tree, const NodeModels& models) {
    require(models.error.size() == tree.size(), "the node models are of another tree");
    PruningSequence result;
    {
        const nb::gil_scoped_release release;
        result = pruning_sequence(tree, models);
    }
    return {to_numpy(std::move(result.alpha)), to_numpy(std::move(result.rmse))};
}

// The nodes that stay, as arrays; `alpha` none: all of them.
nb::dict finished_tree(const Structure& tree, const NodeModels& models, std::optional<double> alpha,
                       std::size_t n_classes) {
    require(models.error.size() == tree.size(), "the node models are of another tree");
    const std::size_t width = models.coefficients.size() / tree.size();
    require(width > 0 && width % n_classes == 0, "the node models keep no coefficients");
    std::optional<Pruner> pruner;
    if (alpha) {
        pruner.emplace(tree, models);
        while (pruner->smallest_alpha() <= *alpha) pruner->prune_weakest();
    }
    std::vector<std::int32_t> index(tree.size(), -1);
    std::vector<std::int32_t> attribute, first_child;
    std::vector<double> threshold, n_rows, coefficients;
    for (std::size_t v = 0; v < tree.size(); ++v) {
        if (pruner && pruner->is_gone(v)) continue;
        index[v] = static_cast<std::int32_t>(attribute.size());
        const bool inner = pruner ? pruner->is_inner(v) : !tree.is_leaf(v);
        attribute.push_back(inner ? tree.attribute[v] : -1);
        threshold.push_back(inner ? tree.threshold[v] : 0.0);
        first_child.push_back(-1);
        n_rows.push_back(tree.n_rows[v]);
        const auto from = models.coefficients.begin() + static_cast<std::ptrdiff_t>(v * width);
        coefficients.insert(coefficients.end(), from, from + static_cast<std::ptrdiff_t>(width));
    }
    for (std::size_t v = 0; v < tree.size(); ++v) {
        if (index[v] < 0 || attribute[static_cast<std::size_t>(index[v])] < 0) continue;
        first_child[static_cast<std::size_t>(index[v])] =
            index[static_cast<std::size_t>(tree.first_child[v])];
    }
    const std::size_t n_nodes = attribute.size();
    nb::dict result;
    result["attribute"] = to_numpy(std::move(attribute));
    result["threshold"] = to_numpy(std::move(threshold));
    result["first_child"] = to_numpy(std::move(first_child));
    result["n_rows"] = to_numpy(std::move(n_rows));
    result["coefficients"] =
        to_numpy(std::move(coefficients), {n_nodes, n_classes, width / n_classes});
    return result;
}

// A fitted tree as plain arrays, ready to predict.
class PredictorHandle {
  public:
    PredictorHandle(Array<std::int32_t> attribute, Array<double> threshold,
                    Array<std::int32_t> first_child,
                    nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu> models,
                    Array<std::int32_t> n_categories, Array<double> fills)
        : attribute_(std::move(attribute)),
          threshold_(std::move(threshold)),
          first_child_(std::move(first_child)),
          models_(std::move(models)),
          n_categories_(std::move(n_categories)),
          fills_(std::move(fills)),
          tree_{view(attribute_),    view(threshold_),
                view(first_child_),  {models_.data(), models_.size()},
                view(n_categories_), view(fills_),
                models_.shape(1),    models_.shape(2) - 1} {
        check();
    }

    nb::object apply(const Matrix& matrix) const {
        require(matrix.shape(1) == n_categories_.shape(0), "the matrix has another width");
        std::vector<std::int32_t> leaves(matrix.shape(0));
        {
            const Table table = table_of(matrix);
            const nb::gil_scoped_release release;
            const Predictor predictor(tree_);
            for (std::size_t i = 0; i < leaves.size(); ++i) leaves[i] = predictor.leaf(table, i);
        }
        return to_numpy(std::move(leaves));
    }

    nb::object probabilities(const Matrix& matrix, const ColumnMajor& scores) const {
        require(matrix.shape(1) == n_categories_.shape(0), "the matrix has another width");
        require(matrix.shape(0) == scores.shape(0), "scores and matrix differ in length");
        require(scores.shape(1) == tree_.n_scores, "scores has another width");
        std::vector<double> result(matrix.shape(0) * tree_.n_classes);
        {
            const Table table = table_of(matrix);
            const nb::gil_scoped_release release;
            Predictor(tree_).probabilities(table, scores.data(), result.data());
        }
        return to_numpy(std::move(result), {matrix.shape(0), tree_.n_classes});
    }

  private:
    void check() const {
        const std::size_t n_nodes = tree_.attribute.size();
        const std::size_t n_attributes = tree_.n_categories.size();
        require(n_nodes > 0 && tree_.threshold.size() == n_nodes &&
                    tree_.first_child.size() == n_nodes && models_.shape(0) == n_nodes,
                "one entry a node");
        require(models_.shape(1) >= 2 && models_.shape(2) >= 1, "at least 2 classes");
        check_attributes(n_categories_, fills_);
        for (std::size_t v = 0; v < n_nodes; ++v) {
            if (tree_.attribute[v] < 0) continue;
            const auto a = static_cast<std::size_t>(tree_.attribute[v]);
            require(a < n_attributes, "an attribute is out of range");
            const std::int64_t count = tree_.n_categories[a] > 0 ? tree_.n_categories[a] : 2;
            const std::int64_t first = tree_.first_child[v];
            require(first > static_cast<std::int64_t>(v) &&
                        first + count <= static_cast<std::int64_t>(n_nodes),
                    "a child is out of range");
        }
    }

    Array<std::int32_t> attribute_;
    Array<double> threshold_;
    Array<std::int32_t> first_child_;
    nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu> models_;
    Array<std::int32_t> n_categories_;
    Array<double> fills_;
    FittedTree tree_;
};

}  // namespace

NB_MODULE(_core, m) {
    using namespace nb::literals;
    m.attr("instruction_set") = kernels().name;

    nb::class_<Training>(m, "Training")
        .def(nb::init<Matrix, const Array<std::int32_t>&, const Array<double>&, Array<Label>,
                      std::size_t, ColumnMajor, std::optional<Array<double>>>(),
             "matrix"_a, "n_categories"_a, "fills"_a, "labels"_a, "n_classes"_a, "scores"_a,
             "weights"_a.none());
    nb::class_<Structure>(m, "Structure").def("__len__", &Structure::size);
    nb::class_<BoostingPath>(m, "BoostingPath")
        .def("run_ahead", &BoostingPath::run_ahead, "most"_a, "margin"_a,
             nb::call_guard<nb::gil_scoped_release>());
    nb::class_<NodeModels>(m, "NodeModels");
    nb::class_<PredictorHandle>(m, "Predictor")
        .def(nb::init<Array<std::int32_t>, Array<double>, Array<std::int32_t>,
                      nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>,
                      Array<std::int32_t>, Array<double>>(),
             "attribute"_a, "threshold"_a, "first_child"_a, "coefficients"_a, "n_categories"_a,
             "fills"_a)
        .def("apply", &PredictorHandle::apply, "matrix"_a)
        .def("probabilities", &PredictorHandle::probabilities, "matrix"_a, "scores"_a);

    m.def("folds", &folds, "labels"_a, "rows"_a, "n_folds"_a);
    m.def("grow", &grow_structure, "training"_a, "rows"_a, "min_samples_split"_a,
          "min_samples_leaf"_a, "max_depth"_a);
    m.def("boosting_path", &boosting_path, "training"_a, "train"_a, "test"_a,
          nb::keep_alive<0, 1>());
    m.def("choose_iterations", &choose, "paths"_a, "most"_a);
    m.def("fit_models", &fit_models, "training"_a, "tree"_a, "rows"_a, "held_out"_a,
          "iterations"_a.none(), "max_iterations"_a, "n_folds"_a,
          "constant_scores_give_frequencies"_a, "keep_coefficients"_a);
    m.def("pruning_sequence", &sequence, "tree"_a, "models"_a);
    m.def("finished_tree", &finished_tree, "tree"_a, "models"_a, "alpha"_a.none(), "n_classes"_a);
}
