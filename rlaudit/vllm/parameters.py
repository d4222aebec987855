"""How a function of vLLM is called, in one word: `self,request,parent_req=,*,queue=`."""

from dataclasses import dataclass
from functools import lru_cache

ANY_NAME, BY_NAME, DEFAULT = "**", "*", "="
# No blank: a list of names by release keeps several words in one text.
_BETWEEN = ","


@dataclass(frozen=True)
class Parameters:
    """The parameters of a function."""

    # Those that may be passed without a name, in order.
    positional: tuple[str, ...]
    named: frozenset[str]
    # Those without a default.
    required: frozenset[str]
    # Whether any further ones are taken without a name, and whether any names are.
    rest: bool
    names: bool


@lru_cache(maxsize=2048)
def parameters(text: str) -> Parameters:
    """Return the parameters that a word stands for."""
    words = text.split(_BETWEEN)
    at = next((at for at, word in enumerate(words) if word.startswith(BY_NAME)), len(words))
    plain = [word for word in words if not word.startswith(BY_NAME) and word]
    names = [word.removesuffix(DEFAULT) for word in plain]
    positional = tuple(word.removesuffix(DEFAULT) for word in words[:at] if word)
    required = frozenset(word for word in plain if not word.endswith(DEFAULT))
    rest = any(word.startswith(BY_NAME) and word not in {BY_NAME, ANY_NAME} for word in words)
    return Parameters(positional, frozenset(names), required, rest, ANY_NAME in words)
