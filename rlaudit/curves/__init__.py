"""Training curves of two runs: when they separate, by how much, and in which order."""
