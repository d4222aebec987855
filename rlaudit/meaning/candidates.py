"""The meanings that a reported logprob may have: which transforms stand between the logits and the number.

A meaning is a point in the sampler's parameters, in vLLM's order: bias, penalties, temperature, min_p, top-k, top-p
(v1/sample/sampler.py). The trainer scores the sampled tokens under each candidate in one pass; `report_fit.py` asks
which one the reported numbers follow, `sample_fit.py` which one the tokens follow.

Covered: what the request says, what a version or mode that leaves part of it out would report, and the defaults that
models ship in generation_config.json. Not covered: bad words, allowed-token masks, grammars.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from typing import Any

from rlaudit.errors import UsageError

# Even in 1/T, because a log-softmax is a smooth function of 1/T whose derivatives are the cumulants of the logits:
# cubic interpolation with step h errs by at most 0.0235 h^4 |fourth cumulant|. With h = 1/8 and a fourth cumulant of
# 100 (broad distribution) that is 6e-4 nats. Cumulants shrink as (1/T)^-4 where the distribution narrows, so the step
# may double beyond 1/T = 2. Steps of 1/8 cost the scorer one exponential in all.
INVERSE_TEMPERATURES = tuple(k / 8 for k in (*range(4, 17), *range(18, 33, 2)))
HIDDEN_DEFAULTS: tuple[dict[str, Any], ...] = (
    {"top_k": 20},
    {"top_k": 50},
    {"top_p": 0.95},
    {"top_p": 0.9},
    {"top_p": 0.8},
    {"min_p": 0.05},
    {"repetition_penalty": 1.05},
    {"repetition_penalty": 1.1},
    {"repetition_penalty": 1.2},
    {"top_k": 20, "top_p": 0.95},
    {"top_k": 20, "top_p": 0.8},
)


FILTERS = ("top_k", "top_p", "min_p")
PENALTIES = ("repetition_penalty", "presence_penalty", "frequency_penalty")


def _ascending(logit_bias: Any) -> tuple[tuple[int, float], ...]:
    """Return pairs of token id and addend. JSON writes the ids of a mapping as text."""
    try:
        pairs = [(int(token), float(added)) for token, added in dict(logit_bias or ()).items()]
    except (TypeError, ValueError, OverflowError):
        pairs = [(-1, 0.0)]
    if any(token < 0 or not isfinite(added) for token, added in pairs):
        raise UsageError(f"logit_bias is {logit_bias!r}, expected a finite number for each token id")
    return tuple(sorted(pairs))


def biases_as_text(logit_bias: Iterable[Sequence[float]]) -> str:
    """`{30: 2}`, from pairs."""
    return "{" + ", ".join(f"{token}: {added:g}" for token, added in logit_bias) + "}"


@dataclass(frozen=True)
class Semantics:
    """One meaning of a logprob. The defaults are the model's plain distribution ("raw").

    top_k 0, top_p 1, min_p 0, repetition_penalty 1 and the other penalties 0 mean off. logit_bias holds token ids,
    ascending, each with what is added to its logit; it is given so or as vLLM's mapping. Raises UsageError for a
    temperature that is not above 0 and for values outside the sampler's own ranges.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "logit_bias", _ascending(self.logit_bias))
        if not self.temperature > 0:
            raise UsageError(
                f"temperature is {self.temperature}, not above 0: a greedy choice has no distribution to compare",
                "sample the tokens to be audited at a temperature above 0",
            )
        in_range = {
            "top_k": self.top_k >= 0,
            "top_p": 0 < self.top_p <= 1,
            "min_p": 0 <= self.min_p <= 1,
            "repetition_penalty": self.repetition_penalty > 0,
        }
        for name, valid in in_range.items():
            if not valid:
                raise UsageError(f"{name} is {getattr(self, name)}, which no sampler accepts")

    @property
    def filtered(self) -> bool:
        """Whether a filter takes tokens out of the support."""
        return self.top_k > 0 or self.top_p < 1 or self.min_p > 0

    @property
    def penalised(self) -> bool:
        """Whether earlier tokens change the logits."""
        return self.repetition_penalty != 1 or self.presence_penalty != 0 or self.frequency_penalty != 0

    @property
    def plain(self) -> bool:
        """Whether temperature is all there is."""
        return not self.filtered and not self.penalised and not self.logit_bias

    @property
    def unfiltered(self) -> "Semantics":
        """The same without filters."""
        return replace(self, **{name: getattr(RAW, name) for name in FILTERS})

    @property
    def name(self) -> str:
        """Short and unique: the parameters that are on."""
        on = [f"T={self.temperature:g}"]
        for name, value in asdict(self).items():
            if name != "temperature" and value != getattr(RAW, name):
                on.append(f"{name}={biases_as_text(value) if name == 'logit_bias' else f'{value:g}'}")
        return " ".join(on)

    def describe(self) -> str:
        """Describe the meaning for a sentence."""
        if self == RAW:
            return "the model's plain distribution (T=1, no filters, no penalties, no bias)"
        return self.name

    def as_job(self) -> dict[str, Any]:
        """Return it as an entry of the scoring job's `candidates`."""
        return {"name": self.name, **asdict(self)}

    def differences(self, other: "Semantics", tolerance: float = 0.03) -> tuple[str, ...]:
        """Return the names of the parameters that differ; temperatures within a relative `tolerance` do not."""
        mine, theirs = asdict(self), asdict(other)
        apart = {name for name in mine if mine[name] != theirs[name]}
        if abs(self.temperature / other.temperature - 1) <= tolerance:
            apart.discard("temperature")
        return tuple(name for name in mine if name in apart)


