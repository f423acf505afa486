// Fuzzes sums over chunks of rows on random data sets, and checks what must hold whatever the
// data are: the sums of parts add up to the bit, splits gain what they say, rows go where they
// should.
//
// The last line of output, and the file named by the first argument, is a digest of every number
// computed: builds for different instruction sets must agree on it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "checks.hpp"
#include "data/binning.hpp"
#include "histogram/chunk.hpp"
#include "histogram/histogram.hpp"
#include "histogram/routing.hpp"
#include "histogram/sums.hpp"
#include "kernels/kernels.hpp"

using namespace caltree;
using namespace caltree::testing;

namespace {

// What has been seen: a test of nothing proves nothing.
struct {
    std::size_t on_numbers = 0, on_categories = 0, with_missing = 0, no_split = 0;
} seen;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

// Logistic ----------------------------------------------------------------------------------------

// In units of the last place of the true value, or of the smallest normal number.
double error_in_units(double found, long double expected) {
    const double near = std::max(std::abs(static_cast<double>(expected)), 0x1p-1022);
    const double unit = std::nextafter(near, INFINITY) - near;
    return static_cast<double>(std::abs(static_cast<long double>(found) - expected) / unit);
}

void check_logistic(Digest& digest) {
    Chance chance(7);
    std::vector<double> d{0.0,    -0.0,    1.0,    -1.0,   36.7,    -36.7,   745.0,
                          -745.0, 746.0,   -746.0, 1e-300, -1e-300, 1e100,   -1e100,
                          5e-324, -5e-324, 1e308,  -1e308, 0.34657, -0.34657};
    while (d.size() < block_rows * 40) {
        d.push_back(chance.between(-1.0, 1.0) * chance.one_of({1e-8, 0.5, 3.0, 40.0, 750.0}));
    }
    std::vector<double> p(block_rows), norm(block_rows);
    for (std::size_t begin = 0; begin < d.size(); begin += block_rows) {
        kernels().logistic(d.data() + begin, p.data(), norm.data(), block_rows);
        digest.add(p);
        digest.add(norm);
        for (std::size_t i = 0; i < block_rows; ++i) {
            const long double x = d[begin + i];
            const long double e = std::exp(-std::abs(x));
            const long double probability = (x > 0.0L ? 1.0L : e) / (1.0L + e);
            const long double log_norm = std::max(x, 0.0L) + std::log1p(e);
            CHECK(p[i] >= 0.0 && p[i] <= 1.0 && norm[i] >= 0.0);
            // Below the normal numbers a unit is a large part of a value.
            if (probability > 1e-300L) {
                CHECK(error_in_units(p[i], probability) <= 3.0);
                // A unit each of the exponential, two quotients and their products.
                CHECK(error_in_units(norm[i], log_norm) <= 6.0);
            } else {
                CHECK(p[i] < 1e-299 && norm[i] < 1e-299);
            }
        }
    }
}

// Whether two ways to add up the same numbers agree, `size` being the sum of their sizes.
bool agree(double found, long double expected, long double size) {
    return std::abs(static_cast<long double>(found) - expected) <= 1e-13L * size;
}

void check_node_models(Digest& digest) {
    Chance chance(8);
    for (std::size_t n : {1, 3, 4, 5, 8, 31, 255, 256, 257, 700}) {
        const std::size_t padded = padded_rows(n);
        std::vector<double> offset(padded), score(padded), bend(padded), weight(padded),
            is_second(padded), p(padded), loss(padded);
        for (std::size_t i = 0; i < padded; ++i) {
            offset[i] = chance.between(-5.0, 5.0);
            score[i] = chance.between(-2.0, 2.0);
            bend[i] = chance.between(-2.0, 2.0);
            is_second[i] = chance.happens(0.5) ? 1.0 : 0.0;
            weight[i] = i < n ? chance.one_of({0.0, 0.5, 1.0, 3.0}) : 0.0;
        }
        const LogisticRows rows{offset.data(), score.data(), bend.data(), weight.data(),
                                is_second.data()};
        const double parameters[] = {0.3, -1.2, 0.7};
        const double total =
            kernels().logistic_losses(rows, parameters, p.data(), loss.data(), padded);
        double gradient[3], triangle[6];
        kernels().logistic_derivatives(rows, p.data(), gradient, triangle, padded);
        long double sum = 0.0L, g[3] = {}, h[6] = {}, size = 0.0L;
        for (std::size_t i = 0; i < n; ++i) {
            const long double x[] = {1.0L, score[i], bend[i]};
            const long double F = offset[i] + 0.3 - 1.2 * x[1] + 0.7 * x[2];
            const long double own = is_second[i] > 0.0 ? -F : F;
            CHECK(agree(loss[i], std::log1p(std::exp(own)), 10.0L));
            CHECK(agree(p[i], 1.0L / (1.0L + std::exp(-F)), 1.0L));
            sum += weight[i] * std::log1p(std::exp(own));
            const long double residual = weight[i] * (is_second[i] - p[i]);
            const long double variance = weight[i] * p[i] * (1.0L - p[i]);
            for (int a = 0, t = 0; a < 3; ++a) {
                g[a] += residual * x[a];
                for (int b = 0; b <= a; ++b) h[t++] += variance * x[a] * x[b];
            }
            size += 10.0L * weight[i];
        }
        CHECK(agree(total, sum, size));
        for (int t = 0; t < 3; ++t) CHECK(agree(gradient[t], g[t], size));
        for (int t = 0; t < 6; ++t) CHECK(agree(triangle[t], h[t], size));
        digest.add(total);
        digest.add(std::vector<double>(gradient, gradient + 3));
        digest.add(std::vector<double>(triangle, triangle + 6));
    }
}

// Data --------------------------------------------------------------------------------------------

struct DataSet {
    std::size_t n_rows = 0, n_classes = 0, n_scores = 0, per_state = 0, n_folds = 0;
    std::vector<std::int32_t> n_bins;
    std::vector<std::uint8_t> numeric;
    std::vector<std::uint8_t> narrow;
    std::vector<std::uint16_t> wide;
    std::vector<Label> labels;
    std::vector<double> scores, offset, weights, centre, scale, parameters;
    std::vector<std::uint8_t> fold;
    std::vector<Node> nodes;
    std::vector<std::int32_t> first, of_node;

