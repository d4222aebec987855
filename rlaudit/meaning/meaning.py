"""What reported logprobs mean, what tokens were drawn from, and what the trainer computes: which of the three agree.

    report = sample = train    AGREE
    report != sample           RAW_REPORT (the raw mode at T != 1 is the usual case), OTHER_REPORT
    report = sample != train   TRAINER: it recomputes something else, a temperature or the mask of a filter
                               OFF_TRAINER: as far off, but not along a temperature or filter: other weights fit as well
    report = train != sample   HIDDEN_FILTER, HIDDEN_SAMPLING: no difference of logprobs can show it
                               LEFT_OUT: flatter, as with a penalty that was requested and that both leave out
    none of these explains it  UNEXPLAINED_BIAS, UNEXPLAINED_SHIFT
    none of these shows        NOTHING, where what matters would have (`limits.py`)

AGREE says that the numbers mean the same, not that they are close: what remains is the inference path's to explain.

A meaning is found by `from_scores.py` if the trainer scored the tokens under other meanings, else by `from_logs.py`,
which uses samples of one prompt as well (`from_siblings.py`). Each gathers what it can see of the three (figures) and
decides in one place. `words.py` puts the result into sentences, and nothing reads these back.
"""

import math
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from rlaudit.layers import Verdict
from rlaudit.meaning.candidates import FILTERS, RAW, Semantics
from rlaudit.meaning.from_siblings import Siblings
from rlaudit.meaning.limits import Limits
from rlaudit.meaning.report_fit import ReportFit
from rlaudit.meaning.sample_fit import SampleFit
from rlaudit.meaning.sharpness import Sharpness
from rlaudit.meaning.token_tests import SemanticTest
from rlaudit.statistics.estimate import Estimate
from rlaudit.statistics.measurement.measure import Measurement
from rlaudit.statistics.resample import FEWEST_SEQUENCES

# A match takes as much as makes an interval reliable, at ten tokens a sequence.
FEWEST_TOKENS = 10 * FEWEST_SEQUENCES
# Relative distance of the observed edge of the support from a candidate filter, beyond which the edge is named: the
# filters that are tried (`candidates.py`) are farther from each other than that.
BETWEEN_CANDIDATES = 0.1


def as_setting(name: str, edge: float) -> Any:
    """Return the edge of a support as the value of its filter: whole for top_k, else two digits."""
    return round(edge) if name == "top_k" else float(f"{edge:.2g}")


class Kind(StrEnum):
    """What was found of the semantic layer."""

    AGREE = "report, sample and trainer agree"
    RAW_REPORT = "reported before any processing, sampled after it"
    OTHER_REPORT = "reported under another meaning than sampled"
    TRAINER = "the trainer recomputes another meaning than was reported"
    OFF_TRAINER = "the trainer recomputes another meaning than was reported, or has other weights"
    HIDDEN_FILTER = "sampled through a filter that neither side knows of"
    HIDDEN_SAMPLING = "sampled with parameters that neither side knows of"
    LEFT_OUT = "sampled with a penalty or bias that was requested, and that neither side's logprobs have"
    UNEXPLAINED_BIAS = "a mean ratio off 1 that no meaning explains"
    UNEXPLAINED_SHIFT = "one and the same log ratio at every token"
    BETTER_FIT = "another meaning fits the report better, and not surely"
    FEW_BIASED = "a mean ratio off 1 on too few prompts to name a cause"
    HANGING = "a mismatch that shows only with some prompts left out"
    WIDE = "nothing shows, and the interval of the mean ratio is too wide to rule a mismatch out"
    UNTOLD = "nothing shows, and too few tokens tell what they were drawn from"
    LEANING = "nothing shows, and a figure is off that is too unsure to name a cause"
    COPIED = "samples of a prompt agree for longer than draws do: copied, greedy, or of words that were not drawn"
    NOTHING = "nothing found, up to limits of detection"
    FEW = "nothing shows, on too few tokens to rule a mismatch out"
    NO_TOKENS = "there are no tokens"

    @property
    def verdict(self) -> Verdict:
        """Of the semantic layer."""
        if self is Kind.AGREE:
            return Verdict.MATCH
        if self is Kind.NOTHING:
            return Verdict.NOTHING_FOUND
        if self is Kind.NO_TOKENS:
            return Verdict.NOT_TESTED
        return Verdict.INCONCLUSIVE if self in OPEN_KINDS else Verdict.MISMATCH

    @property
    def misreports(self) -> bool:
        """Whether the report is not of what the tokens were drawn from."""
        return self in {Kind.RAW_REPORT, Kind.OTHER_REPORT}


