// The bindings of trees: their making from arrays, pruning, collapsing and prediction.
#include "bindings/bindings.hpp"
#include "tree/collapse.hpp"
#include "tree/fitted_nodes.hpp"
#include "tree/predict.hpp"
#include "tree/prune.hpp"
#include "tree/structure.hpp"

using namespace caltree;

namespace {

std::pair<nb::object, nb::object> sequence(const Structure& tree, const FittedNodes& nodes) {
    require(nodes.error.size() == tree.size(), "the node models are of another tree");
    PruningSequence result;
    {
        const Released released;
        result = pruning_sequence(tree, nodes);
    }
    return {to_numpy(std::move(result.alpha)), to_numpy(std::move(result.held_out))};
}

// When pruning reaches each node: see `PruningOrder`.
std::pair<nb::object, nb::object> order(const Structure& tree, const FittedNodes& nodes,
                                        double least_gain) {
    require(nodes.error.size() == tree.size(), "the node models are of another tree");
    PruningOrder result;
    {
        const Released released;
        result = pruning_order(tree, nodes, least_gain);
    }
    return {to_numpy(std::move(result.strength)), to_numpy(std::move(result.leaves))};
}

// The weight of the training rows of each node.
nb::object row_counts(const Structure& tree) {
    std::vector<double> counts = tree.n_rows;
    return to_numpy(std::move(counts));
}

// The nodes that some level of the tree needs, as arrays. A level splits the nodes whose rank is
// not below its `lowest`, and has a share in what the tree says.
nb::dict collapse_tree(const Structure& tree, const FittedNodes& nodes, const Array<double>& rank,
                       const Array<double>& lowest, const Array<double>& shares) {
    require(nodes.error.size() == tree.size(), "the node models are of another tree");
    require(!nodes.parameters.empty(), "the node models keep no parameters");
    require(rank.shape(0) == tree.size(), "one rank per node");
    require(shares.shape(0) == lowest.shape(0), "one share per level");
    CollapsedTree result;
    {
        const Released released;
        result = collapse(tree, nodes, Levels(tree, view(rank), view(lowest), view(shares)));
    }
    const std::size_t n_nodes = result.tree.size();
    const std::size_t width = result.parameters.size() / n_nodes;
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
    arrays["parameters"] = to_numpy(std::move(result.parameters), {n_nodes, width});
    return arrays;
}

// What the splits on each attribute gain on held-out rows, by levels as for `collapse_tree`.
nb::object held_out_gains_of(const Structure& tree, const FittedNodes& nodes,
                             const Array<double>& rank, const Array<double>& lowest,
                             const Array<double>& shares, std::size_t n_attributes) {
    require(nodes.held_out_error.size() == tree.size(), "the node models are of another tree");
    require(rank.shape(0) == tree.size(), "one rank per node");
    require(shares.shape(0) == lowest.shape(0), "one share per level");
    const Levels levels(tree, view(rank), view(lowest), view(shares));
    return to_numpy(held_out_gains(tree, nodes, levels, n_attributes));
}

std::vector<std::int32_t> copied(const Indices& array) {
    return {array.data(), array.data() + array.shape(0)};
}
std::vector<double> copied(const Array<double>& array) {
    return {array.data(), array.data() + array.shape(0)};
}

void check_children(const Structure& tree, std::size_t v, std::size_t n_nodes) {
    const std::int64_t children = tree.n_children[v];
    const std::int64_t first = tree.first_child[v];
    if (tree.is_leaf(v)) {
        require(children == 0, "a leaf has no children");
        return;
    }
    require(children > 0 && first > static_cast<std::int64_t>(v) &&
                first + children <= static_cast<std::int64_t>(n_nodes),
            "a child is out of range");
    const auto is_child = [children](std::int32_t b) { return b >= 0 && b < children; };
    require(is_child(tree.missing[v]), "missing values go to no child");
    if (tree.table[v] < 0) return;
    const std::int64_t begin = tree.table[v];
    const std::int64_t end = begin + tree.table_size[v];
    require(end >= begin && end <= static_cast<std::int64_t>(tree.branches.size()),
            "categories are out of range");
    for (std::int64_t c = begin; c < end; ++c) {
        require(is_child(tree.branches[static_cast<std::size_t>(c)]),
                "a category goes to no child");
    }
}

// A tree that was grown elsewhere, and its node models.
std::pair<Structure, FittedNodes> assemble_tree(
    const Indices& attribute, const Array<double>& threshold, const Indices& parent,
    const Indices& first_child, const Indices& n_children, const Array<double>& n_rows,
    const Array<double>& gain, const Indices& missing, const Array<double>& missing_rows,
    const Indices& table, const Indices& table_size, const Indices& branches,
    const Array<double>& error, const Array<double>& held_out_error,
    const RowMajor<double>& parameters, double held_out) {
    Structure tree;
    const std::size_t n = attribute.shape(0);
    require(n > 0, "at least one node");
    for (const Indices* array :
         {&parent, &first_child, &n_children, &missing, &table, &table_size}) {
        require(array->shape(0) == n, "one entry per node");
    }
    for (const Array<double>* array :
         {&threshold, &n_rows, &gain, &missing_rows, &error, &held_out_error}) {
        require(array->shape(0) == n, "one entry per node");
    }
    require(parameters.shape(0) == n, "one node model per node");
    tree.attribute = copied(attribute);
    tree.cut.assign(n, 0);
    tree.threshold = copied(threshold);
    tree.parent = copied(parent);
    tree.first_child = copied(first_child);
    tree.n_children = copied(n_children);
    tree.n_rows = copied(n_rows);
    tree.gain = copied(gain);
    tree.missing = copied(missing);
    tree.missing_rows = copied(missing_rows);
    tree.table = copied(table);
    tree.table_size = copied(table_size);
    tree.branches = copied(branches);
    for (std::size_t v = 0; v < n; ++v) {
        require(v == 0 || (tree.parent[v] >= 0 && static_cast<std::size_t>(tree.parent[v]) < v),
                "a parent comes after its child");
        check_children(tree, v, n);
    }
    FittedNodes nodes;
    nodes.error = copied(error);
    nodes.held_out_error = copied(held_out_error);
    nodes.own.assign(n, 1);
    nodes.parameters.assign(parameters.data(), parameters.data() + parameters.size());
    nodes.total = tree.n_rows[0];
    nodes.held_out_total = held_out;
    return {std::move(tree), std::move(nodes)};
}

// Fitted trees as plain arrays, ready to predict.
class PredictorHandle {
  public:
    PredictorHandle(RouteArrays routes, Array<double> weight, Models parameters,
                    Array<std::int32_t> roots, std::size_t n_scores)
        : routes_(std::move(routes)),
          weight_(std::move(weight)),
          parameters_(std::move(parameters)),
          roots_(std::move(roots)),
          trees_{routes_.view(),
                 view(weight_),
                 {parameters_.data(), parameters_.size()},
                 view(roots_),
                 {parameters_.shape(1), parameters_.shape(2), n_scores}},
          predictor_(checked()) {}
    PredictorHandle(const PredictorHandle&) = delete;
    PredictorHandle& operator=(const PredictorHandle&) = delete;

