"""Each arm in figures: metrics with intervals, what its logprobs mean, the precision of both heads, levels in force."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.errors import NotFinished
from rlaudit.laboratory.factor import ArmTrace, Observation
from rlaudit.laboratory.scoring import Scores
from rlaudit.laboratory.studies.arms.plan import BlockPlan, known_factors, scoring_request
from rlaudit.laboratory.studies.arms.run import FinishedArm, FinishedRun
from rlaudit.layers import Verdict
from rlaudit.meaning.from_scores import identify
from rlaudit.meaning.meaning import Meaning
from rlaudit.meaning.scored_tokens import ScoredTokens
from rlaudit.meaning.words import UNEXPLAINED
from rlaudit.statistics.measurement.lattice import HeadPrecision, LatticeEvidence, lattice_hit_rate
from rlaudit.statistics.measurement.measure import Measurement, measure
from rlaudit.statistics.measurement.metric import ObjectiveSettings
from rlaudit.tokens.pairs import LogprobPairs


@dataclass(frozen=True, eq=False)
class MeasuredArm:
    """An arm that has tokens, and its figures."""

    finished: FinishedArm
    scored: ScoredTokens
    # Outside the sampler's filters, as the trainer replays them: without a ratio, and in neither of the next two.
    impossible_tokens: int
    # The reported logprobs beside what the trainer uses.
    pairs: LogprobPairs
    # The same under the meaning that explains them best: what is left there is the inference path's.
    residual: LogprobPairs
    measurements: Mapping[str, Measurement]
    meaning: Meaning
    rollout_head: LatticeEvidence
    trainer_head: LatticeEvidence
    observations: Mapping[str, Observation]
    cached_tokens: int

    @property
    def name(self) -> str:
        """The arm's name within its block."""
        return self.finished.arm.name

    @property
    def title(self) -> str:
        """What it ran on, for a sentence."""
        return f"{self.name} (vLLM {self.finished.arm.treatment.version}, {self.finished.result['resolved']['dtype']})"

    @property
    def semantically_clean(self) -> bool:
        """Whether the reported logprobs mean what the trainer assumes."""
        return self.meaning.verdict is Verdict.MATCH

    @property
    def has_meaning(self) -> bool:
        """Whether it is known what the reported logprobs mean, so that what is left is a distance."""
        verdict = self.meaning.verdict
        return verdict.passes or (verdict is Verdict.MISMATCH and self.meaning.kind not in UNEXPLAINED)

    @property
    def distance(self) -> LogprobPairs:
        """What is left under the meaning that fits, as it would be in logprobs at the sampler's temperature."""
        return at_temperature(self.residual, self.meaning.theta_report.temperature, self.meaning.requested.temperature)


def at_temperature(pairs: LogprobPairs, reported: float, sampled: float) -> LogprobPairs:
    """Return pairs reported at one temperature with the differences that they would have at another.

    An error of a logit is 1/T times as large in a logprob at T (to first order): raw logprobs at T = 0.6 look nearer to
    their trainer than processed ones of the same engine.
    """
    log_ratio_T = (pairs.trainer_logprobs_T - pairs.rollout_logprobs_T) * (reported / sampled)
    # The larger of the two stays: no logprob becomes positive.
    larger_T = np.maximum(pairs.trainer_logprobs_T, pairs.rollout_logprobs_T)
    return replace(
        pairs,
        rollout_logprobs_T=larger_T - np.maximum(log_ratio_T, 0.0),
        trainer_logprobs_T=larger_T + np.minimum(log_ratio_T, 0.0),
    )


def measure_block(run: FinishedRun, block: BlockPlan) -> dict[str, MeasuredArm]:
    """Return the block's finished arms that have tokens, by name."""
    settings = run.plan.recipe.objective.as_settings()
    return {
        name: _measure(run, arm, settings)
        for name, arm in run.of_block(block).items()
        if arm.ok and scoring_request(arm.arm).key in run.scores and arm.arm.model is None
    }


