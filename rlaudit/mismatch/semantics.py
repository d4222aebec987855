"""Three distributions kept apart: what tokens were sampled from, what the logprobs report, what the trainer computes.

    report = sample = train     the semantic layer is clean
    report != sample            dishonest logprobs, such as V1's raw mode at a temperature other than 1
    report = sample != train    the trainer recomputes wrongly: another temperature, or a filter it does not repeat
    sample != train = report    hidden truncation or temperature: no difference of logprobs shows it

A mean importance ratio other than 1 convicts this layer; a mean ratio of 1 never acquits it, because a trainer that
recomputes at the wrong temperature is honest about it. Convicted only with a p-value below 1e-4 (about eight tests are
asked) and an effect: a meaning that halves the loss, a support p below 1e-6, or a mean ratio more than 1e-2 from 1.
"""

from dataclasses import dataclass

from rlaudit.layers import Verdict
from rlaudit.mismatch.candidates import Semantics
from rlaudit.mismatch.report_fit import ReportFit, fit_report
from rlaudit.mismatch.sample_fit import SAME_TEMPERATURE, HonestyTest, SampleFit, fit_sample
from rlaudit.mismatch.scored_tokens import ScoredTokens

RATIO_EFFECT = 1e-2
CONVICTING_P = 1e-4
FEWEST_SEQUENCES = 32


@dataclass(frozen=True)
class SemanticEvidence:
    """What the semantic layer shows. The thetas are the meanings found; `not_told` is what these data cannot tell."""

    verdict: Verdict
    cause: str | None
    because: str
    theta_train: Semantics
    theta_report: Semantics
    theta_sample: Semantics
    report: ReportFit
    sample: SampleFit
    falsifier: str
    not_told: tuple[str, ...]

    @property
    def tests(self) -> tuple[HonestyTest, ...]:
        """The tests of the tokens."""
        return self.sample.tests


def identify(
    scored: ScoredTokens,
    theta_sample: Semantics,
    theta_train: Semantics,
    floor_k2: float | None = None,
    seed: int = 0,
) -> SemanticEvidence:
    """Judge the semantic layer. `theta_sample` is what was asked for, `theta_train` what the trainer does."""
    report = fit_report(scored, theta_train, floor_k2, seed)
    sample = fit_sample(scored, theta_train, theta_sample, seed)
    verdict, cause, because = _verdict(scored, report, sample, theta_train)
    return SemanticEvidence(
        verdict=verdict,
        cause=cause,
        because=because,
        theta_train=theta_train,
        theta_report=report.theta,
        theta_sample=sample.theta,
        report=report,
        sample=sample,
        falsifier=_falsifier(verdict, report),
        not_told=_not_told(theta_sample, theta_train),
    )


def _verdict(
    scored: ScoredTokens, report: ReportFit, sample: SampleFit, train: Semantics
) -> tuple[Verdict, str | None, str]:
    ratio = sample.tests[0]
    if report.differs or sample.differs:
        return Verdict.MISMATCH, _cause(report, sample, train), _because(report, sample, ratio)
    if ratio.p_value < CONVICTING_P and abs((ratio.estimate or 1.0) - 1.0) > RATIO_EFFECT:
        cause = "the reported logprobs are not those of the sampler, and no known meaning explains them"
        return Verdict.MISMATCH, cause, _because(report, sample, ratio)
    if scored.sequences < FEWEST_SEQUENCES:
        return (
            Verdict.INCONCLUSIVE,
            None,
            f"{scored.sequences} sequences, at least {FEWEST_SEQUENCES} are needed to acquit",
        )
    if report.suspicious:
        return (
            Verdict.INCONCLUSIVE,
            None,
            f"{report.best.describe()} fits better, but not for sure: {_because(report, sample, ratio)}",
        )
    return (
        Verdict.MATCH,
        None,
        f"reported, sampled and trained distribution are {train.describe()}: {_because(report, sample, ratio)}",
    )


def _cause(report: ReportFit, sample: SampleFit, train: Semantics) -> str:
    if report.differs and sample.differs and _same(report.theta, sample):
        return (
            f"the trainer recomputes wrongly: tokens are sampled and reported at {sample.theta.describe()}, "
            f"the trainer uses {train.describe()}"
        )
    parts = []
    if report.differs:
        if report.theta == Semantics():
            parts.append(
                f"raw logprobs: reported at T=1 before any processing, sampled and trained at {train.describe()}"
            )
        else:
            parts.append(f"logprobs reported at {report.theta.describe()}, trained at {train.describe()}")
    if sample.differs:
        way = "truncation" if sample.truncated else "temperature"
        parts.append(
            f"hidden {way}: tokens are sampled at {sample.theta.describe()}, the trainer uses {train.describe()}"
        )
    return "; ".join(parts)


def _same(reported: Semantics, sample: SampleFit) -> bool:
    if sample.truncated:
        return reported.filtered
    return not reported.differences(sample.theta, SAME_TEMPERATURE)


def _because(report: ReportFit, sample: SampleFit, ratio: HonestyTest) -> str:
    convicted = [test for test in sample.tests if test.name.startswith("support") and test.p_value < CONVICTING_P]
    parts = [
        f"loss of reported logprobs {report.trainer_loss:.3g} nats^2 under the trainer's meaning",
        f"mean ratio {ratio.estimate:.4f} (z {ratio.statistic:+.1f}, p {ratio.p_value:.2g})",
    ]
    if report.differs:
        parts[0] += f", {report.loss:.3g} under {report.theta.describe()}"
    parts += [f"{test.name}: p {test.p_value:.2g}, estimate {test.estimate:.3g}" for test in convicted]
    if sample.tempered:
        score = sample.tests[1]
        parts.append(f"{score.name}: z {score.statistic:+.1f}, p {score.p_value:.2g}")
    return f"{'; '.join(parts)}; {report.tokens} tokens in {report.sequences} sequences"


def _falsifier(verdict: Verdict, report: ReportFit) -> str:
    if verdict is not Verdict.MISMATCH:
        return "a known meaning that halves the loss, or a mean ratio off 1 by more than 0.01, with more tokens"
    if report.differs:
        return f"reported logprobs that stop fitting {report.theta.describe()} when the engine's setting is left alone"
    return "the same tests passing on tokens sampled with every filter written out as off"


def _not_told(requested: Semantics, train: Semantics) -> tuple[str, ...]:
    notes = []
    if requested == Semantics():
        notes.append("at T=1 without filters or penalties raw and processed logprobs are the same thing")
    if requested.plain and train.plain:
        notes.append("logit bias, bad words and grammars were not part of this run")
    return tuple(notes)