    // The leaf of every row in every tree; scores are needed where trees split on them.
    nb::object apply(const Matrix& matrix, const std::optional<ColumnMajor>& scores) const {
        if (scores) check_scores(matrix, *scores, trees_.shape.n_scores);
        require(matrix.shape(1) == routes_.n_attributes(), "the matrix has another width");
        for (const std::int32_t a : view(routes_.attribute)) {
            require(scores || a < static_cast<std::int64_t>(routes_.n_attributes()),
                    "a split on scores needs them");
        }
        const std::size_t n_trees = roots_.shape(0);
        std::vector<std::int32_t> leaves(matrix.shape(0) * n_trees);
        {
            const NewRows rows{table_of(matrix), scores ? scores->data() : nullptr};
            const Released released;
            StopCheck stop_check;
            for (std::size_t i = 0; i < leaves.size(); ++i) {
                stop_check.count(1);
                leaves[i] = predictor_.leaf(rows, i / n_trees, trees_.roots[i % n_trees]);
            }
        }
        return to_numpy(std::move(leaves), {matrix.shape(0), n_trees});
    }

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
    const FittedTrees& checked() const {
        require(parameters_.shape(0) == routes_.n_nodes() && weight_.shape(0) == routes_.n_nodes(),
                "one entry per node");
        check_shape(trees_.shape);
        routes_.check(trees_.shape.n_scores);
        routes_.check_roots(roots_);
        return trees_;
    }

    RouteArrays routes_;
    Array<double> weight_;
    Models parameters_;
    Array<std::int32_t> roots_;
    FittedTrees trees_;
    Predictor predictor_;
};

}  // namespace

void caltree::bind_tree(nb::module_& m) {
    using namespace nb::literals;
    m.attr("only_missing") = only_missing;
    nb::class_<Structure>(m, "Structure").def("__len__", &Structure::size);
    nb::class_<FittedNodes>(m, "FittedNodes");
    nb::class_<PredictorHandle>(m, "Predictor")
        .def(
            "__init__",
            [](PredictorHandle* self, Array<std::int32_t> attribute, Array<double> threshold,
               Array<std::int32_t> first_child, Array<std::int32_t> n_children,
               Array<std::int32_t> missing, Array<std::int32_t> table, Array<std::int32_t> branches,
               Array<std::int32_t> n_categories, Array<double> weight, Models parameters,
               Array<std::int32_t> roots, std::size_t n_scores) {
                new (self) PredictorHandle(
                    {std::move(attribute), std::move(threshold), std::move(first_child),
                     std::move(n_children), std::move(missing), std::move(table),
                     std::move(branches), std::move(n_categories)},
                    std::move(weight), std::move(parameters), std::move(roots), n_scores);
            },
            "attribute"_a, "threshold"_a, "first_child"_a, "n_children"_a, "missing"_a, "table"_a,
            "branches"_a, "n_categories"_a, "weight"_a, "parameters"_a, "roots"_a, "n_scores"_a)
        .def("apply", &PredictorHandle::apply, "matrix"_a, "scores"_a.none() = nb::none())
        .def("probabilities", &PredictorHandle::probabilities, "matrix"_a, "scores"_a,
             "offset"_a.none() = nb::none());

    m.def("assemble_tree", &assemble_tree, "attribute"_a, "threshold"_a, "parent"_a,
          "first_child"_a, "n_children"_a, "n_rows"_a, "gain"_a, "missing"_a, "missing_rows"_a,
          "table"_a, "table_size"_a, "branches"_a, "error"_a, "held_out_error"_a, "parameters"_a,
          "held_out"_a);
    m.def("pruning_sequence", &sequence, "tree"_a, "nodes"_a);
    m.def("pruning_order", &order, "tree"_a, "nodes"_a, "least_gain"_a = 0.0);
    m.def("row_counts", &row_counts, "tree"_a);
    m.def("collapse_tree", &collapse_tree, "tree"_a, "nodes"_a, "rank"_a, "lowest"_a, "shares"_a);
    m.def("held_out_gains", &held_out_gains_of, "tree"_a, "nodes"_a, "rank"_a, "lowest"_a,
          "shares"_a, "n_attributes"_a);
}
