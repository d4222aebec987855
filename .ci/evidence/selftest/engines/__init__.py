"""Causes planted in real engines: vLLM's CPU builds, V0 (0.8.5) and V1 (0.18.1), and a real trainer."""
