"""Sampled tokens and what trainer and rollout say of each: logs read in whole sequences, aligned and checked."""