def _measure(run: FinishedRun, finished: FinishedArm, settings: ObjectiveSettings) -> MeasuredArm:
    scores = run.scores[scoring_request(finished.arm).key]
    scored = scored_tokens(finished, scores, run)
    meaning = identify(
        scored,
        theta_sample=scores.batch.request.theta_sample,
        theta_train=scores.batch.request.theta_train,
        floor_k2=floor_of(scores, "k3"),
        seed=run.plan.recipe.seed,
    )
    pairs = LogprobPairs(
        rollout_logprobs_T=scored.rollout_logprobs_T,
        trainer_logprobs_T=scored.trainer_logprobs_T,
        sequence_T=scored.sequence_T,
        prompt_S=scored.prompt_S,
        entropy_T=scored.entropy_T,
        prompts=len(run.prompt_token_ids),
    )
    possible_T = np.isfinite(scored.trainer_logprobs_T)
    residual = replace(pairs, trainer_logprobs_T=_explained_by(meaning, scored), entropy_T=None)
    if not possible_T.any():
        raise NotFinished(
            f"the trainer's filters exclude every token of {finished.arm.name}", "check trainer.replay_filters"
        )
    if not possible_T.all():
        pairs, residual = pairs.keep(possible_T), residual.keep(possible_T)
    rollout_head, trainer_head = _heads(finished, scores)
    trace = ArmTrace(
        treatment=finished.arm.treatment,
        resolved=finished.result["resolved"],
        cached_tokens=sum(sequence.cached_tokens for sequence in finished.sequences),
        prompt_tokens_per_round=_largest_round(finished, run),
        rollout_head=_dtype_seen(rollout_head),
        trainer_head=_dtype_seen(trainer_head),
        head_because=f"rollout: {rollout_head.because}; trainer: {trainer_head.because}",
        requested=meaning.requested,
        reported=meaning.theta_report,
        loaded=finished.result.get("loaded", {}),
        batch_probe=finished.result.get("batch_probe", {}),
    )
    return MeasuredArm(
        finished=finished,
        scored=scored,
        impossible_tokens=int((~possible_T).sum()),
        pairs=pairs,
        residual=residual,
        measurements=measure(pairs, settings, seed=run.plan.recipe.seed),
        meaning=meaning,
        rollout_head=rollout_head,
        trainer_head=trainer_head,
        observations={name: factor.observe(trace) for name, factor in known_factors().items()},
        cached_tokens=trace.cached_tokens,
    )


def scored_tokens(finished: FinishedArm, scores: Scores, run: FinishedRun) -> ScoredTokens:
    """Return an arm's tokens in the order of its sequences, with the trainer's scores."""
    keys = [(tuple(run.prompt_token_ids[sequence.prompt]), sequence.token_ids) for sequence in finished.sequences]
    return ScoredTokens.from_scores(
        scores.arrays,
        scores.rows_of(keys),
        lengths_S=[len(sequence.token_ids) for sequence in finished.sequences],
        rollout_logprobs=np.concatenate([sequence.logprobs for sequence in finished.sequences]),
        prompt_S=np.array([sequence.prompt for sequence in finished.sequences]),
        candidates=scores.batch.request.candidates,
        report_is_cut=any(
            bool(np.isneginf(step).any()) for sequence in finished.sequences for step in sequence.top_logprobs
        ),
    )


def floor_of(scores: Scores, figure: str) -> float:
    """Return how far the trainer is from itself in other micro-batches: mean_abs, median_abs, max_abs or k3, nats."""
    return float(scores.result["micro_batch_floor"][figure])


def _explained_by(meaning: Meaning, scored: ScoredTokens) -> Floats:
    """Return (T,) the trainer's logprobs under the meaning that the report follows; as scored for tokens outside it."""
    explained_T = scored.logprobs_under(meaning.theta_report)
    if explained_T is None:
        return scored.trainer_logprobs_T
    return np.where(np.isfinite(explained_T), explained_T, scored.trainer_logprobs_T)


def _heads(finished: FinishedArm, scores: Scores) -> tuple[LatticeEvidence, LatticeEvidence]:
    temperature = float(finished.arm.treatment.sampling["temperature"])
    rollout_top = [step for sequence in finished.sequences for step in sequence.top_logprobs]
    # A recording may hold a single logprob a token.
    width = max(2, *(len(step) for step in rollout_top))
    padded = np.full((len(rollout_top), width), -np.inf)
    for row, step in enumerate(rollout_top):
        padded[row, : len(step)] = step
    return (
        lattice_hit_rate(padded, temperature),
        lattice_hit_rate(scores.arrays["top_logprobs"], scores.batch.request.theta_train.temperature),
    )


def _dtype_seen(evidence: LatticeEvidence) -> str | None:
    return {HeadPrecision.BF16: "bfloat16", HeadPrecision.NOT_BF16: "float32"}.get(evidence.verdict)


def _largest_round(finished: FinishedArm, run: FinishedRun) -> int:
    if finished.arm.treatment.concurrency == "alone":
        return max(len(prompt) for prompt in run.prompt_token_ids)
    tokens_of_round = Counter[int]()
    for sequence in finished.sequences:
        tokens_of_round[sequence.round] += len(run.prompt_token_ids[sequence.prompt])
    return max(tokens_of_round.values())
