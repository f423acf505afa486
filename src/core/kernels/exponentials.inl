// Exponentials, and the probabilities that are made of them; see kernels.inl.

static inline std::size_t whole_vectors(std::size_t n) { return n / row_multiple * row_multiple; }

// Down to here exponentials are tame: nothing that is made of them comes near the smallest numbers,
// so that quotients may be found by multiplication, and a power of two in one step.
static constexpr double tame_exponent = -650.0;

// a / b to the last bit, given 1 / b to the last bit. The remainder of the product a (1 / b) is
// exact, and is what the product is corrected by: with one rounding, the result is the nearest
// number to a / b (Markstein, 1990), if a is tame.
template <class Pack>
static inline Pack quotient(Pack a, Pack b, [[maybe_unused]] Pack per_b) {
#ifdef __FMA__
    const Pack product = a * per_b;
    return fused(fused(-product, b, a), per_b, product);
#else
    return a / b;
#endif
}

// The exponent is kept in the low bits of a number that was shifted.
template <class Pack>
static inline Pack power_of_two(Pack shifted) {
    return std::bit_cast<Pack>((std::bit_cast<typename BitsOf<Pack>::Type>(shifted) + 1023) << 52);
}

// x = k ln 2 + rest, k the nearest integer to x / ln 2, so that exp(x) = 2^k exp(rest).
template <class Pack>
struct Reduced {
    Pack shifted, rest;  // k in the low bits of a shifted number; at most ln 2 / 2 in size
};

static constexpr double shift_to_integer = 0x1.8p52;  // adding it rounds to one

// If `tame`, smaller numbers than the tame are held there.
template <bool tame, class Pack>
static inline Reduced<Pack> reduce(Pack x) {
    constexpr double ln2_high = 6.93147180369123816490e-01;
    constexpr double ln2_low = 1.90821492927058770002e-10;
    const Pack inside = at_least(x, tame ? tame_exponent : -746.0);
    const Pack shifted = inside * 1.44269504088896338700e+00 + shift_to_integer;
    const Pack k = shifted - shift_to_integer;
    return {shifted, (inside - k * ln2_high) - k * ln2_low};
}

template <bool tame, class Pack>
static inline Pack exp_of_reduced(Reduced<Pack> x) {
    // (exp(r) - 1 - r) / r^2, interpolated at Chebyshev's points: relative error of exp 2e-17.
    // Summed in pairs, for the sake of many short chains instead of one long one.
    const Pack r = x.rest;
    const Pack r2 = r * r;
    const Pack r4 = r2 * r2;
    const Pack low = (0x1.0000000000001p-1 + 0x1.5555555555556p-3 * r) +
                     (0x1.5555555553d64p-5 + 0x1.11111111109b4p-7 * r) * r2;
    const Pack middle = (0x1.6c16c1788b646p-10 + 0x1.a01a01a7c3d59p-13 * r) +
                        (0x1.a019b90eefe8ep-16 + 0x1.71de0daf7a6ccp-19 * r) * r2;
    const Pack high = 0x1.2891834686c7ep-22 + 0x1.af38a71a18cb9p-26 * r;
    const Pack q = low + (middle + high * r4) * r4;
    const Pack fraction = 1.0 + (r + r2 * q);
    if (tame) return fraction * power_of_two(x.shifted);
    // In two steps: 2^k alone may lie below the normal numbers.
    const Pack k = x.shifted - shift_to_integer;
    const Pack upper = at_least(k, -1000.0);
    return fraction * power_of_two(upper + shift_to_integer) *
           power_of_two((k - upper) + shift_to_integer);
}

// exp(x) for x <= 0, within one unit in the last place, 0 where the true value rounds to it.
// The same on every machine, which the C library's is not. If `tame`, smaller ones than the tame
// are held there.
template <bool tame = false, class Pack>
static inline Pack exp_of_nonpositive(Pack x) {
    return exp_of_reduced<tame>(reduce<tame>(x));
}

static void highest(const double* CALTREE_RESTRICT F, ClassList classes, std::size_t F_stride,
                    double* CALTREE_RESTRICT largest, std::size_t n) {
    for_rows(n, [&]<class Pack>(std::size_t i) {
        Pack most = load<Pack>(F + classes.index[0] * F_stride + i);
        for (std::size_t k = 1; k < classes.count; ++k) {
            most = larger_of(load<Pack>(F + classes.index[k] * F_stride + i), most);
        }
        store(largest + i, most);
    });
}

static bool all_between(const double* CALTREE_RESTRICT Fj, const double* CALTREE_RESTRICT largest,
                        double low, double high, std::size_t n) {
    n = whole_vectors(n);
    std::uint64_t outside = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const double below = Fj[i] - largest[i];
        outside += static_cast<std::uint64_t>(!(below > low)) |
                   static_cast<std::uint64_t>(!(below < high));
    }
    return outside == 0;
}

// The largest F of each row, and whether no other lies further below it than is tame.
static bool highest_and_tame(const double* CALTREE_RESTRICT F, ClassList classes,
                             std::size_t F_stride, double* CALTREE_RESTRICT largest,
                             std::size_t n) {
    double lowest[block_rows];
    for_rows(n, [&]<class Pack>(std::size_t i) {
        Pack most = load<Pack>(F + classes.index[0] * F_stride + i);
        Pack least = most;
        for (std::size_t k = 1; k < classes.count; ++k) {
            const Pack Fk = load<Pack>(F + classes.index[k] * F_stride + i);
            most = larger_of(Fk, most);
            least = smaller_of(Fk, least);
        }
        store(largest + i, most);
        store(lowest + i, least - most);
    });
    std::uint64_t outside = 0;
    for (std::size_t i = 0; i < whole_vectors(n); ++i) {
        outside += static_cast<std::uint64_t>(!(lowest[i] > tame_exponent));
    }
    return outside == 0;
}

