// The module `_core`; each part of it binds itself.
#include "bindings/bindings.hpp"
#include "kernels/kernels.hpp"

using namespace caltree;

NB_MODULE(_core, m) {
    using namespace nb::literals;
    // What a module still holds when Python ends is no leak, and no news to its user.
    nb::set_leak_warnings(false);
    nb::exception<Stopped>(m, "Stopped", PyExc_KeyboardInterrupt);
    nb::class_<StopToken>(m, "StopToken")
        .def(nb::init<>())
        .def("set", &StopToken::set)
        .def("watch", &StopToken::watch);
    Released::set_main_thread(nb::cast<unsigned long>(
        nb::module_::import_("threading").attr("main_thread")().attr("ident")));
    nb::module_::import_("atexit").attr("register")(nb::cpp_function(&AtExit::stop_all));
    m.attr("instruction_set") = kernels().name;
    m.attr("smallest_probability") = smallest_likelihood;
    nb::class_<Training>(m, "Training")
        .def(nb::init<Matrix, const Array<std::int32_t>&, const Array<double>&, Array<Label>,
                      std::size_t, ColumnMajor, std::optional<Array<double>>>(),
             "matrix"_a, "n_categories"_a, "fills"_a, "labels"_a, "n_classes"_a, "scores"_a,
             "weights"_a.none());
    bind_tree(m);
    bind_published(m);
    bind_shrunken(m);
    bind_binning(m);
    bind_boosted(m);
    bind_histogram(m);
    bind_learners(m);
}
