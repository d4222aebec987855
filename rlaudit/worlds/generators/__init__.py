"""Families of simulated models: thresholds may be tuned on `development`, and are judged on `held_out`."""
