"""One fault planted in a real engine, and what was said of its rollout."""

from dataclasses import dataclass

from rlaudit.causes.attribution.attribute import Attribution


@dataclass(frozen=True)
class EngineTrial:
    """causes: the truth, none for a clean rollout. `failure` where the engine did not run."""

    name: str
    causes: tuple[str, ...]
    found: Attribution | None
    failure: str | None = None

    @property
    def right(self) -> bool:
        """Whether exactly what was planted was named."""
        return self.found is not None and self.found.names == set(self.causes)
