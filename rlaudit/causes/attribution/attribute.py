"""Which causes do these tokens show, and how much stays unexplained? The decision procedure, in its fixed order.

    alignment        tokens that are not the same on both sides, or that no sampler reported, show that and nothing
                     else: what follows would be figures of it
    semantics        the meaning of the logprobs; what follows is judged on what the right meaning leaves
    inference path   only where the rest is surely above the noise; all covariates at once (`excess.py`), Holm
                     over the tests that could be made
    the rest         "unexplained residual: x % of k2"

A cause is named by a signature that is significant and large, unless something else that leaves it (its `rivals`)
fits: then what fits is listed, with what settles it. Several may be named; none has to. A cause whose columns are
missing is neither named nor excluded, and the column is named instead. Logs show a signature only: the next
experiment of each cause says what would settle it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from rlaudit import causes as cause_files
from rlaudit.arrays import Floats
from rlaudit.causes.attribution.base_slope import base_slope
from rlaudit.causes.attribution.cause import Cause, NotTested, Outcome, Rival, Signature, Stage
from rlaudit.causes.attribution.semantic_signatures import semantic_signature
from rlaudit.discover import Offers, discover
from rlaudit.layers import Layer, Verdict
from rlaudit.meaning.log_statistics import constant_shift
from rlaudit.meaning.meaning import Meaning
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.meaning.words import conclusion_of
from rlaudit.statistics.measurement.excess import ExcessModel, fit_excess

# Sequences or prompts that an error can be read off.
FEWEST_TO_JUDGE = 2
# Of all tests together: one comparison in two hundred has a significant signature by chance, and size decides as well.
ALPHA = 5e-3
# A floor is a measurement, too: causes are looked for where k2 is surely half as much again.
TIMES_FLOOR = 1.5
# The floor is one side's rounding, a comparison has that of both.
PARITY_TIMES_FLOOR = 2.0
# Where no floor was measured: what healthy, dense models stay below (metrics of ten frameworks agree on it), and above
# which signatures were tried.
DEFAULT_MARGIN = 1e-3


@dataclass(frozen=True)
class NamedCause:
    """A cause that was named."""

    name: str
    title: str
    layer: Layer
    signature: Signature
    adjusted_p: float
    falsifier: str
    next: str


def because_of(named: Sequence[NamedCause]) -> str:
    """Say in one sentence what shows the causes. A single cause is not named: the verdict above has its name."""
    if len(named) == 1:
        return named[0].signature.because
    return "; ".join(f"{cause.name}: {cause.signature.because}" for cause in named)


@dataclass(frozen=True)
class Untested:
    """A cause that could be neither named nor excluded, and why."""

    name: str
    reason: str
    # The missing column of the log.
    column: str | None = None
    # Whether the procedure ended before it came to this cause.
    left: bool = False


@dataclass(frozen=True)
class Ambiguous:
    """A cause whose signature is there, and that is not named because rivals fit."""

    name: str
    signature: Signature
    # The cause and its rivals.
    fits: tuple[str, ...]
    # The experiments, or columns to log, that settle which it is.
    tells: tuple[str, ...]


class Grounds(StrEnum):
    """What the verdict of an attribution rests on."""

    NO_TOKENS = "there are no tokens"
    NAMED = "a signature names a cause"
    MEANING = "the logprobs mean something else"
    LEANING = "a few prompts decide whether a cause is named"
    ONE_SEQUENCE = "one sequence has no interval"
    WITHIN = "nothing is named and k2 is surely within the margin"
    ABOVE = "nothing is named and k2 is surely above the margin"
    OPEN = "k2 is neither"

    @property
    def verdict(self) -> Verdict:
        """The verdict that follows."""
        if self is Grounds.NO_TOKENS:
            return Verdict.NOT_TESTED
        if self is Grounds.WITHIN:
            return Verdict.MATCH
        differs = self in {Grounds.NAMED, Grounds.MEANING, Grounds.ABOVE}
        return Verdict.MISMATCH if differs else Verdict.INCONCLUSIVE


@dataclass(frozen=True)
class Attribution:
    """What was named, and what was not."""

    grounds: Grounds
    # Found from scores, if the trainer scored the tokens.
    meaning: Meaning | None
    named: tuple[NamedCause, ...]
    # Share of the excess k2 that no named cause accounts for, 0 to 1; None if there was nothing to explain.
    unexplained: float | None
    not_tested: tuple[Untested, ...]
    # Causes that would be named with some prompts left out, and not with others: neither named nor excluded.
    leaning: Mapping[str, Signature]
    # Causes whose rivals fit: neither named nor excluded.
    ambiguous: tuple[Ambiguous, ...]
    # The causes that were tested and not named.
    excluded: Mapping[str, Signature]
    # In nats^2, under the meaning found, with its 95 % interval over prompts.
    k2: float
    k2_low: float
    k2_high: float
    floor_k2: float | None
    margin: float

    @property
    def verdict(self) -> Verdict:
        """MATCH only if nothing is named and k2 is surely within the margin."""
        return self.grounds.verdict

    @property
    def because(self) -> str:
        """The grounds and their figures in a sentence."""
        words = [self._reason()]
        if self.unexplained is not None:
            words.append(f"{100 * self.unexplained:.0f} % of the mismatch (k2) is unexplained")
        if self.fits:
            words.append(f"these causes fit: {' or '.join(self.fits)}")
        return ". ".join(
            f"{clause[0].upper() if place else clause[0]}{clause[1:]}" for place, clause in enumerate(words)
        )

    def _reason(self) -> str:
        if self.grounds is Grounds.NAMED:
            return because_of(self.named)
        if self.grounds is Grounds.MEANING and self.meaning is not None:
            return conclusion_of(self.meaning).because
        k2, margin = f"the k2 is {self.k2:.2g} [{self.k2_low:.2g}, {self.k2_high:.2g}]", f"{self.margin:.2g} nats^2"
        return {
            Grounds.LEANING: f"a few prompts decide whether {' and '.join(self.leaning)} is named: take more prompts",
            Grounds.ONE_SEQUENCE: f"the k2 is {self.k2:.2g} nats^2 in one sequence, which gives no interval",
            Grounds.WITHIN: f"{k2}, within {margin}",
            Grounds.ABOVE: f"{k2}, above {margin}, but no known cause has this pattern",
            Grounds.OPEN: f"{k2}, and the interval includes {margin}",
        }.get(self.grounds, self.grounds.value)

    @property
    def names(self) -> frozenset[str]:
        """Names of the causes that were named."""
        return frozenset(cause.name for cause in self.named)

    @property
    def fits(self) -> tuple[str, ...]:
        """What fits a part of the mismatch and could not be told apart."""
        return tuple(dict.fromkeys(name for cause in self.ambiguous for name in cause.fits))

    @property
    def tells(self) -> tuple[str, ...]:
        """What would settle which of these it is."""
        return tuple(dict.fromkeys(step for cause in self.ambiguous for step in cause.tells))

    def named_of(self, layer: Layer) -> tuple[NamedCause, ...]:
        """Return the named causes of a layer."""
        return tuple(cause for cause in self.named if cause.layer is layer)

    def leaning_of(self, layer: Layer) -> tuple[str, ...]:
        """Return the causes of a layer that lean."""
        causes = all_causes()
        return tuple(name for name in self.leaning if causes[name].layer is layer)

    def as_report(self) -> dict[str, Any]:
        """Return what a report holds of an attribution."""
        return {
            "verdict": self.verdict,
            "named": [asdict(named) for named in self.named],
            "unexplained": self.unexplained,
            "not_tested": [{"name": untested.name, "reason": untested.reason} for untested in self.not_tested],
            "fits": [asdict(cause) for cause in self.ambiguous],
            "leaning": {name: asdict(signature) for name, signature in self.leaning.items()},
            "excluded": {name: asdict(signature) for name, signature in self.excluded.items()},
            "k2": {"value": self.k2, "low": self.k2_low, "high": self.k2_high},
            "floor_k2": self.floor_k2,
            "margin": self.margin,
            "because": self.because,
        }


def all_causes() -> Offers[Cause]:
    """Return every cause that a file of `rlaudit/causes` offers, by name."""
    return discover(cause_files, "CAUSE", Cause)


def attribute(evidence: TokenEvidence, margin: float | None = None, seed: int = 0) -> Attribution:
    """Follow the procedure. margin: k2 (nats^2) up to which a comparison is parity; by default twice the floor."""
    case = _Case(evidence, seed)
    floor = evidence.floor_k2
    if margin is None:
        margin = DEFAULT_MARGIN if floor is None else PARITY_TIMES_FLOOR * floor
    if not evidence.tokens:
        case.leave("there are no tokens")
        return case.attribution(margin, unexplained=None)
    if case.name_causes(Stage.ALIGNMENT):
        case.leave("the two sides do not hold the same sampled tokens, so nothing is measured")
        return case.attribution(margin, unexplained=None)
    corrected = evidence.meaning is not None
    if case.name_causes(Stage.MEANING) and not corrected:
        case.leave(
            "the two sides' logprobs mean different things, and only with --score can the log ratio be "
            "corrected for that"
        )
        return case.attribution(margin, unexplained=None)
    if constant_shift(evidence) is not None:
        case.leave("every token has the same log ratio, so there is no pattern to look for")
        return case.attribution(margin, unexplained=None)
    case.fit()
    least = TIMES_FLOOR * floor if floor is not None else margin
    if case.excess.k2_low <= least:
        case.leave(f"no cause was looked for, since k2 is {_held_against(case.excess, least)}")
        return case.attribution(margin, unexplained=None)
    case.name_causes(Stage.EXCESS)
    return case.attribution(margin, unexplained=case.unexplained())


class _Case:
    """One run of the procedure: what was named, excluded and left so far."""

    def __init__(self, evidence: TokenEvidence, seed: int) -> None:
        self.evidence = evidence
        self.seed = seed
        self.causes = all_causes()
        self.waiting = dict.fromkeys(self.causes)
        self.named: list[NamedCause] = []
        self.leaning: dict[str, Signature] = {}
        self.ambiguous: list[Ambiguous] = []
        self.excluded: dict[str, Signature] = {}
        self.untested: list[Untested] = []
        self.unfit: dict[str, Outcome] = {}

    @property
    def excess(self) -> ExcessModel:
        assert self.evidence.excess is not None
        return self.evidence.excess

    def name_causes(self, stage: Stage) -> bool:
        """Test the causes of a stage and return whether any was named.

        Causes of meaning and alignment are corrected for their number already.
        """
        holm = stage is Stage.EXCESS
        signatures: dict[str, Signature] = {}
        for name in [name for name in self.waiting if self.causes[name].stage is stage]:
            self.waiting.pop(name)
            outcome = self._outcome(self.causes[name])
            if isinstance(outcome, NotTested):
                self.untested.append(Untested(name, outcome.reason, outcome.column))
            else:
                signatures[name] = outcome
        adjusted = holm_adjusted({name: signature.p_value for name, signature in signatures.items()}) if holm else {}
        for name, signature in signatures.items():
            p_value = adjusted.get(name, signature.p_value)
            cause = self.causes[name]
            if signature.large and (p_value < ALPHA or not holm):
                rivals = [rival for rival in cause.rivals if rival.fits(self.evidence)]
                if rivals:
                    self.ambiguous.append(_ambiguous(name, signature, rivals))
                    continue
                named = NamedCause(name, cause.title, cause.layer, signature, p_value, cause.falsifier, cause.next)
                self.named.append(named)
            elif signature.leans or (signature.large and holm and signature.p_value < ALPHA):
                self.leaning[name] = signature
            else:
                self.excluded[name] = signature
        return any(cause.name in signatures for cause in self.named)

    def _outcome(self, cause: Cause) -> Signature | NotTested:
        missing = self.evidence.missing(cause.needs)
        if missing:
            what = f"columns {' and '.join(missing)} are" if len(missing) > 1 else f"column {missing[0]} is"
            return NotTested(f"the {what} missing", missing[0])
        lacking = cause.least.lacking(self.evidence)
        if lacking is not None:
            return NotTested(lacking)
        if cause.name in self.unfit:
            return self.unfit[cause.name]
        if cause.stage is Stage.MEANING and self.evidence.meaning is not None:
            return semantic_signature(self.evidence, cause.name)
        return cause.signature(self.evidence)

    def leave(self, reason: str) -> None:
        """Note the waiting causes as untested: the procedure ends here."""
        self.untested += [Untested(name, reason, left=True) for name in self.waiting]
        self.waiting.clear()

    def fit(self) -> None:
        """Model the squared log ratio by the covariates of every cause that has them."""
        evidence, floor = self.evidence, self.evidence.floor_k2 or 0.0
        base = None
        log_ratio_T = evidence.log_ratio_T
        if not evidence.missing(("base_logprob",)):
            leaning_T = np.asarray(evidence.columns["base_logprob"]) - evidence.trainer_logprobs_T
            base = base_slope(log_ratio_T, leaning_T, evidence.room_T, evidence.cluster_T, self.seed)
            # A slope that sure tokens alone make is none: what it leaves would be more than what there was.
            if base.part.p_value < ALPHA and base.part.k2 > 0:
                log_ratio_T = base.left_T
        bases = self._bases([name for name in self.waiting if not self.causes[name].after_others])
        excess = fit_excess(log_ratio_T, evidence.room_T, evidence.cluster_T, bases, floor, self.seed)
        self.evidence = evidence.with_excess(excess)
        last = self._bases([name for name in self.waiting if self.causes[name].after_others])
        if last:
            first_T = excess.standardised_T
            excess = fit_excess(log_ratio_T, evidence.room_T, evidence.cluster_T, {**bases, **last}, floor, self.seed)
            excess = replace(excess, first_standardised_T=first_T)
        if base is not None:
            # Shares are of the whole mismatch, the base model's part included.
            whole = fit_excess(evidence.log_ratio_T, evidence.room_T, evidence.cluster_T, {}, floor, self.seed)
            excess = replace(excess, k2=whole.k2, k2_low=whole.k2_low, k2_high=whole.k2_high)
            excess = replace(excess, slope_on_base=base.slope, base=base.part)
        self.evidence = replace(evidence, log_ratio_T=log_ratio_T, excess=excess)

    def _bases(self, names: Sequence[str]) -> dict[str, Floats]:
        bases = {}
        for name in names:
            basis = self.causes[name].basis
            if basis is None or self.evidence.missing(self.causes[name].needs):
                continue
            columns = basis(self.evidence)
            if isinstance(columns, NotTested | Signature):
                self.unfit[name] = columns
            else:
                bases[name] = columns
        return bases

    def unexplained(self) -> float:
        """Return the share of the excess that no named cause accounts for."""
        explained = sum(
            named.signature.share or 0.0 for named in self.named if self.causes[named.name].stage is Stage.EXCESS
        )
        return min(max(1.0 - explained, 0.0), 1.0)

    def attribution(self, margin: float, unexplained: float | None) -> Attribution:
        """Return the result."""
        excess = self.evidence.excess
        k2, low, high = (excess.k2, excess.k2_low, excess.k2_high) if excess else (self.evidence.k2,) * 3
        return Attribution(
            grounds=self._grounds(margin),
            meaning=self.evidence.meaning,
            named=tuple(self.named),
            unexplained=unexplained,
            not_tested=tuple(self.untested),
            leaning=self.leaning,
            ambiguous=tuple(self.ambiguous),
            excluded=self.excluded,
            k2=k2,
            k2_low=low,
            k2_high=high,
            floor_k2=self.evidence.floor_k2,
            margin=margin,
        )

    def _grounds(self, margin: float) -> Grounds:
        """Return the first grounds that hold."""
        excess, meaning = self.evidence.excess, self.evidence.meaning
        holds = {
            Grounds.NO_TOKENS: not self.evidence.tokens,
            Grounds.NAMED: bool(self.named),
            Grounds.MEANING: meaning is not None and meaning.verdict is Verdict.MISMATCH,
            Grounds.LEANING: bool(self.leaning),
            Grounds.ONE_SEQUENCE: self.evidence.clusters < FEWEST_TO_JUDGE,
            Grounds.WITHIN: excess is not None and excess.k2_high <= margin,
            Grounds.ABOVE: excess is not None and excess.k2_low > margin,
        }
        return next((grounds for grounds, held in holds.items() if held), Grounds.OPEN)


def _held_against(excess: ExcessModel, least: float) -> str:
    """Say that a k2 is below `least`, or not surely above it."""
    if excess.k2 < least:
        return f"{excess.k2:.2g} nats^2, below {least:.2g}"
    return f"{excess.k2:.2g} [{excess.k2_low:.2g}, {excess.k2_high:.2g}] nats^2, not surely above {least:.2g}"


def _ambiguous(name: str, signature: Signature, rivals: Sequence[Rival]) -> Ambiguous:
    fits = (name, *(rival.name for rival in rivals))
    return Ambiguous(name, signature, fits, tuple(rival.tells for rival in rivals))


def holm_adjusted(p_values: Mapping[str, float]) -> dict[str, float]:
    """Return the p-values after Holm's step-down adjustment: comparable with the level that all tests share."""
    adjusted: dict[str, float] = {}
    largest = 0.0
    for place, name in enumerate(sorted(p_values, key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[name]))
        adjusted[name] = largest
    return adjusted
