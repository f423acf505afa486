"""Random problems for all calibrators, and the invariants that must hold for each of them."""
