"""Whether a request in flight continues from the tokens that it had returned before the update.

vLLM 0.12.0 to 0.22.0 drop the first token after a resume with mode=keep, clear_cache=True and asynchronous scheduling
(vllm issue 42043): the engine continues from a token that its client never saw. Lengths do not show that; scores do.
After a cleared cache every key and value is computed again with the new weights, so the tokens after the update must
fit them as well as those of a cold run. If they do not, the context differs (a token dropped or repeated), the cache
was not cleared (0.16.0, advisory kept-requests-block-clearing), or the weights differ, which `cold after` shows.

Not covered: clear_cache=False, and a cache that was not cleared and serves new requests: there the old keys and values
of the request move its scores as well.
"""

from dataclasses import dataclass

import numpy as np

from rlaudit.laboratory.studies.updates.cases import COLD_AFTER, FLIGHT, UpdateCase
from rlaudit.laboratory.studies.updates.scored_tokens import ScoredTokens
from rlaudit.layers import Verdict
from rlaudit.settings.trainer_facts import PauseMode
from rlaudit.statistics.measurement.measure import Measurement

NOT_CLEARED = "the cache was not cleared: keys and values of the old weights hide a dropped token"


@dataclass(frozen=True)
class Continuity:
    """Whether the tokens after the update follow from those before."""

    verdict: Verdict
    because: str
    # The number of requests that continued after the update.
    continued: int
    # k3 of their tokens after the update.
    after: Measurement | None


def judge_continuity(case: UpdateCase, tokens: ScoredTokens, margin: float, *, stale: bool) -> Continuity:
    """Judge the requests of one case that continued after the update.

    margin: in nats of k3. stale: whether new requests were served keys and values of the old weights.
    """
    late_T = tokens.of(FLIGHT) & tokens.late_T
    # A request whose first token is of the new weights had none before.
    first_T = np.diff(tokens.sequence_T, prepend=-1) > 0
    continued = np.unique(tokens.sequence_T[late_T & ~first_T])
    if not continued.size:
        return Continuity(Verdict.NOT_TESTED, "no request went on after the update", 0, None)
    after = tokens.k3(late_T & np.isin(tokens.sequence_T, continued), tokens.right_T)
    cold = tokens.k3(tokens.of(COLD_AFTER), tokens.right_T)
    verdict, because = (Verdict.NOT_TESTED, NOT_CLEARED) if stale else _judge(case, after, cold, margin)
    return Continuity(verdict, because, len(continued), after)


def _judge(case: UpdateCase, after: Measurement | None, cold: Measurement | None, margin: float) -> tuple[Verdict, str]:
    if case.mode is not PauseMode.KEEP or not case.clear_cache:
        return Verdict.NOT_TESTED, "the requests kept keys and values of the old weights, which hides a dropped token"
    if after is None or cold is None or after.low is None or after.high is None or cold.value is None:
        return Verdict.INCONCLUSIVE, "too few tokens after the update"
    if cold.value > margin:
        return Verdict.NOT_TESTED, "a cold run does not fit the new weights either: look at the weights first"
    if after.high < margin:
        return Verdict.MATCH, f"k3 after the resume is below {margin:g} nats with its whole interval"
    if after.low > margin:
        why = (
            "tokens after the resume do not follow from the returned ones: a token was dropped or repeated, or old "
            "keys and values were kept"
        )
        return Verdict.MISMATCH, why
    return Verdict.INCONCLUSIVE, f"the interval reaches over {margin:g} nats"
