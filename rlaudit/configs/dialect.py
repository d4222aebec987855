"""What a dialect offers: how it is recognised, and how it is read.

Frameworks are declared (`rlaudit/configs/dialects`). Plain vLLM is read by files of `readers/` that bind DIALECT and
fill a Draft (draft.py).
"""

from collections.abc import Callable
from dataclasses import dataclass

from packaging.version import Version

from rlaudit.configs.source import Source
from rlaudit.settings.rollout_config import RolloutConfig


@dataclass(frozen=True)
class Dialect:
    """One dialect."""

    name: str
    title: str
    # Higher wins if several recognise the same file: plain vLLM is 0, a framework 10, a framework built on another one
    # 20. A dialect below 0 reads only files that no other one recognises.
    specific: int
    # Whether a file is written in it; must be cheap and must never raise.
    recognise: Callable[[Source], bool]
    # Every rollout engine of the file, as the vLLM version gets it (serializers change what arrives).
    read: Callable[[Source, Version], tuple[RolloutConfig, ...]]
    # Printed by `explain` for a declared dialect.
    about: str = ""
