// Cuts of numbers in two, by the evidence below them; see kernels.inl.

static bool any_cut_gains(const Evidence* below, Evidence all, double gain, std::size_t n) {
    n = whole_vectors(n);
    const double mean = all.weight > 0.0 ? all.response / all.weight : 0.0;
    std::uint64_t found = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const double around = below[i].response - below[i].weight * mean;
        const double product = below[i].weight * (all.weight - below[i].weight);
        found += static_cast<std::uint64_t>(around * around >= product * gain);
    }
    return found > 0;
}
