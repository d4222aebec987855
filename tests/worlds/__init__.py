"""Simulated models and rollouts in which a fault can be planted: what is said of them is held to the truth."""
