// The bindings of the published method and of prediction.
#include "bindings/bindings.hpp"
#include "data/folds.hpp"
#include "published/grow.hpp"
#include "published/iterations.hpp"
#include "published/models.hpp"
#include "tree/collapse.hpp"
#include "tree/prune.hpp"

using namespace caltree;

namespace {

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
    return {to_numpy(std::move(result.alpha)), to_numpy(std::move(result.held_out))};
}

// Whether each node is still split when the tree is pruned at `alpha`, if that is given.
nb::object inner_nodes(const Structure& tree, const NodeModels& models,
                       std::optional<double> alpha) {
    require(models.error.size() == tree.size(), "the node models are of another tree");
    std::vector<std::uint8_t> inner(tree.size(), 0);
    {
        const nb::gil_scoped_release release;
        std::optional<Pruner> pruner;
        if (alpha) {
            pruner.emplace(tree, models);
            pruner->prune(*alpha);
        }
        for (std::size_t v = 0; v < tree.size(); ++v) {
            inner[v] =
                !tree.is_leaf(v) && (!pruner || (pruner->is_inner(v) && !pruner->is_gone(v)));
        }
    }
    return to_numpy(std::move(inner));
}

// The nodes that some level of the tree needs, as arrays. The levels: `sizes`, below which nodes
// are leaves, and the tree as it is pruned at `alpha`, if that is given; shares: one a level.
nb::dict finished_tree(const Structure& tree, const NodeModels& models, std::optional<double> alpha,
                       const Array<double>& sizes, const Array<double>& shares) {
    require(models.error.size() == tree.size(), "the node models are of another tree");
    require(!models.coefficients.empty(), "the node models keep no coefficients");
    require(shares.shape(0) == sizes.shape(0) + 1, "one share a level");
    FinishedTree result;
    {
        const nb::gil_scoped_release release;
        std::optional<Pruner> pruner;
        if (alpha) {
            pruner.emplace(tree, models);
            pruner->prune(*alpha);
        }
        const auto pruned = [&](std::size_t v) {
            return !pruner || (pruner->is_inner(v) && !pruner->is_gone(v));
        };
        result = finished(tree, models, Levels(tree, view(sizes), view(shares), pruned));
    }
    const std::size_t n_nodes = result.tree.size();
    const std::size_t width = result.coefficients.size() / n_nodes;
    nb::dict arrays;
    arrays["attribute"] = to_numpy(std::move(result.tree.attribute));
    arrays["threshold"] = to_numpy(std::move(result.tree.threshold));
    arrays["first_child"] = to_numpy(std::move(result.tree.first_child));
    arrays["n_children"] = to_numpy(std::move(result.tree.n_children));
    arrays["missing"] = to_numpy(std::move(result.tree.missing));
    arrays["missing_rows"] = to_numpy(std::move(result.tree.missing_rows));
    arrays["table"] = to_numpy(std::move(result.tree.table));
    arrays["branches"] = to_numpy(std::move(result.tree.branches));
    arrays["n_rows"] = to_numpy(std::move(result.tree.n_rows));
    arrays["gain"] = to_numpy(std::move(result.tree.gain));
    arrays["weight"] = to_numpy(std::move(result.weight));
    arrays["coefficients"] = to_numpy(std::move(result.coefficients), {n_nodes, width});
    return arrays;
}

// A fitted tree as plain arrays, ready to predict.
class PredictorHandle {
  public:
    PredictorHandle(RouteArrays routes, Array<double> weight, Models models)
        : routes_(std::move(routes)),
          weight_(std::move(weight)),
          models_(std::move(models)),
          tree_{routes_.view(),
                view(weight_),
                {models_.data(), models_.size()},
                models_.shape(1),
                models_.shape(2) - 1} {
        require(models_.shape(0) == routes_.n_nodes() && weight_.shape(0) == routes_.n_nodes(),
                "one entry a node");
        require(models_.shape(1) >= 2 && models_.shape(2) >= 1, "at least 2 classes");
        routes_.check(0);
    }

    nb::object apply(const Matrix& matrix) const {
        require(matrix.shape(1) == routes_.n_attributes(), "the matrix has another width");
        std::vector<std::int32_t> leaves(matrix.shape(0));
        {
            const Table table = table_of(matrix);
            const nb::gil_scoped_release release;
            const Predictor predictor(tree_);
            for (std::size_t i = 0; i < leaves.size(); ++i) leaves[i] = predictor.leaf(table, i);
        }
        return to_numpy(std::move(leaves));
    }

    nb::object probabilities(const Matrix& matrix, const ColumnMajor& scores,
                             const std::optional<ColumnMajor>& offset) const {
        require(matrix.shape(1) == routes_.n_attributes(), "the matrix has another width");
        require(matrix.shape(0) == scores.shape(0), "scores and matrix differ in length");
        require(scores.shape(1) == tree_.n_scores, "scores has another width");
        check_offset(offset, matrix.shape(0), tree_.n_classes);
        std::vector<double> result(matrix.shape(0) * tree_.n_classes);
        {
            const Table table = table_of(matrix);
            const nb::gil_scoped_release release;
            Predictor(tree_).probabilities(table, scores.data(), offset ? offset->data() : nullptr,
                                           result.data());
        }
        return to_numpy(std::move(result), {matrix.shape(0), tree_.n_classes});
    }

  private:
    RouteArrays routes_;
    Array<double> weight_;
    Models models_;
    FittedTree tree_;
};

}  // namespace

NB_MODULE(_core, m) {
    using namespace nb::literals;
    // What a module still holds when Python ends is no leak, and no news to its user.
    nb::set_leak_warnings(false);
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
        .def(
            "__init__",
            [](PredictorHandle* self, Array<std::int32_t> attribute, Array<double> threshold,
               Array<std::int32_t> first_child, Array<std::int32_t> n_children,
               Array<std::int32_t> missing, Array<std::int32_t> table, Array<std::int32_t> branches,
               Array<std::int32_t> n_categories, Array<double> weight, Models models) {
                new (self) PredictorHandle(
                    {std::move(attribute), std::move(threshold), std::move(first_child),
                     std::move(n_children), std::move(missing), std::move(table),
                     std::move(branches), std::move(n_categories)},
                    std::move(weight), std::move(models));
            },
            "attribute"_a, "threshold"_a, "first_child"_a, "n_children"_a, "missing"_a, "table"_a,
            "branches"_a, "n_categories"_a, "weight"_a, "coefficients"_a)
        .def("apply", &PredictorHandle::apply, "matrix"_a)
        .def("probabilities", &PredictorHandle::probabilities, "matrix"_a, "scores"_a,
             "offset"_a.none() = nb::none());

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
    m.def("inner_nodes", &inner_nodes, "tree"_a, "models"_a, "alpha"_a.none());
    m.def("finished_tree", &finished_tree, "tree"_a, "models"_a, "alpha"_a.none(), "sizes"_a,
          "shares"_a);
    bind_local(m);
    bind_chunks(m);
}
