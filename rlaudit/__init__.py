"""rlaudit: are the logprobs of your next vLLM still the ones your RL trainer assumes?"""

__all__ = ["__version__"]

try:
    # The build writes it, from the git tag; a working copy that was never installed has none.
    from rlaudit._version import __version__
except ImportError:
    __version__ = "0.0.0"
