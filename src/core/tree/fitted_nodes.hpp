// The node models of a tree, and how well they fit.
#pragma once

#include <cstdint>
#include <vector>

namespace caltree {

// One entry per node. Errors are sums over rows: squared errors, mean over classes, or
// deviances, or ones for rows of another class than the most probable.
struct FittedNodes {
    std::vector<double> error;           // of the training rows that reach the node
    std::vector<double> held_out_error;  // of the held-out rows that reach it
    std::vector<std::uint8_t> own;       // whether the model differs from the parent's
    std::vector<double> parameters;      // n_nodes x parameters of a model; or none
    double total = 0.0;                  // weight of the training rows
    double held_out_total = 0.0;         // and of the held-out ones
};

}  // namespace caltree