    std::size_t n_states() const { return n_classes == 2 ? 1 : n_classes; }
    std::size_t n_attributes() const { return n_bins.size(); }
    std::size_t n_trees() const { return n_folds + 1; }
    std::size_t n_slots() const { return of_node.size(); }
    Sight sight() const { return {n_states(), per_state, centre, scale}; }
    HistogramShape shape() const { return {n_bins, 1 + 2 * n_states()}; }
    Slots slots() const { return {of_node, first, n_slots(), parameters.data()}; }

    // Rows from `begin` to `end`.
    Chunk chunk(std::size_t begin, std::size_t end) const {
        Chunk result;
        result.n_attributes = n_attributes();
        if (wide.empty()) {
            result.narrow = narrow.data() + begin * n_attributes();
        } else {
            result.wide = wide.data() + begin * n_attributes();
        }
        result.labels = std::span(labels).subspan(begin, end - begin);
        result.scores = scores.data() + begin * n_scores;
        if (!offset.empty()) result.offset = offset.data() + begin * n_states();
        if (!weights.empty()) result.weights = std::span(weights).subspan(begin, end - begin);
        result.fold = std::span(fold).subspan(begin, end - begin);
        return result;
    }
    std::vector<Node> nodes_of(std::size_t begin, std::size_t end) const {
        std::vector<Node> result;
        for (std::size_t tree = 0; tree < n_trees(); ++tree) {
            const auto at = nodes.begin() + static_cast<std::ptrdiff_t>(tree * n_rows);
            result.insert(result.end(), at + static_cast<std::ptrdiff_t>(begin),
                          at + static_cast<std::ptrdiff_t>(end));
        }
        return result;
    }
};

double random_score(Chance& chance, int kind) {
    switch (kind) {
        case 0:
            return chance.between(-3.0, 3.0);
        case 1:
            return std::round(chance.between(-3.0, 3.0));
        case 2:
            return 0.3;
        default:
            return chance.one_of({-1e100, -1.0, 0.0, 1e-300, 2.0, 1e100});
    }
}

void add_rows(Chance& chance, DataSet& set, bool wide) {
    const int kind = static_cast<int>(chance.from_to(0, 3));
    const bool weighted = chance.happens(0.4), offset = chance.happens(0.6);
    for (std::size_t i = 0; i < set.n_rows; ++i) {
        for (const std::int32_t count : set.n_bins) {
            const std::size_t code = chance.from_to(0, static_cast<std::size_t>(count));
            if (wide) {
                set.wide.push_back(static_cast<std::uint16_t>(code));
            } else {
                set.narrow.push_back(static_cast<std::uint8_t>(code));
            }
        }
        set.labels.push_back(static_cast<Label>(chance.from_to(0, set.n_classes - 1)));
        for (std::size_t t = 0; t < set.n_scores; ++t) {
            set.scores.push_back(random_score(chance, kind));
        }
        for (std::size_t j = 0; offset && j < set.n_states(); ++j) {
            set.offset.push_back(random_score(chance, kind == 3 ? 3 : 0));
        }
        if (weighted) set.weights.push_back(chance.one_of({0.5, 1.0, 2.75}));
        const bool held_out = chance.happens(0.8);
        set.fold.push_back(held_out ? static_cast<std::uint8_t>(chance.from_to(0, set.n_folds - 1))
                                    : in_no_fold);
    }
}

void add_trees(Chance& chance, DataSet& set) {
    set.first.push_back(0);
    for (std::size_t tree = 0; tree < set.n_trees(); ++tree) {
        const std::size_t size = chance.from_to(1, 4);
        set.first.push_back(set.first.back() + static_cast<std::int32_t>(size));
        for (std::size_t i = 0; i < set.n_rows; ++i) {
            set.nodes.push_back(static_cast<Node>(chance.from_to(0, size - 1)));
        }
    }
    // Every node has a slot of its own, in reverse order.
    const std::int32_t total = set.first.back();
    for (std::int32_t v = 0; v < total; ++v) set.of_node.push_back(total - 1 - v);
    const std::size_t n_parameters = set.n_states() * (set.per_state + 1);
    for (std::size_t t = 0; t < set.n_slots() * n_parameters; ++t) {
        set.parameters.push_back(chance.between(-1.0, 1.0));
    }
}

DataSet random_data_set(Chance& chance) {
    DataSet set;
    set.n_rows = chance.one_of<std::size_t>(
        {0, 1, 3, chance.from_to(2, 40), block_rows, chance.from_to(250, 700)});
    set.n_classes = chance.happens(0.5) ? 2 : chance.from_to(3, 9);
    const std::size_t several = chance.from_to(1, 3);
    set.n_scores = set.n_classes == 2 ? several : several * set.n_classes;
    const bool sees_all = set.n_classes == 2 || chance.happens(0.5);
    set.per_state = sees_all ? set.n_scores : several;
    set.n_folds = chance.from_to(1, 4);
    const bool wide = chance.happens(0.3);
    const std::size_t n_attributes = chance.from_to(1, 5);
    for (std::size_t a = 0; a < n_attributes; ++a) {
        const std::size_t most = wide ? 700 : 255;
        const std::size_t count = chance.one_of<std::size_t>({0, 1, 2, 12, most});
        set.n_bins.push_back(static_cast<std::int32_t>(count));
        set.numeric.push_back(chance.happens(0.6) ? 1 : 0);
    }
    for (std::size_t t = 0; t < set.n_scores; ++t) {
        set.centre.push_back(chance.between(-1.0, 1.0));
        set.scale.push_back(chance.one_of({0.0, 0.5, 2.0}));
    }
    add_rows(chance, set, wide);
    add_trees(chance, set);
    return set;
}

// Of as many rows as there may be at most, all sums stay in range.
Units units_of(const DataSet& set) {
    const auto unit = [&](double largest) {
        const double most = 3.0 * largest * static_cast<double>(set.n_rows + 1);
        return std::exp2(std::floor(62.0 - std::log2(most)));
    };
    return {unit(1.0), unit(farthest_score), unit(farthest_score * farthest_score),
            unit(largest_loss)};
}

struct Answers {
    std::vector<Whole> sums, histograms;
};

Answers ask(const DataSet& set, std::size_t begin, std::size_t end) {
    Answers result;
    const Chunk chunk = set.chunk(begin, end);
    const std::vector<Node> nodes = set.nodes_of(begin, end);
    const Positions positions{nodes.data(), set.n_trees(), end - begin};
    const Units units = units_of(set);
    Sight sight = set.sight();
    result.sums = Summing(chunk, sight, units, set.n_classes % 2 == 0).sums(positions, set.slots());
    result.histograms.assign(set.n_slots() * set.shape().size(), 0);
    HistogramBuilder(chunk, sight, units, set.shape())
        .add_evidence(positions, set.slots(), result.histograms.data());
    return result;
}

// Checks ------------------------------------------------------------------------------------------

void check_parts(Chance& chance, const DataSet& set, const Answers& whole) {
    const std::size_t cut = chance.from_to(0, set.n_rows);
    const Answers left = ask(set, 0, cut), right = ask(set, cut, set.n_rows);
    for (std::size_t t = 0; t < whole.sums.size(); ++t) {
        CHECK(left.sums[t] + right.sums[t] == whole.sums[t]);
    }
    for (std::size_t t = 0; t < whole.histograms.size(); ++t) {
        CHECK(left.histograms[t] + right.histograms[t] == whole.histograms[t]);
    }
}

// Whatever attribute it is, the bins of a node have all its rows between them.
void check_totals(const DataSet& set, const Answers& whole) {
    const HistogramShape shape = set.shape();
    const SumsShape sums{set.n_states(), set.per_state + 1};
    const std::vector<std::size_t> starts = shape.starts();
    for (std::size_t s = 0; s < set.n_slots(); ++s) {
        const Whole* node = whole.sums.data() + s * sums.size();
        for (std::size_t a = 0; a < set.n_attributes(); ++a) {
            std::vector<Whole> total(shape.per_cell, 0);
            const auto cells = static_cast<std::size_t>(set.n_bins[a]) + 1;
            for (std::size_t t = 0; t < cells * shape.per_cell; ++t) {
                total[t % shape.per_cell] += whole.histograms[s * shape.size() + starts[a] + t];
            }
            CHECK(total[0] == node[SumsShape::weight]);
            for (std::size_t j = 0; j < set.n_states(); ++j) {
                const Whole* state = node + SumsShape::first + j * sums.per_state();
                CHECK(total[1 + 2 * j] == state[0]);
                CHECK(total[2 + 2 * j] == state[sums.width]);
            }
        }
    }
}

struct Grown {
    BestSplits best;
    std::vector<std::int32_t> first, attribute, cut, missing, first_child, table;
};

// Every node is split, if it can be; the children of a tree come after its nodes.
Grown split_all(const DataSet& set, const Answers& whole, double least) {
    Grown grown;
    const HistogramShape shape = set.shape();
    SplitSearch search(shape, set.numeric, set.n_states(), {0.05, least}, units_of(set).plain);
    for (std::size_t s = 0; s < set.n_slots(); ++s) {
        search.find(whole.histograms.data() + s * shape.size(), 1.0, grown.best);
    }
    grown.first.push_back(0);
    for (std::size_t tree = 0; tree < set.n_trees(); ++tree) {
        const std::int32_t size = set.first[tree + 1] - set.first[tree];
        for (std::int32_t v = 0; v < size * 3; ++v) {
            const auto s = static_cast<std::size_t>(
                v < size ? set.of_node[static_cast<std::size_t>(set.first[tree] + v)] : 0);
            grown.attribute.push_back(v < size ? grown.best.attribute[s] : -1);
            grown.cut.push_back(grown.best.cut[s]);
            grown.missing.push_back(grown.best.missing[s]);
            grown.table.push_back(grown.best.table[s]);
            grown.first_child.push_back(size + 2 * v);
        }
        grown.first.push_back(grown.first.back() + size * 3);
    }
    return grown;
}

// What the rows of a node on each side add up to gains what the split says.
void check_splits(const DataSet& set, const Grown& grown, std::span<const Node> routed,
                  double least) {
    const Chunk chunk = set.chunk(0, set.n_rows);
    for (std::size_t tree = 0; tree < set.n_trees(); ++tree) {
        const std::int32_t size = set.first[tree + 1] - set.first[tree];
        std::vector<double> weight(static_cast<std::size_t>(size) * 3, 0.0);
        for (std::size_t i = 0; i < set.n_rows; ++i) {
            const Node before = set.nodes[tree * set.n_rows + i];
            const Node after = routed[tree * set.n_rows + i];
            const std::size_t at = static_cast<std::size_t>(grown.first[tree]) + before;
            if (grown.attribute[at] < 0) {
                CHECK(after == before);
                continue;
            }
            CHECK(after == size + 2 * before || after == size + 2 * before + 1);
            if (!Positions::holds_out(tree, set.fold[i])) weight[after] += chunk.weight(i);
            const auto a = static_cast<std::size_t>(grown.attribute[at]);
            const std::size_t code = chunk.code(i, a);
            if (code == static_cast<std::size_t>(set.n_bins[a])) {
                CHECK(after - (size + 2 * before) == grown.missing[at]);
            } else if (set.numeric[a] != 0) {
                CHECK((after == size + 2 * before) ==
                      (static_cast<std::int32_t>(code) <= grown.cut[at]));
            }
        }
        for (std::int32_t v = 0; v < size; ++v) {
            const auto at = static_cast<std::size_t>(grown.first[tree] + v);
            if (grown.attribute[at] < 0) {
                ++seen.no_split;
                continue;
            }
            const auto child = static_cast<std::size_t>(grown.first_child[at]);
            CHECK(weight[child] >= least - 1e-9 && weight[child + 1] >= least - 1e-9);
            const auto a = static_cast<std::size_t>(grown.attribute[at]);
            ++(set.numeric[a] != 0 ? seen.on_numbers : seen.on_categories);
        }
    }
    for (std::size_t s = 0; s < set.n_slots(); ++s) {
        CHECK(grown.best.attribute[s] < 0 || grown.best.gain[s] > 0.0);
        CHECK(std::isfinite(grown.best.gain[s]));
        seen.with_missing += grown.best.attribute[s] >= 0 && grown.best.missing_rows[s] > 0.0;
    }
}

void check_predictions(Chance& chance, const DataSet& set, Digest& digest) {
    const std::size_t n_levels = chance.from_to(1, 3);
    std::vector<std::int32_t> ancestor;
    for (std::size_t t = 0; t < set.n_slots() * n_levels; ++t) {
        ancestor.push_back(static_cast<std::int32_t>(chance.from_to(0, set.n_slots() - 1)));
    }
    Sight sight = set.sight();
    const Chunk chunk = set.chunk(0, set.n_rows);
    const Positions positions{set.nodes.data(), set.n_trees(), set.n_rows};
    const std::vector<float> found = held_out_predictions(
        chunk, sight, positions, set.first, ancestor, n_levels, set.parameters.data());
    CHECK(found.size() == n_levels * set.n_rows * set.n_states());
    for (std::size_t t = 0; t < n_levels * set.n_rows; ++t) {
        double sum = 0.0;
        for (std::size_t j = 0; j < set.n_states(); ++j) {
            const auto p = static_cast<double>(found[t * set.n_states() + j]);
            CHECK(p >= 0.0 && p <= 1.0);
            digest.add(p);
            sum += p;
        }
        const bool held_out = set.fold[t % set.n_rows] != in_no_fold;
        CHECK(held_out || sum == 0.0);
        if (held_out && set.n_states() > 1) CHECK(std::abs(sum - 1.0) < 1e-5);
    }
}

void check_bins(Chance& chance) {
    std::vector<double> values;
    const int kind = static_cast<int>(chance.from_to(0, 2));
    for (std::size_t i = chance.from_to(0, 300); i > 0; --i) {
        values.push_back(kind == 0   ? chance.between(-1.0, 1.0)
                         : kind == 1 ? std::round(chance.between(-4.0, 4.0))
                                     : chance.one_of({-1e308, -0.0, 0.0, 5e-324, 1e308}));
    }
    const std::size_t max_bins = chance.one_of<std::size_t>({2, 10, 255, 300});
    const std::vector<double> ends = cuts(values, {}, max_bins);
    CHECK(ends.size() < max_bins && std::is_sorted(ends.begin(), ends.end()));
    values.push_back(not_a_number);
    const Numbers<double> numbers{values.data(), 1, values.size()};
    std::vector<std::uint16_t> codes(values.size() * 3);
    const auto missing = static_cast<std::uint16_t>(ends.size() + 1);
    bin_numbers(numbers, ends, missing, codes.data(), 3);
    for (std::size_t i = 0; i + 1 < values.size(); ++i) {
        const auto below =
            std::count_if(ends.begin(), ends.end(), [&](double end) { return end < values[i]; });
        CHECK(codes[i * 3] == below);
    }
    CHECK(codes[(values.size() - 1) * 3] == missing);
    const auto different = distinct(numbers, values.size());
    CHECK(different && std::adjacent_find(different->begin(), different->end(),
                                          std::greater_equal<>()) == different->end());
    CHECK(different->size() <= max_bins ? ends.size() + 1 >= different->size()
                                        : ends.size() + 1 <= max_bins);
    if (!different->empty()) CHECK(!distinct(numbers, different->size() - 1));
}

void check_data_set(std::uint64_t seed, Digest& digest) {
    Chance chance(seed);
    const DataSet set = random_data_set(chance);
    const Answers whole = ask(set, 0, set.n_rows);
    digest.add(whole.sums);
    digest.add(whole.histograms);
    check_parts(chance, set, whole);
    check_totals(set, whole);
    const double least = chance.one_of({1.0, 2.5, 20.0});
    const Grown grown = split_all(set, whole, least);
    digest.add(grown.best.gain);
    const SplitTables splits{grown.first,       grown.attribute, grown.cut,           grown.missing,
                             grown.first_child, grown.table,     grown.best.branches, set.n_bins};
    const Positions positions{set.nodes.data(), set.n_trees(), set.n_rows};
    const std::vector<Node> gone = routed(set.chunk(0, set.n_rows), positions, splits);
    check_splits(set, grown, gone, least);
    check_predictions(chance, set, digest);
    check_bins(chance);
}

}  // namespace

int main(int argc, char** argv) {
    constexpr std::size_t n_data_sets = 400;
    Digest digest;
    check_logistic(digest);
    check_node_models(digest);
    for (; current_data_set < n_data_sets; ++current_data_set) {
        check_data_set(current_data_set, digest);
    }
    CHECK(seen.on_numbers > 200 && seen.on_categories > 200);
    CHECK(seen.with_missing > 200 && seen.no_split > 100);
    std::printf("%zu data sets, kernels: %s\n", n_data_sets, kernels().name);
    std::printf("%016llx\n", static_cast<unsigned long long>(digest.value()));
    if (argc > 1) std::ofstream(argv[1]) << std::hex << digest.value() << '\n';
    return 0;
}