RAW = Semantics()


def flattening_left_out(requested: Semantics, trainer: Semantics) -> tuple[str, ...]:
    """Return the penalties, and a bias, that were requested of the engine and that the trainer does not have."""
    return tuple(name for name in requested.differences(trainer) if name in (*PENALTIES, "logit_bias"))


# Where the scorer tabulates the mass that a filter would keep; dense where samplers are set.
NUCLEUS = (
    *(0.3, 0.5, 0.6, 0.7, 0.75, 0.8, 0.82, 0.85, 0.88, 0.9, 0.91, 0.92, 0.93, 0.94, 0.95),
    *(0.96, 0.97, 0.98, 0.985, 0.99, 0.995, 0.998, 0.999),
)
TOP_K = (1, 2, 5, 8, 10, 15, 20, 21, 22, 25, 30, 40, 50, 52, 55, 64, 80, 100, 105, 150, 200, 300, 500)
MIN_P = (0.3, 0.2, 0.15, 0.1, 0.095, 0.08, 0.05, 0.047, 0.04, 0.03, 0.02, 0.01, 0.005, 0.002, 1e-3, 1e-4)


def candidate_semantics(
    sampling: Semantics, trainer_temperature: float, trainer: Semantics | None = None
) -> tuple[Semantics, ...]:
    """Return the candidates for one rollout, each once; the first is the request itself.

    sampling: as requested of the engine. trainer: what the trainer replays, if that is more than its temperature.
    """
    unpenalised = replace(sampling, repetition_penalty=1.0, presence_penalty=0.0, frequency_penalty=0.0)
    named = [
        sampling,
        trainer or Semantics(trainer_temperature),
        RAW,
        Semantics(sampling.temperature),
        Semantics(trainer_temperature),
        replace(sampling, temperature=1.0),  # vLLM 0.10.0 "processed" left the temperature out
        replace(sampling, temperature=trainer_temperature),
        unpenalised,
        replace(sampling, logit_bias=()),
        sampling.unfiltered,
    ]
    hidden = [
        replace(base, **default)
        for base in _distinct((sampling.unfiltered, Semantics(trainer_temperature)))
        for default in HIDDEN_DEFAULTS
    ]
    grid = [Semantics(1.0 / inverse) for inverse in INVERSE_TEMPERATURES]
    return _distinct([*named, *hidden, *grid])


def _distinct(semantics: Iterable[Semantics]) -> tuple[Semantics, ...]:
    return tuple(dict.fromkeys(semantics))
