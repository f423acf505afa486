// The bindings of the trees of shrunken node models, alone and in forests.
#include "bindings/bindings.hpp"
#include "data/bins.hpp"
#include "shrunken/grower.hpp"
#include "tree/forest.hpp"

using namespace caltree;

namespace {

// What growing such trees needs beyond the training data.
class LocalTraining {
  public:
    LocalTraining(const Training& training, const std::optional<ColumnMajor>& offset,
                  std::size_t max_bins, bool all_scores)
        : training_(training) {
        const Data& data = training.data();
        require(max_bins >= 2 && max_bins <= most_bins, "between 2 and 65534 bins");
        require(data.n_classes == 2 || data.n_scores % data.n_classes == 0, "one score a class");
        check_offset(offset, data.n_rows(), data.n_classes);
        const nb::gil_scoped_release release;
        columns_ = binned(data.columns, data.weights, max_bins);
        for (std::size_t c = 0; c < data.n_scores; ++c) {
            const ColumnView view{data.score_column(c), 1};
            const Column column = numeric_column(view, data.n_rows(), 0.0);
            columns_.push_back(binned_numeric(column, data.weights, max_bins));
        }
        regressors_ = regressors(data, offset ? offset->data() : nullptr, all_scores);
    }
    LocalTraining(const LocalTraining&) = delete;
    LocalTraining& operator=(const LocalTraining&) = delete;

    // A tree on some rows, and its node models; held-out rows are judged on the way.
    std::pair<Structure, NodeModels> grow(const Array<Row>& rows, const Array<Row>& held_out,
                                          double penalty, double min_samples_split,
                                          double min_samples_leaf, std::size_t max_depth,
                                          bool log_loss, const Structure* given) const {
        const std::vector<Row> train = training_.rows(rows);
        const std::vector<Row> test = training_.rows(held_out);
        const Data& data = training_.data();
        LocalSettings settings;
        settings.penalty = penalty;
        settings.min_samples_split = min_samples_split;
        settings.min_samples_leaf = min_samples_leaf;
        settings.max_depth = max_depth;
        settings.objective = log_loss ? Objective::deviance : Objective::squared_error;
        const nb::gil_scoped_release release;
        std::vector<double> weights(data.n_rows());
        for (std::size_t i = 0; i < weights.size(); ++i)
            weights[i] = data.weight(static_cast<Row>(i));
        LocalGrower grower(data, attributes(), regressors_, weights, settings);
        LocalTree tree = grower.grow(train, test, given);
        return {std::move(tree.structure), std::move(tree.models)};
    }

    // A tree on a bootstrap sample, the rows it left out, and what it says about them for each
    // of the sizes.
    std::tuple<Structure, NodeModels, nb::object, nb::object> bagged(
        std::uint64_t seed, bool splits_on_scores, double penalty, const Array<double>& sizes,
        double min_samples_leaf, std::size_t max_depth, std::size_t max_features) const {
        require(sizes.shape(0) > 0 && max_features > 0, "at least one size and attribute");
        const Data& data = training_.data();
        LocalSettings settings;
        settings.penalty = penalty;
        settings.sizes.assign(sizes.data(), sizes.data() + sizes.shape(0));
        settings.min_samples_split = settings.sizes.back();
        settings.min_samples_leaf = min_samples_leaf;
        settings.max_depth = max_depth;
        settings.max_features = max_features;
        LocalTree tree;
        Bootstrap sample;
        {
            const nb::gil_scoped_release release;
            Random random(seed);
            sample = bootstrap(data, random);
            settings.seed = random.next();
            const auto columns =
                splits_on_scores ? std::span<const BinnedColumn>(columns_) : attributes();
            LocalGrower grower(data, columns, regressors_, sample.weights, settings);
            tree = grower.grow(sample.in_bag, sample.out_of_bag);
            judge_splits(tree.structure, tree.models);
        }
        const std::vector<std::size_t> shape{sizes.shape(0), sample.out_of_bag.size(),
                                             regressors_.n_states};
        nb::object rows = to_numpy(std::move(sample.out_of_bag));
        nb::object predictions = to_numpy(std::move(tree.predictions), shape);
        return {std::move(tree.structure), std::move(tree.models), std::move(rows),
                std::move(predictions)};
    }

  private:
    std::span<const BinnedColumn> attributes() const {
        return std::span(columns_).first(training_.data().columns.columns.size());
    }

