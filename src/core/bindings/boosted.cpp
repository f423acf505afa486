// The bindings of boosted trees: prediction.
#include "bindings/bindings.hpp"
#include "tree/predict_boosted.hpp"

using namespace caltree;

namespace {

// Boosted trees as plain arrays, ready to predict.
class BoostedHandle {
  public:
    BoostedHandle(RouteArrays routes, Array<double> value, Array<std::int32_t> roots,
                  Array<std::int32_t> state, RowMajor<double> parameters, std::size_t n_scores,
                  double start, double curve_weight, double boosted_weight)
        : routes_(std::move(routes)),
          value_(std::move(value)),
          roots_(std::move(roots)),
          state_(std::move(state)),
          parameters_(std::move(parameters)),
          trees_{routes_.view(),
                 view(value_),
                 view(roots_),
                 view(state_),
                 {parameters_.data(), parameters_.size()},
                 {parameters_.shape(0), parameters_.shape(1), n_scores},
                 start,
                 curve_weight,
                 boosted_weight},
          predictor_(checked()) {}
    BoostedHandle(const BoostedHandle&) = delete;
    BoostedHandle& operator=(const BoostedHandle&) = delete;

    nb::object probabilities(const Matrix& matrix, const ColumnMajor& scores,
                             const std::optional<ColumnMajor>& offset) const {
        require(matrix.shape(1) == routes_.n_attributes(), "the matrix has another width");
        check_scores(matrix, scores, trees_.shape.n_scores);
        const std::size_t n_classes = trees_.shape.n_classes();
        check_offset(offset, matrix.shape(0), n_classes);
        std::vector<double> result(matrix.shape(0) * n_classes);
        {
            const NewRows rows{table_of(matrix), scores.data(), offset ? offset->data() : nullptr};
            const Released released;
            predictor_.probabilities(rows, result.data());
        }
        return to_numpy(std::move(result), {matrix.shape(0), n_classes});
    }

  private:
    const BoostedTrees& checked() const {
        check_shape(trees_.shape);
        routes_.check(trees_.shape.n_scores);
        routes_.check_roots(roots_);
        require(value_.shape(0) == routes_.n_nodes(), "one entry per node");
        require(state_.shape(0) == roots_.shape(0), "one entry per tree");
        for (std::size_t t = 0; t < roots_.shape(0); ++t) {
            const std::int32_t root = roots_.data()[t];
            require(t == 0 ? root == 0 : root > roots_.data()[t - 1], "roots must rise from 0");
            const std::int32_t state = state_.data()[t];
            require(state >= 0 && static_cast<std::size_t>(state) < trees_.shape.n_states,
                    "a log-odds is out of range");
        }
        for (std::size_t v = 0; v < routes_.n_nodes(); ++v) {
            require(routes_.attribute.data()[v] < 0 || routes_.n_children.data()[v] == 2,
                    "a boosted tree has two children per split");
        }
        return trees_;
    }

    RouteArrays routes_;
    Array<double> value_;
    Array<std::int32_t> roots_, state_;
    RowMajor<double> parameters_;
    BoostedTrees trees_;
    BoostedPredictor predictor_;
};

}  // namespace

void caltree::bind_boosted(nb::module_& m) {
    using namespace nb::literals;
    nb::class_<BoostedHandle>(m, "BoostedPredictor")
        .def(
            "__init__",
            [](BoostedHandle* self, Array<std::int32_t> attribute, Array<double> threshold,
               Array<std::int32_t> first_child, Array<std::int32_t> n_children,
               Array<std::int32_t> missing, Array<std::int32_t> table, Array<std::int32_t> branches,
               Array<std::int32_t> n_categories, Array<double> value, Array<std::int32_t> roots,
               Array<std::int32_t> state, RowMajor<double> parameters, std::size_t n_scores,
               double start, double curve_weight, double boosted_weight) {
                new (self) BoostedHandle(
                    {std::move(attribute), std::move(threshold), std::move(first_child),
                     std::move(n_children), std::move(missing), std::move(table),
                     std::move(branches), std::move(n_categories)},
                    std::move(value), std::move(roots), std::move(state), std::move(parameters),
                    n_scores, start, curve_weight, boosted_weight);
            },
            "attribute"_a, "threshold"_a, "first_child"_a, "n_children"_a, "missing"_a, "table"_a,
            "branches"_a, "n_categories"_a, "value"_a, "roots"_a, "state"_a, "parameters"_a,
            "n_scores"_a, "start"_a, "curve_weight"_a, "boosted_weight"_a)
        .def("probabilities", &BoostedHandle::probabilities, "matrix"_a, "scores"_a,
             "offset"_a.none() = nb::none());
}
