"""How far apart rollout and trainer logprobs are, and in which way."""
