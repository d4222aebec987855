"""Do the returned logprobs mean what the trainer assumes? The semantic layer's verdict on one set of scored tokens.

Three meanings are kept apart: what the trainer computes (theta_train, known), what the reported numbers follow
(theta_report, a regression), what the tokens follow (theta_sample, a likelihood and tests that need no reported
number). Which of them agree names the fault:

    report = sample = train    match
    report != sample           dishonest logprobs; the raw mode at T != 1 is the usual case
    report = sample != train   the trainer recomputes something else: temperature, or the mask of a filter
    report = train != sample   hidden truncation or temperature: no difference of logprobs can show it

The mean ratio convicts (honest logprobs over the same support give 1 exactly) and never acquits. A match says that
the numbers mean the same, not that they are close: what remains is the inference path's to explain.
"""

from dataclasses import dataclass, replace

from rlaudit.layers import Verdict
from rlaudit.meaning.candidates import Semantics
from rlaudit.meaning.honesty import SemanticTest, token_tests
from rlaudit.meaning.report_fit import ReportFit, fit_report
from rlaudit.meaning.sample_fit import SampleFit, fit_sample
from rlaudit.meaning.scored_tokens import ScoredTokens
from rlaudit.meaning.semantic_case import SemanticCase

ON_TOKENS = ("temperature-score", "greedy-leak", "support-top-p", "support-top-k", "support-min-p")


@dataclass(frozen=True)
class SemanticEvidence:
    """The verdict, what it rests on, what would refute it, and what this data cannot tell."""

    verdict: Verdict
    cause: str | None
    because: str
    theta_train: Semantics
    theta_report: Semantics
    theta_sample: Semantics
    tests: tuple[SemanticTest, ...]
    falsifier: str
    not_told: tuple[str, ...]
    report: ReportFit
    sample: SampleFit


def identify(
    scored: ScoredTokens,
    theta_sample: Semantics,
    theta_train: Semantics,
    floor_k2: float | None = None,
    seed: int = 0,
) -> SemanticEvidence:
    """Judge the semantic layer.

    theta_sample: what the engine was asked to sample from; the tokens are tested, it is not taken on trust.
    theta_train: what the trainer computes. floor_k2: k2 (or k3) of the noise floor, nats^2, where it was measured.
    """
    if not scored.tokens:
        return _nothing(scored, theta_sample, theta_train)
    tests = token_tests(scored, theta_train, seed)
    on_tokens = [test for test in tests if test.name in ON_TOKENS and test.convicts]
    report = fit_report(scored, theta_train, floor_k2, seed)
    sample = fit_sample(scored, theta_train, (theta_sample, report.theta), bool(on_tokens), floor_k2, seed)
    case = SemanticCase(scored, theta_sample, theta_train, tests, tuple(on_tokens), report, sample, seed)
    verdict, cause, because, falsifier = case.judge()
    return SemanticEvidence(
        verdict=verdict,
        cause=cause,
        because=because,
        theta_train=theta_train,
        theta_report=report.theta,
        theta_sample=sample.theta,
        tests=tests,
        falsifier=falsifier,
        not_told=case.not_told(),
        report=report,
        sample=sample,
    )


def _nothing(scored: ScoredTokens, requested: Semantics, train: Semantics) -> SemanticEvidence:
    nan = float("nan")
    report = ReportFit(train, train, False, nan, nan, nan, nan, nan, 0, scored.sequences)
    sample = SampleFit(train, train, False, nan, nan, nan, 0.0)
    return SemanticEvidence(
        verdict=Verdict.NOT_TESTED,
        cause=None,
        because="there are no tokens",
        theta_train=train,
        theta_report=train,
        theta_sample=replace(requested),
        tests=(),
        falsifier="",
        not_told=("everything: no token was scored",),
        report=report,
        sample=sample,
    )
