"""The trainer side: the policy's logprobs of the sampled tokens."""