// exp(F - the largest F) of some classes, in columns p_stride apart, and their total; returns
// whether all of them are tame. If `tame`, others are held at the smallest tame one. If `eights`,
// the total is added up as NumPy adds up rows.
template <bool tame, std::size_t p_stride, bool eights = false>
static bool exponentials(const double* CALTREE_RESTRICT F, ClassList classes, std::size_t F_stride,
                         double* CALTREE_RESTRICT p, double* CALTREE_RESTRICT total,
                         std::size_t n) {
    double largest[p_stride];
    const bool all_tame = highest_and_tame(F, classes, F_stride, largest, n);
    for (std::size_t k = 0; k < classes.count; ++k) {
        const double* Fk = F + classes.index[k] * F_stride;
        double* pk = p + k * p_stride;
        for_rows(n, [&]<class Pack>(std::size_t i) {
            store(pk + i, exp_of_nonpositive<tame>(load<Pack>(Fk + i) - load<Pack>(largest + i)));
        });
    }
    if (eights && classes.count >= 8) {
        for (std::size_t i = 0; i < n; ++i) {
            total[i] = sum_in_eights(p + i, p_stride, classes.count);
        }
        return all_tame;
    }
    for_rows(n, [&]<class Pack>(std::size_t i) {
        Pack sum = load<Pack>(p + i);
        for (std::size_t k = 1; k < classes.count; ++k) {
            sum = sum + load<Pack>(p + k * p_stride + i);
        }
        store(total + i, sum);
    });
    return all_tame;
}

// e / total, given 1 / total.
template <bool tame, class Pack>
static inline Pack share_of(Pack e, Pack total, Pack per_total) {
    return tame ? quotient(e, total, per_total) : e / total;
}

template <bool tame>
static void divide_by_total(double* CALTREE_RESTRICT p, std::size_t m,
                            const double* CALTREE_RESTRICT total, std::size_t n) {
    for_rows(n, [&]<class Pack>(std::size_t i) {
        const Pack sum = load<Pack>(total + i);
        const Pack per_sum = 1.0 / sum;
        for (double* pk = p + i; pk < p + m * block_rows; pk += block_rows) {
            store(pk, share_of<tame>(load<Pack>(pk), sum, per_sum));
        }
    });
}

static void softmax(const double* CALTREE_RESTRICT F, ClassList classes, std::size_t F_stride,
                    double* CALTREE_RESTRICT p, std::size_t n) {
    double total[block_rows];
    const bool tame = exponentials<false, block_rows>(F, classes, F_stride, p, total, n);
    (tame ? divide_by_total<true> : divide_by_total<false>)(p, classes.count, total, n);
}

static void sigmoid(const double* CALTREE_RESTRICT d, double* CALTREE_RESTRICT p0,
                    double* CALTREE_RESTRICT p1, std::size_t n) {
    n = whole_vectors(n);
    for (std::size_t i = 0; i < n; ++i) {
        const double e = exp_of_nonpositive(d[i] > 0.0 ? -d[i] : d[i]);
        const double larger = 1.0 / (1.0 + e);
        const double smaller = e * larger;
        p1[i] = d[i] > 0.0 ? larger : smaller;
        p0[i] = d[i] > 0.0 ? smaller : larger;
    }
}

// log(1 + e) for e from 0 to 1, by 2 atanh(e / (2 + e)): interpolated at Chebyshev's points, with a
// relative error of 3e-18 before rounding.
static inline double log_of_one_plus(double e) {
    const double s = e / (2.0 + e);
    const double t = s * s;
    const double t2 = t * t;
    const double t4 = t2 * t2;
    const double low = (0x1.0000000000000p+0 + 0x1.5555555555527p-2 * t) +
                       (0x1.99999999a1c4fp-3 + 0x1.249249201beacp-3 * t) * t2;
    const double middle = (0x1.c71c7445b2127p-4 + 0x1.745caf74cbe5ep-4 * t) +
                          (0x1.3b1e2bc8a12dep-4 + 0x1.106443d797a85p-4 * t) * t2;
    const double high =
        (0x1.f00852a5c69fap-5 + 0x1.54f8c703ce149p-5 * t) + 0x1.5d1081172f887p-4 * t2;
    return 2.0 * s * (low + (middle + high * t4) * t4);
}

static void logistic(const double* CALTREE_RESTRICT d, double* CALTREE_RESTRICT p,
                     double* CALTREE_RESTRICT norm, std::size_t n) {
    n = whole_vectors(n);
    double shifted[block_rows];
    for (std::size_t i = 0; i < n; ++i) {
        const Reduced<double> reduced = reduce<false>(d[i] > 0.0 ? -d[i] : d[i]);
        shifted[i] = reduced.shifted;
        norm[i] = reduced.rest;
    }
    for (std::size_t i = 0; i < n; ++i) {
        const double positive = d[i] > 0.0 ? d[i] : 0.0;
        const double e = exp_of_reduced<false>(Reduced<double>{shifted[i], norm[i]});
        const double larger = 1.0 / (1.0 + e);
        p[i] = d[i] > 0.0 ? larger : e * larger;
        norm[i] = positive + log_of_one_plus(e);
    }
}
