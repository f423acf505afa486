// The bindings of the trees of shrunken node models, alone and in forests.
#include <algorithm>
#include <numeric>

#include "bindings/bindings.hpp"
#include "data/bins.hpp"
#include "shrunken/grower.hpp"
#include "tree/bootstrap.hpp"

using namespace caltree;

namespace {

using Hessians = nb::ndarray<const double, nb::ndim<4>, nb::c_contig, nb::device::cpu>;

void check_rising(bool rising, std::size_t n_classes, std::size_t n_scores) {
    require(!rising || (n_classes == 2 && n_scores == 2), "only one score of two classes can rise");
}

// What growing such trees needs beyond the training data.
class ShrunkenTraining {
  public:
    ShrunkenTraining(const Training& training, const std::optional<ColumnMajor>& offset,
                     std::size_t max_bins, bool all_scores)
        : training_(training) {
        const Data& data = training.data();
        require(max_bins >= 2 && max_bins <= most_bins, "between 2 and 65534 bins");
        require(data.n_classes == 2 || data.n_scores % data.n_classes == 0, "one score per class");
        check_offset(offset, data.n_rows(), data.n_classes);
        const Released released;
        columns_ = binned(data.columns, data.weights, max_bins);
        // Of two classes the second half of the scores bends the first, and tells nothing new.
        const std::size_t n_plain = data.n_classes == 2 ? (data.n_scores + 1) / 2 : data.n_scores;
        for (std::size_t c = 0; c < n_plain; ++c) {
            const ColumnView view{data.score_column(c), 1};
            const Column column = numeric_column(view, data.n_rows(), 0.0);
            columns_.push_back(binned_numeric(column, data.weights, max_bins));
        }
        codes_by_row_ = RowCodes(columns_);
        regressors_ = regressors(data, offset ? offset->data() : nullptr, all_scores);
    }
    ShrunkenTraining(const ShrunkenTraining&) = delete;
    ShrunkenTraining& operator=(const ShrunkenTraining&) = delete;

    // A tree on some rows, and its node models; held-out rows are judged on the way.
    std::pair<Structure, FittedNodes> grow(const Array<Row>& rows, const Array<Row>& held_out,
                                           double penalty, double min_samples_split,
                                           double min_samples_leaf, std::size_t max_depth,
                                           bool log_loss, bool rising, double share_of_rows) const {
        require(share_of_rows > 0.0 && share_of_rows <= 1.0, "a share is above 0 and at most 1");
        const std::vector<Row> train = training_.rows(rows);
        const std::vector<Row> test = training_.rows(held_out);
        const Data& data = training_.data();
        GrowthSettings settings;
        settings.penalty = penalty;
        settings.min_samples_split = min_samples_split;
        settings.min_samples_leaf = min_samples_leaf;
        settings.max_depth = max_depth;
        check_rising(rising, data.n_classes, data.n_scores);
        settings.rising = rising;
        settings.share_of_rows = share_of_rows;
        settings.objective = log_loss ? Objective::deviance : Objective::squared_error;
        const Released released;
        const std::vector<double> weights = row_weights();
        ShrunkenGrower grower(data, attributes(), regressors_, weights, settings);
        GrownTree tree = grower.grow(train, test);
        return {std::move(tree.structure), std::move(tree.nodes)};
    }

    // The model of a root on all rows: intercept and slopes of each log-odds. It may stay on the
    // line of the temperature: probabilities are sharpened or flattened then, and nothing else.
    nb::object fit_root(double penalty, bool temperature_only, bool rising) const {
        check_rising(rising, training_.data().n_classes, training_.data().n_scores);
        std::vector<double> result(regressors_.n_parameters());
        {
            const Released released;
            Penalties costs = penalties(regressors_.score_scale(), penalty,
                                        regressors_.corrects_probabilities, rising);
            costs.temperature_only = temperature_only;
            const std::vector<double> weights = row_weights();
            std::vector<Row> rows(weights.size());
            std::iota(rows.begin(), rows.end(), Row{0});
            std::vector<double> parameters(result.size(), 0.0);
            NodeModelFitter(training_.data(), regressors_, weights, std::move(costs))
                .fit(rows, parameters, true);
            regressors_.unscaled(parameters, result.data());
        }
        return to_numpy(std::move(result), {regressors_.n_states, regressors_.width()});
    }

