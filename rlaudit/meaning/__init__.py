"""What the logprobs mean: what an engine reports, what its tokens were drawn from, and what the trainer computes."""
