"""NeMo-RL."""
