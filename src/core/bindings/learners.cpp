// The bindings of the base learners of the paper: LogitBoost.
#include "bindings/bindings.hpp"
#include "learners/logitboost.hpp"

using namespace caltree;

namespace {

// Nominal attributes hold codes of categories, or NaN.
void check_categories(const Matrix& matrix, const Array<std::int32_t>& n_categories) {
    require(n_categories.shape(0) == matrix.shape(1), "one number of categories per attribute");
    const Table table = table_of(matrix);
    for (std::size_t a = 0; a < table.n_columns; ++a) {
        const std::int32_t count = n_categories.data()[a];
        require(count >= 0, "numbers of categories must not be negative");
        if (count == 0) continue;
        const ColumnView column = table.column(a);
        for (std::size_t i = 0; i < table.n_rows; ++i) {
            require(
                std::isnan(column[i]) || is_category(column[i], static_cast<std::uint32_t>(count)),
                "a category is out of range");
        }
    }
}

nb::dict fit_boosted(const Matrix& matrix, const Array<std::int32_t>& n_categories,
                     const Array<Label>& labels, std::size_t n_classes, std::size_t n_iterations,
                     std::optional<std::size_t> max_depth) {
    check_categories(matrix, n_categories);
    require(matrix.shape(0) > 0 && matrix.shape(0) < (std::size_t{1} << 31),
            "there must be rows, at most 2^31 - 1");
    require(labels.shape(0) == matrix.shape(0), "labels and matrix differ in length");
    require(n_classes >= 2, "at least 2 classes");
    require(!max_depth || (*max_depth >= 1 && *max_depth <= 1000),
            "max_depth must lie between 1 and 1000");
    for (const Label label : view(labels)) {
        require(label < n_classes, "a class index is out of range");
    }
    RegressionTrees fitted;
    {
        const Released released;
        fitted = fit_logitboost(table_of(matrix), view(n_categories), view(labels), n_classes,
                                n_iterations, max_depth);
    }
    nb::dict arrays;
    arrays["attribute"] = to_numpy(std::move(fitted.attribute));
    arrays["category"] = to_numpy(std::move(fitted.category));
    arrays["cut"] = to_numpy(std::move(fitted.cut));
    arrays["first_child"] = to_numpy(std::move(fitted.first_child));
    arrays["n_children"] = to_numpy(std::move(fitted.n_children));
    arrays["share"] = to_numpy(std::move(fitted.share));
    arrays["value"] = to_numpy(std::move(fitted.value));
    arrays["roots"] = to_numpy(std::move(fitted.roots));
    return arrays;
}

void check_node(const BorrowedRegressions& trees, std::size_t v,
                std::span<const std::int32_t> n_categories) {
    if (trees.attribute[v] < 0) return;
    const auto a = static_cast<std::size_t>(trees.attribute[v]);
    require(a < n_categories.size(), "an attribute is out of range");
    const std::int64_t first = trees.first_child[v];
    const std::int64_t count = trees.n_children[v];
    require(count >= 1 && first > static_cast<std::int64_t>(v) &&
                first + count <= static_cast<std::int64_t>(trees.value.size()),
            "a child is out of range");
    const bool numeric = n_categories[a] == 0;
    require(numeric != std::isnan(trees.cut[v]), "numeric attributes have a cut, others have none");
    const std::int64_t needed = numeric || trees.category[v] >= 0 ? 2 : n_categories[a];
    require(count >= needed, "a value goes to no child");
}

nb::object predict_boosted(const Matrix& matrix, const Array<std::int32_t>& n_categories,
                           std::size_t n_classes, const Array<std::int32_t>& attribute,
                           const Array<std::int32_t>& category, const Array<double>& cut,
                           const Array<std::int32_t>& first_child,
                           const Array<std::int32_t>& n_children, const Array<double>& share,
                           const Array<double>& value, const Array<std::int32_t>& roots) {
    check_categories(matrix, n_categories);
    require(n_classes >= 2, "at least 2 classes");
    const std::size_t n = value.shape(0);
    require(attribute.shape(0) == n && category.shape(0) == n && cut.shape(0) == n &&
                first_child.shape(0) == n && n_children.shape(0) == n && share.shape(0) == n,
            "one entry per node");
    const BorrowedRegressions trees{view(attribute),   view(category),   view(cut),
                                    view(first_child), view(n_children), view(share),
                                    view(value),       view(roots)};
    for (std::size_t v = 0; v < n; ++v) check_node(trees, v, view(n_categories));
    for (const std::int32_t root : trees.roots) {
        require(root >= 0 && static_cast<std::size_t>(root) < n, "a root is out of range");
    }
    require(trees.roots.size() % n_regressions(n_classes) == 0, "as many trees for each class");
    std::vector<double> result(matrix.shape(0) * n_classes);
    {
        const Released released;
        predict_logitboost(trees, table_of(matrix), n_classes, result.data());
    }
    return to_numpy(std::move(result), {matrix.shape(0), n_classes});
}

}  // namespace

void caltree::bind_learners(nb::module_& m) {
    using namespace nb::literals;
    m.def("fit_logitboost", &fit_boosted, "matrix"_a, "n_categories"_a, "labels"_a, "n_classes"_a,
          "n_iterations"_a, "max_depth"_a.none());
    m.def("predict_logitboost", &predict_boosted, "matrix"_a, "n_categories"_a, "n_classes"_a,
          "attribute"_a, "category"_a, "cut"_a, "first_child"_a, "n_children"_a, "share"_a,
          "value"_a, "roots"_a);
}
