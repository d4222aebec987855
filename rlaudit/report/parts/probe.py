"""What running servers answered."""

from collections.abc import Sequence
from dataclasses import dataclass

from rlaudit.meaning.candidates import Semantics
from rlaudit.probe.course import Probed


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One server, or today's and the new one. answer: in sentences, of the last.

    sampling, trainer: what rollouts request and what the trainer computes; None if neither was named.
    """

    servers: Sequence[Probed]
    answer: Sequence[str]
    sampling: Semantics | None = None
    trainer: Semantics | None = None
