// The bindings of the published method.
#include "bindings/bindings.hpp"
#include "data/folds.hpp"
#include "published/grow.hpp"
#include "published/iterations.hpp"
#include "published/model_fitter.hpp"

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
    const Released released;
    return grow(training.data(), checked, {min_samples_split, min_samples_leaf, max_depth});
}

Criterion criterion(bool counts_wrong_rows) {
    return counts_wrong_rows ? Criterion::wrong_rows : Criterion::squared_error;
}

BoostingPath boosting_path(const Training& training, const Array<Row>& train,
                           const Array<Row>& test, bool counts_wrong_rows) {
    require(train.shape(0) > 0 && test.shape(0) > 0, "both parts of a fold need rows");
    const Data& data = training.data();
    return {data, Fold{training.rows(train), training.rows(test)},
            Model(data.n_classes, data.n_scores), criterion(counts_wrong_rows)};
}

std::pair<std::size_t, nb::object> choose(const std::vector<BoostingPath*>& paths,
                                          std::size_t most) {
    IterationChoice choice;
    {
        const Released released;
        choice = choose_iterations(paths.size(), most,
                                   [&](std::size_t f) -> BoostingPath& { return *paths[f]; });
    }
    return {choice.best, to_numpy(std::move(choice.sums))};
}

void make_model_fitter(ModelFitter* self, const Training& training, const Structure& tree,
                       const Array<Row>& rows, const Array<Row>& held_out,
                       std::optional<std::size_t> iterations, std::size_t max_iterations,
                       std::size_t n_folds, bool constant_scores_give_frequencies,
                       bool keep_parameters, bool counts_wrong_rows) {
    require(n_folds >= 2, "at least 2 folds");
    const std::vector<Row> train = training.rows(rows);
    const std::vector<Row> test = training.rows(held_out);
    ModelSettings settings;
    settings.iterations = iterations;
    settings.max_iterations = max_iterations;
    settings.n_folds = n_folds;
    settings.criterion = criterion(counts_wrong_rows);
    settings.keep_parameters = keep_parameters;
    settings.constant_scores =
        constant_scores_give_frequencies ? ConstantScores::frequencies : ConstantScores::keep_model;
    new (self) ModelFitter(training.data(), tree, settings, train, test);
}

}  // namespace

void caltree::bind_published(nb::module_& m) {
    using namespace nb::literals;
    nb::class_<BoostingPath>(m, "BoostingPath")
        .def("run_ahead", &BoostingPath::run_ahead, "most"_a, "margin"_a,
             nb::call_guard<Released>());
    m.def("folds", &folds, "labels"_a, "rows"_a, "n_folds"_a);
    m.def("grow", &grow_structure, "training"_a, "rows"_a, "min_samples_split"_a,
          "min_samples_leaf"_a, "max_depth"_a);
    m.def("boosting_path", &boosting_path, "training"_a, "train"_a, "test"_a,
          "counts_wrong_rows"_a = false, nb::keep_alive<0, 1>());
    m.def("choose_iterations", &choose, "paths"_a, "most"_a);
    nb::class_<ModelFitter>(m, "ModelFitter")
        .def("__init__", &make_model_fitter, "training"_a, "tree"_a, "rows"_a, "held_out"_a,
             "iterations"_a.none(), "max_iterations"_a, "n_folds"_a,
             "constant_scores_give_frequencies"_a, "keep_parameters"_a,
             "counts_wrong_rows"_a = false, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
        .def("fit_top", &ModelFitter::fit_top, "most_rows"_a, nb::call_guard<Released>())
        .def("fit_part", &ModelFitter::fit_part, "part"_a, nb::call_guard<Released>())
        .def("take", &ModelFitter::take);
}
