"""The trainer side: what the policy being trained says of the very tokens that were sampled."""
