// Small vectors of doubles; see kernels.inl.

template <class Pack>
static inline Pack load(const double* from) {
    Pack pack;
    std::memcpy(&pack, from, sizeof(Pack));
    return pack;
}

template <class Pack>
static inline void store(double* to, const Pack& pack) {
    std::memcpy(to, &pack, sizeof(Pack));
}

// The pack with another number in its last place.
static inline Pack4 with_last(Pack4 pack, double value) {
#if defined(__GNUC__)
    return __builtin_shufflevector(pack, Pack4{value, value, value, value}, 0, 1, 2, 7);
#else
    pack.v[3] = value;
    return pack;
#endif
}

template <class Pack>
static constexpr std::size_t lanes = sizeof(Pack) / sizeof(double);

static constexpr std::size_t pack_size = lanes<Pack4>;

// Rows side by side: as many as the widest vectors hold, and then as many as rows are padded to.
// Without vectors of that size one at a time, for the compiler to make some of.
#if defined(__AVX512F__)
using RowPack = Pack8;
using OddRows = Pack4;
#elif defined(__AVX__)
using RowPack = Pack4;
using OddRows = Pack4;
#else
using RowPack = double;
using OddRows = double;
#endif

// Calls `work<Pack>(first row)` until n rows, a multiple of row_multiple, are covered.
template <class Work>
static inline void for_rows(std::size_t n, Work&& work) {
    std::size_t i = 0;
    for (; i + lanes<RowPack> <= n; i += lanes<RowPack>) work.template operator()<RowPack>(i);
    for (; i < n; i += lanes<OddRows>) work.template operator()<OddRows>(i);
}

// The bits of doubles, as integers that can be shifted.
template <class Pack>
struct BitsOf {
    using Type = std::uint64_t;
};
#if defined(__GNUC__)
template <>
struct BitsOf<Pack4> {
    typedef std::uint64_t Type __attribute__((vector_size(32)));
};
template <>
struct BitsOf<Pack8> {
    typedef std::uint64_t Type __attribute__((vector_size(64)));
};
#endif

// a b + c with one rounding.
#ifdef __FMA__
static inline double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
static inline Pack4 fused(Pack4 a, Pack4 b, Pack4 c) { return _mm256_fmadd_pd(a, b, c); }
#ifdef __AVX512F__
static inline Pack8 fused(Pack8 a, Pack8 b, Pack8 c) { return _mm512_fmadd_pd(a, b, c); }
#endif
#endif

template <class Mask, class Pack>
static inline Pack choose(Mask mask, Pack yes, Pack no) {
    return mask ? yes : no;
}

// a > b ? a : b, also where they are no numbers.
template <class Pack>
static inline Pack larger_of(Pack a, Pack b) {
    return choose(a > b, a, b);
}

// a < b ? a : b, also where they are no numbers.
template <class Pack>
static inline Pack smaller_of(Pack a, Pack b) {
    return choose(a < b, a, b);
}

// The number without its sign.
static inline double size_of(double x) { return x < 0.0 ? -x : x; }

#ifdef __FMA__
static inline Pack4 larger_of(Pack4 a, Pack4 b) { return _mm256_max_pd(a, b); }
static inline Pack4 smaller_of(Pack4 a, Pack4 b) { return _mm256_min_pd(a, b); }
static inline Pack4 size_of(Pack4 x) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), x); }
#ifdef __AVX512F__
static inline Pack8 larger_of(Pack8 a, Pack8 b) { return _mm512_maskz_max_pd(0xff, a, b); }
static inline Pack8 smaller_of(Pack8 a, Pack8 b) { return _mm512_maskz_min_pd(0xff, a, b); }
static inline Pack8 size_of(Pack8 x) { return _mm512_abs_pd(x); }
#endif
#endif

template <class Pack>
static inline Pack at_least(Pack x, double low) {
    return larger_of(x, Pack{} + low);
}
