// Orders of rows, divided in two; see kernels.inl.

static std::size_t divide_order(const Ranked<std::uint16_t>* order, std::size_t n,
                                const std::uint8_t* is_high, Ranked<std::uint16_t>* low,
                                Ranked<std::uint16_t>* high) {
    std::size_t i = 0, n_high = 0;
#ifdef __AVX512F__
    static_assert(sizeof(*order) == sizeof(int) && spare_places == sizeof(__m512i) / sizeof(int));
    for (; i + spare_places <= n; i += spare_places) {
        unsigned bits = 0;
        for (std::size_t k = spare_places; k-- > 0;) {
            bits = 2 * bits + is_high[order[i + k].row];
        }
        const auto to_high = static_cast<__mmask16>(bits);
        const __m512i places = _mm512_loadu_si512(order + i);
        const auto to_low = static_cast<__mmask16>(~bits);
        _mm512_storeu_si512(low + (i - n_high), _mm512_maskz_compress_epi32(to_low, places));
        _mm512_storeu_si512(high + n_high, _mm512_maskz_compress_epi32(to_high, places));
        n_high += static_cast<std::size_t>(std::popcount(bits));
    }
#endif
    // Writes each to both and moves on in one of them, which takes no guess of the processor's.
    for (; i < n; ++i) {
        const Ranked<std::uint16_t> one = order[i];
        low[i - n_high] = one;
        high[n_high] = one;
        n_high += is_high[one.row];
    }
    return n_high;
}