OPEN_KINDS = frozenset(
    {
        Kind.BETTER_FIT,
        Kind.FEW_BIASED,
        Kind.HANGING,
        Kind.WIDE,
        Kind.UNTOLD,
        Kind.COPIED,
        Kind.LEANING,
        Kind.FEW,
    }
)


@dataclass(frozen=True, eq=False)
class ScoredFigures:
    """Fits and tests of tokens that the trainer scored."""

    report: ReportFit
    sample: SampleFit
    tests: tuple[SemanticTest, ...]
    tokens: int
    sequences: int
    # How many meanings were tried.
    tried: int

    @property
    def on_tokens(self) -> tuple[SemanticTest, ...]:
        """The tests of the sampled tokens that show a difference."""
        return tuple(test for test in self.tests if test.on_tokens and test.shows)

    @property
    def strongest(self) -> SemanticTest | None:
        """The least probable of those."""
        return min(self.on_tokens, key=lambda test: test.ln_p, default=None)

    @property
    def cut(self) -> bool:
        """Whether a test that sees only tokens shows that a filter cut the support."""
        return any(test.filter for test in self.on_tokens)

    def at_the_edge(self, drawn: Semantics) -> Semantics:
        """Return a meaning that tokens follow, its one filter at the edge that they show if no candidate is near it.

        Candidates are a list: a hidden filter may lie between two of them. A penalty or a bias has no edge.
        """
        filters = [name for name in FILTERS if getattr(drawn, name) != getattr(RAW, name)]
        for test in () if drawn.penalised or drawn.logit_bias else self.on_tokens:
            if [test.filter] != filters or not test.estimate:
                continue
            if abs(test.estimate / getattr(drawn, filters[0]) - 1) > BETWEEN_CANDIDATES:
                return replace(drawn, **{filters[0]: as_setting(filters[0], test.estimate)})
        return drawn

    @property
    def sample_differs(self) -> bool:
        """Whether the tokens were drawn from something else than the trainer computes."""
        return self.sample.differs or bool(self.on_tokens)


@dataclass(frozen=True, eq=False)
class LoggedFigures:
    """What logs alone show; None if a column that it takes is missing."""

    # Mean ratio - 1 of all tokens, of all three meanings at once; None if no trainer has scored them.
    ratio: Measurement | None
    # Report against sample, from the engine's own side.
    first_choices: Estimate | None
    # Sample against trainer.
    sharp: Sharpness | None
    # T of the trainer over T reported.
    temperature: Estimate | None
    # The log ratio that every token has.
    shift: float | None
    # Share of the squares of log ratios that lies in negative ones.
    one_sided: float | None
    # What shows only with some prompts left out, by name.
    hanging: tuple[str, ...]
    tokens: int
    sequences: int
    # Report against sample and sample against trainer, by samples of one prompt.
    siblings: Siblings | None = None
    # Whether the log ratio has the shape of another temperature or mask.
    recomputed: bool = False
    # Relative change of 1/T from the trainer to the report, by the trainer's entropies.
    reported_step: float | None = None
    # Half the mean squared log ratio, and how far apart both sides are by it (`apart_of`), nats; of rollouts alone no
    # first choice is looked at.
    k2: float = math.inf
    apart: float = math.inf
    # What would have been shown.
    limits: Limits = field(default_factory=Limits)
    # What is off although nothing is named, by name.
    off: tuple[str, ...] = ()
    prompts: int = 0


@dataclass(frozen=True, eq=False)
class Meaning:
    """The three meanings of some tokens."""

    kind: Kind
    # What the trainer computes.
    theta_train: Semantics
    # What the reported numbers follow: the trainer's own unless another was accepted.
    theta_report: Semantics
    # What the tokens follow: the trainer's own unless another was accepted.
    theta_sample: Semantics
    # What the engine was asked to sample from.
    requested: Semantics
    # What all of this rests on.
    figures: ScoredFigures | LoggedFigures

    @property
    def verdict(self) -> Verdict:
        """Of the semantic layer."""
        return self.kind.verdict
