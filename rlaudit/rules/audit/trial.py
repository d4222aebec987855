"""The experiment that shows whether a finding holds, as a command line to paste."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlaudit.rules.audit.audit import Audit

# Of a release that is not compared with another one.
SHORTEST = "quick"


@dataclass(frozen=True)
class Trial:
    """An ablation of the config: of these factors, else of the move alone; or of a shipped recipe with its model."""

    # As `--factor` takes them: NAME, NAME=LEVEL.
    factors: tuple[str, ...] = ()
    recipe: str = ""
    # What to look at in its report, or to change in a copy of the recipe.
    look: str = ""

    def command(self, audit: "Audit") -> str:
        """Return the command line."""
        if not self.recipe and (self.factors or audit.migrates):
            before = str(audit.before.version) if audit.migrates else None
            return ablation_of(audit.config.path, before, str(audit.after.version), self.factors)
        model = audit.config.model
        named = ["--model", model.value] if model is not None and isinstance(model.value, str) else []
        return shlex.join(["rlaudit", "ablate", self.recipe or SHORTEST, *named])

    @property
    def names(self) -> tuple[str, ...]:
        """The factors without their levels."""
        return tuple(factor.partition("=")[0] for factor in self.factors)

    @property
    def words(self) -> str:
        """What it tries, for a text that is about no config."""
        factors = " ".join(f"--factor {factor}" for factor in self.factors)
        tried = f"rlaudit ablate {self.recipe or ' '.join(['CONFIG --from A --to B', factors]).strip()}"
        return f"{tried} ({self.look})" if self.look else tried


def ablation_of(config: str, before: str | None, after: str | None, factors: Sequence[str] = ()) -> str:
    """Return the command line that ablates a config, or a recipe without releases."""
    releases = [word for option, release in (("--from", before), ("--to", after)) if release
                for word in (option, release)]  # fmt: skip
    tried = [word for factor in factors for word in ("--factor", factor)]
    return shlex.join(["rlaudit", "ablate", config, *releases, *tried])
