"""How much a probe may ask of a server, and what it has asked."""

import time
from dataclasses import dataclass, field


class Spent(Exception):
    """The budget is spent: what is known so far is the result."""


@dataclass
class Budget:
    """Requests, and tokens to be generated."""

    requests: int
    tokens: int
    asked: int = 0
    generated: int = 0
    started: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """Since the first question."""
        return time.monotonic() - self.started

    def take(self, tokens: int) -> None:
        """Count one request for so many tokens. Raises Spent if it goes beyond the budget."""
        if self.asked + 1 > self.requests or self.generated + tokens > self.tokens:
            raise Spent(f"the budget of {self.requests} requests and {self.tokens} tokens is spent")
        self.asked += 1
        self.generated += tokens
