// The kernels, to be included once per instruction set, in a namespace of its own.
// Most loops over rows are plain: the compiler makes vectors of them, and whole ones only, since it
// is told that there are no odd rows at the end. Where all classes are worked off a few rows at a
// time, the vectors are written out.

#include "kernels/packs.inl"
//
#include "kernels/exponentials.inl"
//
#include "kernels/logistic.inl"
//
#include "kernels/boosting.inl"
//
#include "kernels/moments.inl"
//
#include "kernels/evidence.inl"
//
#include "kernels/cuts.inl"
//
#include "kernels/orders.inl"
//
#include "kernels/regressions.inl"

static constexpr Kernels all_kernels(const char* name) {
    return {name,
            add_line,
            set_line,
            add_centred,
            highest,
            all_between,
            softmax,
            sigmoid,
            logistic,
            logistic_losses,
            logistic_derivatives,
            respond_to_all,
            respond_in_eights,
            respond_to_two,
            first_moments,
            second_moments,
            residuals,
            moments,
            respond_by_residuals,
            slopes_and_gains,
            slopes_and_errors,
            squared_error,
            add_to_bins,
            take_bins,
            cut_gains,
            sort_few,
            any_cut_gains,
            add_up_moments,
            centre,
            add_up_orders,
            which_gain,
            add_up_sides,
            divide_order};
}
