// The bindings of trees that are grown level by level, on chunks of rows in bins.
#include "histogram/histogram.hpp"

#include "bindings/bindings.hpp"
#include "data/bins.hpp"
#include "histogram/chunk.hpp"
#include "histogram/node_search.hpp"
#include "histogram/routing.hpp"
#include "histogram/sums.hpp"

using namespace caltree;

namespace {

using Codes = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using WholesOut = nb::ndarray<Whole, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

constexpr std::size_t most_classes = std::numeric_limits<Label>::max();

// Some rows: arrays, and what keeps them alive. Everything is checked here, once.
class ChunkHandle {
  public:
    ChunkHandle(Codes codes, const Indices& n_bins, Array<Label> labels, std::size_t n_classes,
                RowMajor<double> scores, std::optional<RowMajor<double>> offset,
                std::optional<Array<double>> weights, Array<std::uint8_t> fold)
        : codes_(std::move(codes)),
          labels_(std::move(labels)),
          scores_(std::move(scores)),
          offset_(std::move(offset)),
          weights_(std::move(weights)),
          fold_(std::move(fold)) {
        const nb::dlpack::dtype type = codes_.dtype();
        require(type == nb::dtype<std::uint8_t>() || type == nb::dtype<std::uint16_t>(),
                "codes must have one or two bytes");
        chunk_.n_attributes = codes_.shape(1);
        if (type == nb::dtype<std::uint8_t>()) {
            chunk_.narrow = static_cast<const std::uint8_t*>(codes_.data());
        } else {
            chunk_.wide = static_cast<const std::uint16_t*>(codes_.data());
        }
        chunk_.labels = view(labels_);
        chunk_.scores = scores_.data();
        chunk_.fold = view(fold_);
        if (offset_) chunk_.offset = offset_->data();
        if (weights_) chunk_.weights = view(*weights_);
        check(n_bins, n_classes);
    }
    ChunkHandle(const ChunkHandle&) = delete;
    ChunkHandle& operator=(const ChunkHandle&) = delete;

    const Chunk& chunk() const { return chunk_; }
    std::size_t n_scores() const { return scores_.shape(1); }
    std::size_t n_states() const { return n_states_; }
    std::size_t n_classes() const { return n_states_ == 1 ? 2 : n_states_; }
    std::span<const std::int32_t> n_bins() const { return n_bins_; }

  private:
    void check(const Indices& n_bins, std::size_t n_classes) {
        const std::size_t n = labels_.shape(0);
        require(codes_.shape(0) == n && scores_.shape(0) == n && fold_.shape(0) == n &&
                    (!offset_ || offset_->shape(0) == n) && (!weights_ || weights_->shape(0) == n),
                "the arrays of a chunk differ in length");
        require(n < (std::size_t{1} << 31), "at most 2^31 - 1 rows");
        require(n_bins.shape(0) == chunk_.n_attributes && chunk_.n_attributes > 0,
                "one number of bins per attribute");
        require(n_classes >= 2 && n_classes <= most_classes && scores_.shape(1) > 0,
                "between 2 and 65535 classes, and a score");
        n_states_ = n_classes == 2 ? 1 : n_classes;
        require(!offset_ || offset_->shape(1) == n_states_, "the offset has another shape");
        n_bins_.assign(n_bins.data(), n_bins.data() + n_bins.shape(0));
        for (const std::int32_t count : n_bins_) {
            require(count >= 0 && static_cast<std::size_t>(count) <= most_bins, "too many bins");
        }
        const Released released;
        for (const Label label : chunk_.labels) require(label < n_classes, "an unknown class");
        check_numbers();
        check_codes();
    }

    void check_numbers() const {
        bool finite = true;
        for (std::size_t i = 0; i < scores_.size(); ++i) finite &= std::isfinite(scores_.data()[i]);
        for (std::size_t i = 0; offset_ && i < offset_->size(); ++i) {
            finite &= std::isfinite(offset_->data()[i]);
        }
        require(finite, "scores must be finite");
        for (const double weight : chunk_.weights) {
            require(weight > 0.0 && std::isfinite(weight), "weights must be positive");
        }
    }

    void check_codes() const {
        std::vector<std::size_t> largest(chunk_.n_attributes, 0);
        for (std::size_t row = 0; row < chunk_.n_rows(); ++row) {
            for (std::size_t a = 0; a < chunk_.n_attributes; ++a) {
                largest[a] = std::max(largest[a], chunk_.code(row, a));
            }
        }
        for (std::size_t a = 0; a < chunk_.n_attributes; ++a) {
            require(largest[a] <= static_cast<std::size_t>(n_bins_[a]), "a code is out of range");
        }
    }

