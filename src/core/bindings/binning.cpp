// The bindings of bins: distinct values, cuts between them, and codes.
#include "data/binning.hpp"

#include "bindings/bindings.hpp"

using namespace caltree;

namespace {

using Strided = nb::ndarray<nb::ro, nb::ndim<1>, nb::device::cpu>;
using CodesOut = nb::ndarray<nb::ndim<1>, nb::device::cpu>;

template <class Visit>
auto with_numbers(const Strided& values, Visit&& visit) {
    if (values.dtype() == nb::dtype<float>()) {
        return visit(Numbers<float>{static_cast<const float*>(values.data()), values.stride(0),
                                    values.shape(0)});
    }
    require(values.dtype() == nb::dtype<double>(), "numbers of four or eight bytes");
    return visit(Numbers<double>{static_cast<const double*>(values.data()), values.stride(0),
                                 values.shape(0)});
}

nb::object distinct_values(const Strided& values, std::size_t most) {
    require(most >= 1 && most <= most_bins, "between 1 and 65534 values");
    std::optional<std::vector<double>> found;
    {
        const Released released;
        found =
            with_numbers(values, [most](const auto& numbers) { return distinct(numbers, most); });
    }
    return found ? to_numpy(std::move(*found)) : nb::none();
}

nb::object cuts_between(const Array<double>& values, const std::optional<Array<double>>& weights,
                        std::size_t max_bins) {
    require(max_bins >= 2 && max_bins <= most_bins, "between 2 and 65534 bins");
    require(!weights || weights->shape(0) == values.shape(0), "one weight per value");
    return to_numpy(
        cuts(view(values), weights ? view(*weights) : std::span<const double>(), max_bins));
}

void put_into_bins(const Strided& values, const Array<double>& cuts, std::size_t missing,
                   const CodesOut& codes) {
    require(codes.shape(0) == values.shape(0), "one code per value");
    require(cuts.shape(0) < missing && missing <= most_bins + 1, "one code for missing values");
    const bool narrow = codes.dtype() == nb::dtype<std::uint8_t>();
    require(narrow || codes.dtype() == nb::dtype<std::uint16_t>(),
            "codes must have one or two bytes");
    require(!narrow || missing <= 255, "more bins than a byte can tell apart");
    const Released released;
    with_numbers(values, [&](const auto& numbers) {
        if (narrow) {
            bin_numbers(numbers, view(cuts), static_cast<std::uint8_t>(missing),
                        static_cast<std::uint8_t*>(codes.data()), codes.stride(0));
        } else {
            bin_numbers(numbers, view(cuts), static_cast<std::uint16_t>(missing),
                        static_cast<std::uint16_t*>(codes.data()), codes.stride(0));
        }
        return 0;
    });
}

}  // namespace

void caltree::bind_binning(nb::module_& m) {
    using namespace nb::literals;
    m.def("distinct_values", &distinct_values, "values"_a, "most"_a);
    m.def("cuts", &cuts_between, "values"_a, "weights"_a.none(), "max_bins"_a);
    m.def("put_into_bins", &put_into_bins, "values"_a, "cuts"_a, "missing"_a, "codes"_a);
}
