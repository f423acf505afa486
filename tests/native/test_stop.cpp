// Stops each long loop of the core at every one of its checks, and sees it end there.
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <span>
#include <vector>

#include "data/bins.hpp"
#include "data/random.hpp"
#include "data/stop.hpp"
#include "histogram/chunk.hpp"
#include "histogram/histogram.hpp"
#include "histogram/routing.hpp"
#include "histogram/sums.hpp"
#include "published/grow.hpp"
#include "published/iterations.hpp"
#include "published/model_fitter.hpp"
#include "shrunken/grower.hpp"
#include "tree/predict.hpp"
#include "tree/predict_boosted.hpp"

using namespace caltree;

namespace {

#define CHECK(condition)                                                         \
    do {                                                                         \
        if (!(condition)) {                                                      \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            std::exit(1);                                                        \
        }                                                                        \
    } while (false)

constexpr std::size_t n_rows = 40'000;

// Stops at one of the checks.
class StopAt final : public StopSource {
  public:
    explicit StopAt(std::size_t last) : last_(last) { stop_source = this; }
    ~StopAt() { stop_source = nullptr; }
    void check() override {
        if (++asked_ == last_) throw Stopped();
    }
    std::size_t asked() const { return asked_; }

  private:
    std::size_t last_, asked_ = 0;
};

// Some work asks at least so often, and ends wherever it is told to stop.
template <class Work>
void check_stops(const char* name, std::size_t least, Work&& work) {
    std::size_t asked = 0;
    {
        StopAt never(0);
        work();
        asked = never.asked();
    }
    std::printf("%-12s %zu checks\n", name, asked);
    CHECK(asked >= least);
    for (const std::size_t last : {std::size_t{1}, (asked + 1) / 2, asked}) {
        StopAt stop(last);
        bool stopped = false;
        try {
            work();
        } catch (const Stopped&) {
            stopped = true;
        }
        CHECK(stopped && stop.asked() == last);
    }
}

struct Rows {
    std::vector<double> matrix, scores;
    std::vector<Label> labels;
    std::vector<Row> all;
    Columns columns;

    Rows() : all(n_rows) {
        Random random(1);
        const auto uniform = [&] { return static_cast<double>(random.next() >> 11) * 0x1p-53; };
        for (std::size_t i = 0; i < n_rows; ++i) {
            matrix.push_back(uniform());
            scores.push_back(uniform() - 0.5);
            labels.push_back(uniform() < matrix.back() ? 1 : 0);
        }
        std::iota(all.begin(), all.end(), Row{0});
        sort();
    }
    void sort() {
        columns = {};
        columns.n_rows = n_rows;
        columns.columns.push_back(numeric_column({matrix.data(), 1}, n_rows, 0.0));
    }
    Data data() const { return {columns, labels, {}, scores.data(), 1, 2}; }
};

void check_exact(const Rows& rows) {
    const Data data = rows.data();
    const std::vector<BinnedColumn> columns = binned(rows.columns, {}, 255);
    const Regressors seen = regressors(data, nullptr, true);
    const std::vector<double> weights(n_rows, 1.0);
    check_stops("grow", 20,
                [&] { ShrunkenGrower(data, columns, seen, weights, {}).grow(rows.all, {}); });
    check_stops("hold out", 1, [&] {
        GrowthSettings root;
        root.max_depth = 0;
        const std::vector<Row> few(rows.all.begin(), rows.all.begin() + 10);
        ShrunkenGrower(data, columns, seen, weights, root).grow(few, rows.all);
    });
}

void check_published(const Rows& rows) {
    const Data data = rows.data();
    check_stops("C4.5", 2, [&] { grow(data, rows.all, {}); });
    const Structure tree = grow(data, rows.all, {16.0, 2.0, 2});
    ModelSettings settings;
    settings.iterations = 5;
    check_stops("boost", 10, [&] { ModelFitter(data, tree, settings, rows.all, {}).fit_top(0); });
}

void check_prediction(const Rows& rows) {
    const std::vector<std::int32_t> leaf{-1}, none{0}, root{0}, numeric{0};
    const std::vector<double> threshold{0.0}, weight{1.0}, parameters{0.0, 1.0};
    const Routes routes{leaf, threshold, none, none, none, {}, numeric};
    const FittedTrees trees{routes, weight, parameters, root, {1, 2, 1}};
    const NewRows given{{rows.matrix.data(), n_rows, 1, 1, 1}, rows.scores.data()};
    std::vector<double> found(2 * n_rows);
    check_stops("predict", 1, [&] { Predictor(trees).probabilities(given, found.data()); });
    const BoostedTrees boosted{routes, weight, root, root, parameters, {1, 2, 1}, 1.0, 0.0, 1.0};
    check_stops("boosted", 1,
                [&] { BoostedPredictor(boosted).probabilities(given, found.data()); });
}

void check_histograms(const Rows& rows) {
    const std::vector<std::uint8_t> codes(n_rows, 1), fold(n_rows, in_no_fold);
    const std::vector<std::int32_t> n_bins{2}, first{0, 1}, slot{0};
    const std::vector<double> centre{0.0}, scale{1.0}, parameters{0.0, 1.0};
    const std::vector<Node> nodes(n_rows, 0);
    Chunk chunk;
    chunk.narrow = codes.data();
    chunk.n_attributes = 1;
    chunk.labels = rows.labels;
    chunk.scores = rows.scores.data();
    chunk.fold = fold;
    const Positions positions{nodes.data(), 1, n_rows};
    const Slots slots{slot, first, 1, parameters.data()};
    const Units units{1024.0, 1024.0, 1024.0, 1024.0};
    check_stops("sums", 1, [&] {
        Sight sight(1, 1, centre, scale);
        Summing(chunk, sight, units, false).sums(positions, slots);
    });
    const HistogramShape shape{n_bins, 3};
    check_stops("histograms", 1, [&] {
        Sight sight(1, 1, centre, scale);
        std::vector<Whole> into(shape.size());
        HistogramBuilder(chunk, sight, units, shape).add_evidence(positions, slots, into.data());
    });
    const std::vector<std::int32_t> leaf{-1}, zero{0};
    const SplitTables splits{first, leaf, zero, zero, zero, leaf, {}, n_bins};
    check_stops("route", 1, [&] { routed(chunk, positions, splits); });
}

}  // namespace

int main() {
    Rows stopped;
    check_stops("sort", 3, [&] { stopped.sort(); });
    const Rows rows;
    check_exact(rows);
    check_published(rows);
    check_prediction(rows);
    check_histograms(rows);
    return 0;
}
