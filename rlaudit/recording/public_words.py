"""Words and names that no user made: those of vLLM's own code, in every release that is catalogued.

A setting that takes one of a few words is shown; a setting that takes any text (a path, a name, an address) is not.
So a word is public if some release offers it as a choice, or it is one of the few of public_words.yaml.
"""

import re
from itertools import chain
from pathlib import Path
from typing import TypedDict

import yaml

from rlaudit.recording.shipped.rlaudit_recorder import PACKAGES, WORKER_METHODS
from rlaudit.vllm.config_objects import RENAMED
from rlaudit.vllm.facts import facts

_WORD = re.compile(r"[A-Za-z][\w.&-]*")


class Public(TypedDict):
    """Words that are values, names that are keys."""

    words: list[str]
    names: list[str]


def public_words() -> Public:
    """Return what a redacted recording and a public page keep."""
    listed = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    listed = {section: text.split() for section, text in listed.items()}
    words = {*listed.pop("words"), *listed.pop("methods"), *WORKER_METHODS, *PACKAGES}
    names = {*chain.from_iterable(listed.values()), *RENAMED}
    for name, choices in facts().accepted_words():
        names.update(name.split("."))
        words.update(filter(_WORD.fullmatch, choices))
    return {"words": sorted(words), "names": sorted(names)}
