"""How functions and classes of vLLM's modules are called in each release, of those whose parameters have changed.

One file for all releases, data/callables.json, made with the catalogue. A class stands for its constructor, and
`Class.method` for what is called on the class itself. Parameters are one text: `engine state= * seed= **`, where `=` is
a default, `*` begins those that need their name, `*args` takes any further ones, and `**` any name.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

from packaging.version import Version

from rlaudit.vllm.catalogue import DATA, Catalogue
from rlaudit.vllm.importable import Index

FILE = "callables.json"
ANY_NAME, BY_NAME, DEFAULT = "**", "*", "="


@dataclass(frozen=True)
class Parameters:
    """positional: those that may be passed without a name, in order. required: those without a default. rest: whether
    any further ones are taken, and names: whether any names are.
    """

    positional: tuple[str, ...]
    named: frozenset[str]
    required: frozenset[str]
    rest: bool
    names: bool

    def refuses(self, given: int, keywords: Collection[str], *, whole: bool) -> str:
        """Why a call is refused, "" where it is not. whole: whether all that it passes is told."""
        unknown = [one for one in keywords if one not in self.named]
        if unknown and not self.names:
            return f"takes no {unknown[0]}"
        if given > len(self.positional) and not self.rest:
            return f"takes {len(self.positional)} arguments without a name, and not {given}"
        filled = {*self.positional[:given], *keywords}
        missing = [one for one in (*self.positional, *sorted(self.named)) if one in self.required - filled]
        return f"needs {missing[0]}" if whole and missing else ""


def refused(path: str, given: Sequence[str], keywords: Collection[str], vllm: Version, *, whole: bool) -> str:
    """Why a release refuses a call of a function or class that another release takes; "" where nothing says so.

    path: `vllm.module.name`, as it is imported. given: the arguments without a name, by the variables that they are,
    "" for any other expression.
    """
    release = Catalogue.at(vllm)
    spans = _read().spans.get(path, {})
    here = next(iter(_read().names(path, release.version)), "") if release.exact and spans else ""
    if not here:
        return ""
    now, others = parameters(here), [parameters(text) for text in spans.values()]
    why = now.refuses(len(given), keywords, whole=whole)
    if why:
        return why if any(not one.refuses(len(given), keywords, whole=whole) for one in others) else ""
    # What another release calls so in its place, and this one has no word for.
    for at, (taken, name) in enumerate(zip(now.positional, given, strict=False)):
        if name and name not in now.named and any(one.positional[at : at + 1] == (name,) for one in others):
            return f"takes {taken} where {name} is passed"
    return ""


@lru_cache(maxsize=2048)
def parameters(text: str) -> Parameters:
    """Of the text that the file has for one release."""
    words = text.split(_BETWEEN)
    at = next((at for at, word in enumerate(words) if word.startswith(BY_NAME)), len(words))
    plain = [word for word in words if not word.startswith(BY_NAME) and word]
    names = [word.removesuffix(DEFAULT) for word in plain]
    positional = tuple(word.removesuffix(DEFAULT) for word in words[:at] if word)
    required = frozenset(word for word in plain if not word.endswith(DEFAULT))
    rest = any(word.startswith(BY_NAME) and word not in {BY_NAME, ANY_NAME} for word in words)
    return Parameters(positional, frozenset(names), required, rest, ANY_NAME in words)


# No blank: the index of releases keeps several names in one text.
_BETWEEN = ","


@lru_cache(maxsize=1)
def _read() -> Index:
    stored = json.loads((DATA / FILE).read_text(encoding="utf-8"))
    return Index(tuple(map(Version, stored["releases"])), stored["callables"])
