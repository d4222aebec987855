"""Faults with known causes, planted in simulated worlds."""