    Codes codes_;
    Array<Label> labels_;
    RowMajor<double> scores_;
    std::optional<RowMajor<double>> offset_;
    std::optional<Array<double>> weights_;
    Array<std::uint8_t> fold_;
    std::size_t n_states_ = 0;
    std::vector<std::int32_t> n_bins_;
    Chunk chunk_;
};

template <class Numbers>
bool all_finite(const Numbers& numbers) {
    return std::all_of(numbers.data(), numbers.data() + numbers.size(),
                       [](double number) { return std::isfinite(number); });
}

Sight sight_of(const ChunkHandle& rows, const Array<double>& centre, const Array<double>& scale,
               std::size_t per_state) {
    const std::size_t n_scores = rows.n_scores();
    require(centre.shape(0) == n_scores && scale.shape(0) == n_scores, "one scale per score");
    require(all_finite(centre) && all_finite(scale), "scales must be finite");
    require(per_state == n_scores || per_state * rows.n_states() == n_scores,
            "a log-odds sees all scores or its own");
    return {rows.n_states(), per_state, view(centre), view(scale)};
}

Positions positions_of(const ChunkHandle& rows, const RowMajor<Node>& nodes, const Indices& first) {
    const Positions positions{nodes.data(), nodes.shape(0), nodes.shape(1)};
    require(positions.n_rows == rows.chunk().n_rows(), "positions differ from the rows");
    require(first.shape(0) == positions.n_trees + 1, "one beginning per tree, and the end");
    for (std::size_t tree = 0; tree < positions.n_trees; ++tree) {
        require(first.data()[tree] >= 0 && first.data()[tree + 1] > first.data()[tree],
                "trees have at least one node");
        const std::int32_t size = first.data()[tree + 1] - first.data()[tree];
        Node largest = 0;
        for (std::size_t row = 0; row < positions.n_rows; ++row) {
            largest = std::max(largest, positions.node(tree, row));
        }
        require(largest < size, "a row is in no node");
    }
    for (const std::uint8_t fold : rows.chunk().fold) {
        require(fold == in_no_fold || std::size_t{fold} + 1 < positions.n_trees,
                "a fold without a tree");
    }
    return positions;
}

Slots slots_of(const Indices& first, const Indices& of_node, const RowMajor<double>& parameters,
               const Sight& sight) {
    const std::size_t count = parameters.shape(0);
    require(parameters.shape(1) == sight.n_parameters(), "parameters have another width");
    require(all_finite(parameters), "parameters must be finite");
    require(of_node.shape(0) == static_cast<std::size_t>(first.data()[first.shape(0) - 1]),
            "one slot per node");
    for (const std::int32_t slot : view(of_node)) {
        require(slot >= -1 && slot < static_cast<std::int32_t>(count), "a slot is out of range");
    }
    return {view(of_node), view(first), count, parameters.data()};
}

Units units_of(const Array<double>& units) {
    require(units.shape(0) == 4, "four units");
    for (const double unit : view(units)) require(unit > 0.0 && std::isfinite(unit), "a unit");
    return {units.data()[0], units.data()[1], units.data()[2], units.data()[3]};
}

nb::object sums(const ChunkHandle& rows, const RowMajor<Node>& nodes, const Indices& first,
                const Indices& of_node, const RowMajor<double>& parameters,
                const Array<double>& centre, const Array<double>& scale, std::size_t per_state,
                const Array<double>& units, bool log_loss, bool derivatives) {
    Sight sight = sight_of(rows, centre, scale, per_state);
    std::vector<Whole> result;
    {
        const Released released;
        const Positions positions = positions_of(rows, nodes, first);
        const Slots slots = slots_of(first, of_node, parameters, sight);
        Summing summing(rows.chunk(), sight, units_of(units), log_loss, derivatives);
        result = summing.sums(positions, slots);
    }
    const SumsShape shape{sight.n_states(), sight.width()};
    return to_numpy(std::move(result), {parameters.shape(0), shape.size()});
}

// Adds to `into`, a row a slot, what rows say about a correction.
void histograms(const ChunkHandle& rows, const RowMajor<Node>& nodes, const Indices& first,
                const Indices& of_node, const RowMajor<double>& parameters,
                const Array<double>& centre, const Array<double>& scale, std::size_t per_state,
                const Array<double>& units, const WholesOut& into) {
    Sight sight = sight_of(rows, centre, scale, per_state);
    const HistogramShape shape{rows.n_bins(), EvidenceShape{rows.n_states()}.size()};
    require(into.shape(0) == parameters.shape(0) && into.shape(1) == shape.size(),
            "histograms have another shape");
    const Released released;
    const Positions positions = positions_of(rows, nodes, first);
    const Slots slots = slots_of(first, of_node, parameters, sight);
    HistogramBuilder(rows.chunk(), sight, units_of(units), shape)
        .add_evidence(positions, slots, into.data());
}

void check_histograms(const RowMajor<Whole>& histograms, const HistogramShape& shape,
                      const Array<std::uint8_t>& numeric, double unit) {
    require(numeric.shape(0) == shape.n_bins.size() && !shape.n_bins.empty(),
            "one entry per attribute");
    for (const std::int32_t count : shape.n_bins) {
        require(count >= 0 && static_cast<std::size_t>(count) <= most_bins, "too many bins");
    }
    require(shape.per_cell >= 2 && shape.per_cell <= 2 * most_classes + 1,
            "an impossible number of classes");
    require(histograms.shape(1) == shape.size(), "histograms have another width");
    require(unit > 0.0, "the unit must be positive");
}

nb::dict to_dict(BestSplits&& best) {
    nb::dict result;
    result["attribute"] = to_numpy(std::move(best.attribute));
    result["gain"] = to_numpy(std::move(best.gain));
    result["missing_rows"] = to_numpy(std::move(best.missing_rows));
    result["cut"] = to_numpy(std::move(best.cut));
    result["n_children"] = to_numpy(std::move(best.n_children));
    result["missing"] = to_numpy(std::move(best.missing));
    result["table"] = to_numpy(std::move(best.table));
    result["table_size"] = to_numpy(std::move(best.table_size));
    result["branches"] = to_numpy(std::move(best.branches));
    return result;
}

nb::dict best_splits(const RowMajor<Whole>& histograms, const Indices& n_bins,
                     const Array<std::uint8_t>& numeric, std::size_t n_states, double unit,
                     double penalty, double min_samples_leaf, const Array<double>& shares) {
    require(n_states >= 1 && n_states <= most_classes, "an impossible number of states");
    const HistogramShape shape{view(n_bins), EvidenceShape{n_states}.size()};
    check_histograms(histograms, shape, numeric, unit);
    require(shares.shape(0) == histograms.shape(0), "one share per node");
    BestSplits best;
    {
        const Released released;
        SplitSearch search(shape, view(numeric), n_states, {penalty, min_samples_leaf}, unit);
        for (std::size_t s = 0; s < histograms.shape(0); ++s) {
            check_stop();
            search.find(histograms.data() + s * histograms.shape(1), shares.data()[s], best);
        }
    }
    return to_dict(std::move(best));
}

nb::dict splits_in_chunk(const ChunkHandle& rows, const RowMajor<Node>& nodes, const Indices& first,
                         const Indices& of_node, const RowMajor<double>& parameters,
                         const Array<double>& centre, const Array<double>& scale,
                         std::size_t per_state, const Array<double>& units,
                         const Array<std::uint8_t>& numeric, double penalty,
                         double min_samples_leaf, const Array<double>& shares) {
    Sight sight = sight_of(rows, centre, scale, per_state);
    const HistogramShape shape{rows.n_bins(), EvidenceShape{rows.n_states()}.size()};
    require(numeric.shape(0) == shape.n_bins.size() && !shape.n_bins.empty(),
            "one entry per attribute");
    require(shares.shape(0) == parameters.shape(0), "one share per node");
    BestSplits best;
    {
        const Released released;
        const Positions positions = positions_of(rows, nodes, first);
        const Slots slots = slots_of(first, of_node, parameters, sight);
        const Units plain = units_of(units);
        SplitSearch search(shape, view(numeric), rows.n_states(), {penalty, min_samples_leaf},
                           plain.plain);
        NodeSearch(rows.chunk(), sight, plain, shape, std::move(search))
            .find(positions, slots, view(shares), best);
    }
    return to_dict(std::move(best));
}

void check_split(const SplitTables& splits, std::int32_t n_children, std::size_t v,
                 std::int32_t size) {
    if (splits.attribute[v] < 0) return;
    const auto a = static_cast<std::size_t>(splits.attribute[v]);
    require(a < splits.n_bins.size(), "an attribute is out of range");
    require(n_children > 0 && n_children <= size && splits.first_child[v] > 0 &&
                splits.first_child[v] <= size - n_children,
            "a child is missing");
    require(splits.table[v] >= 0 || n_children >= 2, "a cut has two sides");
    const auto is_branch = [n_children](std::int32_t b) { return b >= 0 && b < n_children; };
    require(is_branch(splits.missing[v]), "missing values go to no child");
    if (splits.table[v] < 0) return;
    const auto begin = static_cast<std::size_t>(splits.table[v]);
    const std::size_t end = begin + static_cast<std::size_t>(splits.n_bins[a]);
    require(end <= splits.branches.size(), "categories are out of range");
    for (std::size_t c = begin; c < end; ++c) {
        require(is_branch(splits.branches[c]), "a category goes to no child");
    }
}

nb::object route(const ChunkHandle& rows, const RowMajor<Node>& nodes, const Indices& first,
                 const Indices& attribute, const Indices& cut, const Indices& missing,
                 const Indices& first_child, const Indices& n_children, const Indices& table,
                 const Indices& branches) {
    const SplitTables splits{view(first),       view(attribute), view(cut),      view(missing),
                             view(first_child), view(table),     view(branches), rows.n_bins()};
    std::vector<Node> result;
    {
        const Released released;
        const Positions positions = positions_of(rows, nodes, first);
        const auto total = static_cast<std::size_t>(first.data()[positions.n_trees]);
        for (const Indices* array :
             {&attribute, &cut, &missing, &first_child, &n_children, &table}) {
            require(array->shape(0) == total, "one entry per node");
        }
        for (std::size_t tree = 0; tree < positions.n_trees; ++tree) {
            const std::int32_t size = splits.first[tree + 1] - splits.first[tree];
            for (std::int32_t v = splits.first[tree]; v < splits.first[tree + 1]; ++v) {
                check_split(splits, n_children.data()[v], static_cast<std::size_t>(v), size);
            }
        }
        result = routed(rows.chunk(), positions, splits);
    }
    return to_numpy(std::move(result), {nodes.shape(0), nodes.shape(1)});
}

nb::object predictions(const ChunkHandle& rows, const RowMajor<Node>& nodes, const Indices& first,
                       const RowMajor<std::int32_t>& ancestor, const RowMajor<double>& parameters,
                       const Array<double>& centre, const Array<double>& scale,
                       std::size_t per_state) {
    Sight sight = sight_of(rows, centre, scale, per_state);
    const std::size_t n_levels = ancestor.shape(1);
    std::vector<float> result;
    {
        const Released released;
        const Positions positions = positions_of(rows, nodes, first);
        const auto total = static_cast<std::size_t>(first.data()[positions.n_trees]);
        require(ancestor.shape(0) == total && parameters.shape(0) == total, "one entry per node");
        require(parameters.shape(1) == sight.n_parameters(), "parameters have another width");
        require(all_finite(parameters), "parameters must be finite");
        for (std::size_t i = 0; i < ancestor.size(); ++i) {
            require(ancestor.data()[i] >= 0 && ancestor.data()[i] < first.data()[positions.n_trees],
                    "an ancestor is out of range");
        }
        result =
            held_out_predictions(rows.chunk(), sight, positions, view(first),
                                 {ancestor.data(), ancestor.size()}, n_levels, parameters.data());
    }
    return to_numpy(std::move(result), {n_levels, nodes.shape(1), rows.n_states()});
}

}  // namespace

