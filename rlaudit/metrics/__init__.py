"""How far apart rollout and trainer logprobs are: one metric a file."""