    // A tree on a bootstrap sample of the rows, or of whole groups of them; the rows it left out,
    // and what it says about them for each of the sizes. It may split on so many of the scores,
    // which are drawn for it.
    std::tuple<Structure, FittedNodes, nb::object, nb::object> bagged(
        std::uint64_t seed, std::size_t n_split_scores, double penalty, const Array<double>& sizes,
        double min_samples_leaf, std::size_t max_depth, std::size_t max_features,
        const std::optional<Array<std::uint32_t>>& groups) const {
        require(sizes.shape(0) > 0 && max_features > 0, "at least one size and attribute");
        const Data& data = training_.data();
        std::span<const std::uint32_t> group_of;
        std::size_t n_groups = 0;
        if (groups) {
            require(groups->shape(0) == data.n_rows(), "one group per row");
            group_of = {groups->data(), groups->shape(0)};
            n_groups = std::size_t{*std::max_element(group_of.begin(), group_of.end())} + 1;
            require(n_groups <= data.n_rows(), "groups are numbered from 0 on");
        }
        GrowthSettings settings;
        settings.penalty = penalty;
        settings.sizes.assign(sizes.data(), sizes.data() + sizes.shape(0));
        settings.min_samples_split = settings.sizes.back();
        settings.min_samples_leaf = min_samples_leaf;
        settings.max_depth = max_depth;
        settings.max_features = max_features;
        settings.cost_of_a_category = cost_of_a_bagged_category;
        GrownTree tree;
        Bootstrap sample;
        {
            const Released released;
            Random random(seed);
            sample = bootstrap(data, random, group_of, n_groups);
            settings.seed = random.next();
            const std::size_t n_attributes = attributes().size();
            const std::size_t n_scores = columns_.size() - n_attributes;
            const std::vector<std::size_t> drawn = draw_some(n_scores, n_split_scores, random);
            const std::vector<BinnedColumn> some = with_some_scores(drawn);
            const std::span<const BinnedColumn> columns =
                some.empty() ? std::span(columns_).first(n_attributes + drawn.size()) : some;
            const RowCodes* by_row = some.empty() ? &codes_by_row_ : nullptr;
            ShrunkenGrower grower(data, columns, regressors_, sample.weights, settings, by_row);
            tree = grower.grow(sample.in_bag, sample.out_of_bag);
            judge_splits(tree.structure, tree.nodes);
            for (std::int32_t& column : tree.structure.attribute) {
                if (column < static_cast<std::int32_t>(n_attributes)) continue;
                const std::size_t score = drawn[static_cast<std::size_t>(column) - n_attributes];
                column = static_cast<std::int32_t>(n_attributes + score);
            }
        }
        const std::vector<std::size_t> shape{sizes.shape(0), sample.out_of_bag.size(),
                                             regressors_.n_states};
        nb::object rows = to_numpy(std::move(sample.out_of_bag));
        nb::object predictions = to_numpy(std::move(tree.predictions), shape);
        return {std::move(tree.structure), std::move(tree.nodes), std::move(rows),
                std::move(predictions)};
    }

  private:
    std::vector<double> row_weights() const {
        const Data& data = training_.data();
        std::vector<double> weights(data.n_rows());
        for (std::size_t i = 0; i < weights.size(); ++i) {
            weights[i] = data.weight(static_cast<Row>(i));
        }
        return weights;
    }

    std::span<const BinnedColumn> attributes() const {
        return std::span(columns_).first(training_.data().columns.columns.size());
    }

    // Attributes, then some of the scores; empty if these are all or none, which needs no copies.
    std::vector<BinnedColumn> with_some_scores(const std::vector<std::size_t>& scores) const {
        const std::span<const BinnedColumn> first = attributes();
        if (scores.empty() || first.size() + scores.size() == columns_.size()) return {};
        std::vector<BinnedColumn> result(first.begin(), first.end());
        for (const std::size_t score : scores) result.push_back(columns_[first.size() + score]);
        return result;
    }

    const Training& training_;
    std::vector<BinnedColumn> columns_;  // of the attributes, then of the scores
    RowCodes codes_by_row_{std::span<const BinnedColumn>{}};
    Regressors regressors_;
};

// Node models of many nodes, fitted together by sums over rows.
class NodeFits {
  public:
    // weight, loss and its derivatives (see NewtonFit) at the parents' parameters, a row a node.
    // centre and scale are those of the scores; `corrects_probabilities` says that there is an
    // offset.
    NodeFits(const RowMajor<double>& parents, std::size_t n_states, bool sees_all,
             const Array<double>& centre, const Array<double>& scale, bool corrects_probabilities,
             double penalty, bool is_root, const Array<double>& weight, const Array<double>& loss,
             const Models& gradient, const Hessians& hessian, double noise, bool rising)
        : n_states_(n_states), n_parameters_(parents.shape(1)) {
        const std::size_t n = parents.shape(0);
        require(n_states > 0 && n_parameters_ > 0 && n_parameters_ % n_states == 0,
                "parameters have another width");
        require(penalty > 0.0, "the penalty must be positive");
        require(weight.shape(0) == n && loss.shape(0) == n, "one entry per node");
        check(gradient, hessian, n);
        const std::size_t per_state = n_parameters_ / n_states - 1;
        require(centre.shape(0) == per_state * (sees_all ? 1 : n_states) &&
                    scale.shape(0) == centre.shape(0),
                "one centre and scale per score");
        check_rising(rising, n_states == 1 ? 2 : n_states, per_state);
        const Penalties costs =
            penalties({n_states, per_state, sees_all, view(centre), view(scale)}, penalty,
                      corrects_probabilities, rising);
        for (std::size_t v = 0; v < n; ++v) {
            NewtonFit& fit = fits_.emplace_back(n_states, costs);
            fit.start({parents.data() + v * n_parameters_, n_parameters_}, is_root,
                      weight.data()[v], loss.data()[v], noise);
            set_derivatives(fit, gradient, hessian, v);
        }
    }

