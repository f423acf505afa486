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

static constexpr std::size_t pack_size = sizeof(Pack4) / sizeof(double);
