"""Factors: one file each. A factor is one thing that differs between two engines, and how to prove it did."""
