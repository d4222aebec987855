"""The rows of the confusion matrix: every cause at three doses, nothing at all, and two causes at a time."""

from collections.abc import Sequence

from selftest.blind import CLEAN, Label
from worlds.plant import Dose

from rlaudit.causes.attribution.attribute import all_causes
from rlaudit.errors import UsageError

# Doses at which neither fault makes less than a tenth of the mismatch: such a cause is not named by design.
PAIRS = (
    Label(("head-precision", "stale-prefix-kv"), (Dose.TOP, Dose.MIDDLE)),
    Label(("trainer-temperature", "stale-weights"), (Dose.MIDDLE, Dose.MIDDLE)),
    Label(("quantised-kv", "stale-weights"), (Dose.TOP, Dose.MIDDLE)),
    Label(("moe-routing", "stale-prefix-kv"), (Dose.TOP, Dose.TOP)),
    Label(("hidden-truncation", "stale-weights"), (Dose.MIDDLE, Dose.MIDDLE)),
    Label(("batch-dependence", "chunk-boundary"), (Dose.MIDDLE, Dose.TOP)),
    Label(("raw-logprobs", "bos"), (Dose.MIDDLE, Dose.TOP)),
    Label(("filters-not-replayed", "stale-prefix-kv"), (Dose.MIDDLE, Dose.TOP)),
    Label(("wrong-weights", "quantised-kv"), (Dose.MIDDLE, Dose.TOP)),
    Label(("bos", "quantised-kv"), (Dose.TOP, Dose.TOP)),
)


def cells(causes: Sequence[str] = (), doses: Sequence[Dose] = tuple(Dose)) -> tuple[Label, ...]:
    """The rows asked for; all of them by default. Raises UsageError for a cause that cannot be planted."""
    known = all_causes()
    for cause in causes:
        if cause not in (*known, CLEAN):
            raise UsageError(f"no fault {cause!r} to plant", f"there are: {', '.join((*known, CLEAN))}")
    single = [Label((cause,), (dose,)) for cause in (causes or known) if cause != CLEAN for dose in doses]
    clean = [Label()] if not causes or CLEAN in causes else []
    pairs = [pair for pair in PAIRS if not causes or set(pair.causes) <= set(causes)]
    return (*single, *clean, *pairs)
