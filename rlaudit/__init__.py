"""rlaudit: are the logprobs of your next vLLM still the ones your RL trainer assumes?"""

__version__ = "0.1.0"