    const Training& training_;
    std::vector<BinnedColumn> columns_;  // of the attributes, then of the scores
    Regressors regressors_;
};

// A fitted forest as plain arrays, ready to predict.
class ForestHandle {
  public:
    ForestHandle(RouteArrays routes, Array<double> weight, Models parameters,
                 Array<std::int32_t> roots)
        : routes_(std::move(routes)),
          weight_(std::move(weight)),
          parameters_(std::move(parameters)),
          roots_(std::move(roots)),
          forest_{routes_.view(), view(weight_),        {parameters_.data(), parameters_.size()},
                  view(roots_),   parameters_.shape(1), parameters_.shape(2)} {
        check();
    }

    // What the trees say, added up: a column a log-odds.
    nb::object add(const Matrix& matrix, const ColumnMajor& scores,
                   const std::optional<ColumnMajor>& offset) const {
        const ForestPredictor predictor(forest_);
        require(matrix.shape(1) == routes_.n_attributes(), "the matrix has another width");
        require(matrix.shape(0) == scores.shape(0), "scores and matrix differ in length");
        require(scores.shape(1) == predictor.n_scores(), "scores has another width");
        check_offset(offset, matrix.shape(0), forest_.n_states == 1 ? 2 : forest_.n_states);
        std::vector<double> result(matrix.shape(0) * forest_.n_states, 0.0);
        {
            const Table table = table_of(matrix);
            const nb::gil_scoped_release release;
            predictor.add(table, scores.data(), offset ? offset->data() : nullptr, result.data());
        }
        return to_numpy(std::move(result), {matrix.shape(0), forest_.n_states});
    }

  private:
    void check() const {
        require(forest_.n_states >= 1 && forest_.width >= 2, "at least one log-odds and score");
        routes_.check(forest_.n_states * (forest_.width - 1));
        require(weight_.shape(0) == routes_.n_nodes() && parameters_.shape(0) == routes_.n_nodes(),
                "one entry a node");
        for (const std::int32_t root : view(roots_)) {
            require(root >= 0 && static_cast<std::size_t>(root) < routes_.n_nodes(),
                    "a root is out of range");
        }
    }

    RouteArrays routes_;
    Array<double> weight_;
    Models parameters_;
    Array<std::int32_t> roots_;
    FittedForest forest_;
};

}  // namespace

void caltree::bind_local(nb::module_& m) {
    using namespace nb::literals;
    nb::class_<LocalTraining>(m, "LocalTraining")
        .def(nb::init<const Training&, const std::optional<ColumnMajor>&, std::size_t, bool>(),
             "training"_a, "offset"_a.none(), "max_bins"_a, "all_scores"_a, nb::keep_alive<1, 2>())
        .def("grow", &LocalTraining::grow, "rows"_a, "held_out"_a, "penalty"_a,
             "min_samples_split"_a, "min_samples_leaf"_a, "max_depth"_a, "log_loss"_a,
             "given"_a.none() = nb::none())
        .def("bagged", &LocalTraining::bagged, "seed"_a, "splits_on_scores"_a, "penalty"_a,
             "sizes"_a, "min_samples_leaf"_a, "max_depth"_a, "max_features"_a);
    nb::class_<ForestHandle>(m, "ForestPredictor")
        .def(
            "__init__",
            [](ForestHandle* self, Array<std::int32_t> attribute, Array<double> threshold,
               Array<std::int32_t> first_child, Array<std::int32_t> n_children,
               Array<std::int32_t> missing, Array<std::int32_t> table, Array<std::int32_t> branches,
               Array<std::int32_t> n_categories, Array<double> weight, Models parameters,
               Array<std::int32_t> roots) {
                new (self)
                    ForestHandle({std::move(attribute), std::move(threshold),
                                  std::move(first_child), std::move(n_children), std::move(missing),
                                  std::move(table), std::move(branches), std::move(n_categories)},
                                 std::move(weight), std::move(parameters), std::move(roots));
            },
            "attribute"_a, "threshold"_a, "first_child"_a, "n_children"_a, "missing"_a, "table"_a,
            "branches"_a, "n_categories"_a, "weight"_a, "parameters"_a, "roots"_a)
        .def("add", &ForestHandle::add, "matrix"_a, "scores"_a, "offset"_a.none());
}
