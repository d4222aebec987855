"""laboratory: TODO one sentence."""