void caltree::bind_histogram(nb::module_& m) {
    using namespace nb::literals;
    m.attr("farthest_score") = farthest_score;
    m.attr("largest_loss") = largest_loss;
    nb::class_<ChunkHandle>(m, "Chunk")
        .def(nb::init<Codes, const Indices&, Array<Label>, std::size_t, RowMajor<double>,
                      std::optional<RowMajor<double>>, std::optional<Array<double>>,
                      Array<std::uint8_t>>(),
             "codes"_a, "n_bins"_a, "labels"_a, "n_classes"_a, "scores"_a, "offset"_a.none(),
             "weights"_a.none(), "fold"_a);
    m.def("sums", &sums, "chunk"_a, "nodes"_a, "first"_a, "slot"_a, "parameters"_a, "centre"_a,
          "scale"_a, "per_state"_a, "units"_a, "log_loss"_a, "derivatives"_a = true);
    m.def("histograms", &histograms, "chunk"_a, "nodes"_a, "first"_a, "slot"_a, "parameters"_a,
          "centre"_a, "scale"_a, "per_state"_a, "units"_a, "into"_a.noconvert());
    m.def("best_splits", &best_splits, "histograms"_a, "n_bins"_a, "numeric"_a, "n_states"_a,
          "unit"_a, "penalty"_a, "min_samples_leaf"_a, "shares"_a);
    m.def("splits_in_chunk", &splits_in_chunk, "chunk"_a, "nodes"_a, "first"_a, "slot"_a,
          "parameters"_a, "centre"_a, "scale"_a, "per_state"_a, "units"_a, "numeric"_a, "penalty"_a,
          "min_samples_leaf"_a, "shares"_a);
    m.def("route", &route, "chunk"_a, "nodes"_a, "first"_a, "attribute"_a, "cut"_a, "missing"_a,
          "first_child"_a, "n_children"_a, "table"_a, "branches"_a);
    m.def("predictions", &predictions, "chunk"_a, "nodes"_a, "first"_a, "ancestor"_a,
          "parameters"_a, "centre"_a, "scale"_a, "per_state"_a);
}