    // The nodes that are not done, in their order.
    nb::object pending() const {
        std::vector<std::int64_t> result;
        for (std::size_t v = 0; v < fits_.size(); ++v) {
            if (!fits_[v].is_done()) result.push_back(static_cast<std::int64_t>(v));
        }
        return to_numpy(std::move(result));
    }

    // Whether any pending node may want derivatives at its trial.
    bool wants_derivatives() const {
        return std::any_of(fits_.begin(), fits_.end(), [](const NewtonFit& fit) {
            return !fit.is_done() && fit.wants_derivatives();
        });
    }

    // Where the pending nodes would go next.
    nb::object trials() const {
        std::vector<double> result;
        for (const NewtonFit& fit : fits_) {
            if (fit.is_done()) continue;
            result.insert(result.end(), fit.trial().begin(), fit.trial().end());
        }
        const std::size_t n_pending = result.size() / n_parameters_;
        return to_numpy(std::move(result), {n_pending, n_parameters_});
    }

    nb::object parameters() const {
        std::vector<double> result;
        for (const NewtonFit& fit : fits_) {
            result.insert(result.end(), fit.parameters().begin(), fit.parameters().end());
        }
        return to_numpy(std::move(result), {fits_.size(), n_parameters_});
    }

    // Takes losses and derivatives of the pending nodes at their trials; says which moved there.
    nb::object take(const Array<double>& loss, const Models& gradient, const Hessians& hessian) {
        const auto n_pending = static_cast<std::size_t>(std::count_if(
            fits_.begin(), fits_.end(), [](const NewtonFit& fit) { return !fit.is_done(); }));
        require(loss.shape(0) == n_pending, "one loss per pending node");
        check(gradient, hessian, n_pending);
        std::vector<std::uint8_t> moved;
        for (NewtonFit& fit : fits_) {
            if (fit.is_done()) continue;
            const std::size_t at = moved.size();
            moved.push_back(fit.judge(loss.data()[at]));
            if (moved.back() && !fit.is_done()) set_derivatives(fit, gradient, hessian, at);
        }
        return to_numpy(std::move(moved));
    }

  private:
    void check(const Models& gradient, const Hessians& hessian, std::size_t n) const {
        const std::size_t width = n_parameters_ / n_states_;
        require(
            gradient.shape(0) == n && gradient.shape(1) == n_states_ && gradient.shape(2) == width,
            "the gradient has another shape");
        require(hessian.shape(0) == n && hessian.shape(1) == n_states_ &&
                    hessian.shape(2) == width && hessian.shape(3) == width,
                "the Hessian has another shape");
    }

    static void set_derivatives(NewtonFit& fit, const Models& gradient, const Hessians& hessian,
                                std::size_t row) {
        fit.set_derivatives(gradient.data() + row * gradient.shape(1) * gradient.shape(2),
                            hessian.data() + row * (hessian.size() / hessian.shape(0)));
    }

    std::size_t n_states_, n_parameters_;
    std::vector<NewtonFit> fits_;
};

}  // namespace

void caltree::bind_shrunken(nb::module_& m) {
    using namespace nb::literals;
    nb::class_<ShrunkenTraining>(m, "ShrunkenTraining")
        .def(nb::init<const Training&, const std::optional<ColumnMajor>&, std::size_t, bool>(),
             "training"_a, "offset"_a.none(), "max_bins"_a, "all_scores"_a, nb::keep_alive<1, 2>())
        .def("grow", &ShrunkenTraining::grow, "rows"_a, "held_out"_a, "penalty"_a,
             "min_samples_split"_a, "min_samples_leaf"_a, "max_depth"_a, "log_loss"_a,
             "rising"_a = false, "share_of_rows"_a = 1.0)
        .def("fit_root", &ShrunkenTraining::fit_root, "penalty"_a, "temperature_only"_a = false,
             "rising"_a = false)
        .def("bagged", &ShrunkenTraining::bagged, "seed"_a, "n_split_scores"_a, "penalty"_a,
             "sizes"_a, "min_samples_leaf"_a, "max_depth"_a, "max_features"_a,
             "groups"_a.none() = nb::none());
    nb::class_<NodeFits>(m, "NodeFits")
        .def(nb::init<const RowMajor<double>&, std::size_t, bool, const Array<double>&,
                      const Array<double>&, bool, double, bool, const Array<double>&,
                      const Array<double>&, const Models&, const Hessians&, double, bool>(),
             "parents"_a, "n_states"_a, "sees_all"_a, "centre"_a, "scale"_a,
             "corrects_probabilities"_a, "penalty"_a, "is_root"_a, "weight"_a, "loss"_a,
             "gradient"_a, "hessian"_a, "noise"_a, "rising"_a = false)
        .def("pending", &NodeFits::pending)
        .def("wants_derivatives", &NodeFits::wants_derivatives)
        .def("trials", &NodeFits::trials)
        .def("parameters", &NodeFits::parameters)
        .def("take", &NodeFits::take, "loss"_a, "gradient"_a, "hessian"_a);
}
