"""What fits and tests of one set of scored tokens say together: the semantic verdict, its cause and its reasons.

The order is that of the table in semantics.py: a report that the tokens refute, a trainer that recomputes something
else, tokens that nobody asked for, a mean ratio that nothing explains.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

from rlaudit.layers import Verdict
from rlaudit.meaning.candidates import Semantics
from rlaudit.meaning.honesty import SemanticTest
from rlaudit.meaning.report_fit import ReportFit
from rlaudit.meaning.sample_fit import SampleFit, prefers
from rlaudit.meaning.scored_tokens import ScoredTokens

FEWEST_SEQUENCES = 32
FEWEST_TOKENS = 10 * FEWEST_SEQUENCES
RAW = Semantics()
# Relative distance of the observed edge of the support from a candidate filter, beyond which the edge is named.
BETWEEN_CANDIDATES = 0.1
Judged = tuple[Verdict, str | None, str, str]


@dataclass(frozen=True, eq=False)
class SemanticCase:
    """Everything that was fitted and tested. requested: what the engine was asked for. on_tokens: the tests of the
    sampled tokens that convict."""

    scored: ScoredTokens
    requested: Semantics
    train: Semantics
    tests: tuple[SemanticTest, ...]
    on_tokens: tuple[SemanticTest, ...]
    report: ReportFit
    sample: SampleFit
    seed: int

    @property
    def sample_differs(self) -> bool:
        """Whether the tokens were drawn from something else than the trainer computes."""
        return self.sample.differs or bool(self.on_tokens)

    @property
    def dishonest(self) -> bool:
        """Whether the tokens refute the meaning that the report follows, in favour of the trainer's.

        Where they do not tell, only a report that leaves processing out can be dishonest: a sampler reports no filter,
        penalty or temperature that it does not apply.
        """
        theta = self.report.theta
        if self.sample.differs and not theta.differences(self.sample.theta):
            return False
        in_favour = prefers(self.scored, theta, self.train, self.train, self.seed)
        return in_favour < 0 or (in_favour == 0 and not theta.differences(RAW))

    def judge(self) -> Judged:
        """Verdict, cause, because, falsifier."""
        if self.report.differs and self.dishonest:
            return self._dishonest()
        if self.report.differs:
            return self._trainer_recompute()
        if self.sample_differs:
            return self._hidden()
        ratio = self.tests[0]
        if ratio.convicts:
            return (
                Verdict.MISMATCH,
                "unexplained bias",
                f"{_ratio_line(ratio)}: the reported logprobs are not those of the sampler, and none of the "
                f"{len(self.scored.candidates)} meanings tried explains how",
                "a mean ratio of 1 on a new batch, or a meaning outside the list that halves the loss",
            )
        return self._none_found()

    def _dishonest(self) -> Judged:
        theta = self.report.theta
        drawn = self._named(self.sample.theta if self.sample_differs else self.train)
        if theta.differences(RAW):
            cause = f"dishonest logprobs: reported at {theta.describe()}, sampled at {drawn}"
        else:
            cause = f"raw logprobs: reported at T=1 before any processing, sampled at {drawn}"
        strongest = self._strongest_line()
        tokens = f"; {strongest}" if strongest else ""
        return (
            Verdict.MISMATCH,
            cause,
            f"the reported logprobs are not those that the tokens were sampled with ({self._figures()}{tokens})",
            f"a loss under {theta.name} that is not below half of the loss under {self.train.name} on new tokens",
        )

    def _trainer_recompute(self) -> Judged:
        theta = self.report.theta
        apart = theta.differences(self.train, tolerance=0.0)
        filters = [name for name in apart if name in {"top_k", "top_p", "min_p"}]
        what = "the sampler's filters" if len(filters) == len(apart) else " and ".join(apart)
        tokens = "tokens are sampled and reported" if self.sample_differs else "tokens are reported"
        unsure = "" if self.sample_differs else "; the tokens alone cannot tell which of the two they follow"
        return (
            Verdict.MISMATCH,
            f"the trainer recomputes wrongly: {tokens} at {theta.describe()}, the trainer uses {self.train.describe()}",
            f"the trainer's recomputation differs in {what}{unsure} ({self._figures()})",
            f"a loss above half of today's once the trainer applies {theta.name} to its logits",
        )

    def _hidden(self) -> Judged:
        drawn = self.sample.best if self.sample.differs else None
        strongest = self._strongest
        words = []
        if strongest is not None:
            words.append(self._strongest_line())
        if drawn is not None:
            words.append(f"{drawn.name} is likelier by {self.sample.gain:.3g} nats per token, {_p(self.sample.ln_p)}")
        words.append(f"{self.scored.tokens} tokens in {self.scored.sequences} sequences")
        cut = (drawn is not None and drawn.filtered) or (
            drawn is None and strongest is not None and strongest.name.startswith("support")
        )
        asked = drawn is not None and not drawn.differences(self.requested)
        source = "as requested, but in neither the reported nor the trainer's logprobs" if asked else "nobody asked for"
        kind = "truncation" if cut else "sampling parameters"
        at = f": tokens are sampled at {self._named(drawn)}, the trainer uses {self.train.describe()}" if drawn else ""
        return (
            Verdict.MISMATCH,
            f"hidden {kind}{at}",
            f"reported and trainer logprobs agree, yet the tokens were not drawn from them: {kind} {source} "
            f"({'; '.join(words)})",
            "the same tests on tokens sampled with every sampling parameter written out (generation_config=vllm)",
        )

    @property
    def _strongest(self) -> SemanticTest | None:
        return min(self.on_tokens, key=lambda test: test.ln_p, default=None)

    def _strongest_line(self) -> str:
        test = self._strongest
        return f"{test.name}: {_p(test.ln_p)}, estimated {test.estimate_of} {test.estimate:.3g}" if test else ""

    def _named(self, drawn: Semantics) -> str:
        """The sampler's meaning in words; where it was not asked for, as exact as the tokens tell.

        Candidates are a list, so a hidden filter between two of them is named by the edge that the tokens show.
        """
        if not drawn.differences(self.requested) or not drawn.differences(self.train):
            return drawn.describe()
        if drawn.penalised:
            return f"about {drawn.describe()}"
        filters = [name for name, off in (("top_k", 0), ("top_p", 1.0), ("min_p", 0.0)) if getattr(drawn, name) != off]
        for test in self.on_tokens:
            if [test.name] != [f"support-{name.replace('_', '-')}" for name in filters] or not test.estimate:
                continue
            listed, seen = getattr(drawn, filters[0]), test.estimate
            if abs(seen / listed - 1) > BETWEEN_CANDIDATES:
                edge: Any = round(seen) if filters[0] == "top_k" else float(f"{seen:.2g}")
                return f"about {replace(drawn, **{filters[0]: edge}).describe()}"
        return drawn.describe()

    def _none_found(self) -> Judged:
        few = self.scored.sequences < FEWEST_SEQUENCES or self.scored.tokens < FEWEST_TOKENS
        size = f"{self.scored.tokens} tokens in {self.scored.sequences} sequences"
        if self.report.suspicious:
            return (
                Verdict.INCONCLUSIVE,
                None,
                f"{self.report.best.describe()} explains the reported logprobs better ({self._fit_line()}), but an "
                f"interval over prompts of the difference includes 0 ({size})",
                "the same ratio of losses with an interval that excludes 0, on more prompts",
            )
        hanging = [test.name for test in self.tests if test.leans]
        if self.sample.gains_some:
            hanging.append("the likelihood of the tokens")
        if hanging:
            return (
                Verdict.INCONCLUSIVE,
                None,
                f"nothing convicts, but {' and '.join(hanging)} would with some prompts left out: it hangs on a few of "
                f"them ({size})",
                "the same result on more prompts",
            )
        unseen = self.requested.differences(self.train)
        if unseen:
            return (
                Verdict.INCONCLUSIVE,
                None,
                f"{self.requested.describe()} was asked for, reported logprobs and trainer follow "
                f"{self.train.describe()}, and the tokens do not tell which of the two they follow ({size})",
                f"tokens that tell: more of them, or a larger difference in {' and '.join(unseen)}",
            )
        if few:
            return (
                Verdict.INCONCLUSIVE,
                None,
                f"nothing convicts, and {size} are too few to acquit (needed: {FEWEST_TOKENS} in {FEWEST_SEQUENCES})",
                "the same result on more tokens",
            )
        because = (
            f"reported logprobs, tokens and trainer agree on {self.train.describe()} "
            f"({_ratio_line(self.tests[0])}; no test of {len(self.tests)} convicts; {size})"
        )
        if self.requested == RAW == self.train:
            because += "; at T=1 without filters or penalties raw and processed are the same numbers"
        return (
            Verdict.MATCH,
            None,
            because,
            "on new tokens: a meaning that halves the loss, a support test below 1e-6, a mean ratio off 1 by over 1 %",
        )

    def _fit_line(self) -> str:
        fit = self.report
        return (
            f"mean Huber loss {fit.loss:.2g} against {fit.trainer_loss:.2g} under the trainer's {self.train.name}, "
            f"gain {fit.gain_low:.2g} to {fit.gain_high:.2g} at 99.9 %"
        )

    def _figures(self) -> str:
        size = f"{self.scored.tokens} tokens in {self.scored.sequences} sequences"
        return f"{self._fit_line()}; {_ratio_line(self.tests[0])}; {size}"

    def not_told(self) -> tuple[str, ...]:
        """What the data cannot separate, in sentences."""
        found = []
        if self.requested == RAW:
            found.append(
                "raw and processed logprobs are the same numbers at T=1 without filters or penalties: "
                "they cannot be told apart here and need not be"
            )
        silent = [test.name for test in self.tests if test.name.startswith("support") and test.ln_p == 0.0]
        if silent and not self.sample_differs:
            found.append(f"a filter lighter than these tokens show ({', '.join(silent)})")
        found.append("logit bias, bad words and grammars are not among the meanings tried")
        if self.sample.best.penalised or self.report.best.penalised:
            found.append("penalties are tried at 1.05, 1.1, 1.2 and as requested only")
        return tuple(found)


def _ratio_line(test: SemanticTest) -> str:
    return f"mean ratio - 1 = {test.estimate:+.3g}, {_p(test.ln_p)}"


def _p(ln_p: float) -> str:
    if ln_p > math.log(1e-3):
        return f"p = {math.exp(ln_p):.2g}"
    return f"p = 1e{ln_p / math.log(10):.0f}"
