"""rlaudit: are the logprobs of your next vLLM still the ones your RL trainer assumes?"""

__all__ = ["__version__"]

# Literal, as a build from a shallow clone or an archive knows no tag; pyproject.toml reads it here.
__version__ = "0.4.0"
