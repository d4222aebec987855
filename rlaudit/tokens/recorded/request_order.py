"""The order in which the requests of a front end were made, which a trainer's rows mostly keep.

vLLM's `LLM` numbers its requests, and the samples of one have indices. The order of the lines is another: V0 writes a
request down only when its first token comes. Callers that name requests themselves leave the order unknown.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# A number, and what releases put behind it: `3`, `3-8f0c2a11` (0.15 and later), `3_parallel_sample_1` (V0).
NUMBERED = re.compile(r"(\d{1,12})(?:$|[-_])")


@dataclass
class RequestOrder:
    """The requests of one front end, as they are met."""

    numbers: list[tuple[int, int]] = field(default_factory=list)
    is_numbered: bool = True

    def add(self, request: Mapping[str, Any]) -> int:
        """Note a request; its place among all lines."""
        name = NUMBERED.match(request["parent"] or request["request"])
        self.is_numbered = self.is_numbered and name is not None
        self.numbers.append((int(name.group(1)) if name else 0, min(request["index"] or 0, 1 << 20)))
        return len(self.numbers) - 1

    def orders(self) -> Sequence[int] | None:
        """Return the order of each line; None if it is unknown."""
        if self.is_numbered and len(set(self.numbers)) == len(self.numbers):
            samples = 1 + max((index for _, index in self.numbers), default=0)
            return [number * samples + index for number, index in self.numbers]
        return None
