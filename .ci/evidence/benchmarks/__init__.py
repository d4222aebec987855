"""Measurements that take minutes and run by hand: `cd .ci && python -m evidence.benchmarks.NAME`."""
