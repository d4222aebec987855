"""Logged rollout logprobs against trainer logprobs: figures of every token, and the three layers in their order.

    read      each file once, in memory that does not grow with it     read_log.py
    gather    the figures, and the columns of a sample of sequences    evidence.py
    judge     semantics, inference path, objective, in this order      below, and judge_path.py
    say       each layer in sentences, which nothing reads back        semantic.py, inference_path.py, objective.py

Covered: any token table (`rlaudit/tokens`). Figures and their intervals are of all comparable tokens; causes are looked
for in a sample of whole sequences spread over the table.
Not covered: what was not logged. Every comparison says what its columns cannot tell.

Rollouts that no trainer has scored are judged in the first layer alone, by samples of one prompt.
"""

from dataclasses import dataclass, replace

from rlaudit.causes.attribution.attribute import DEFAULT_MARGIN, Attribution, attribute
from rlaudit.diagnosis.distance import ORDINARY, Distance, Yardstick
from rlaudit.diagnosis.evidence import Evidence, Today
from rlaudit.diagnosis.inference_path import say_path
from rlaudit.diagnosis.judge_path import Decided, InferencePath, consequence_verdict, judge_path
from rlaudit.diagnosis.judgement import SEMANTIC_METRIC, held, supported
from rlaudit.diagnosis.move import Move
from rlaudit.diagnosis.objective import say_objective
from rlaudit.diagnosis.objective_split import ObjectiveSplit, recommended
from rlaudit.diagnosis.semantic import say_meaning
from rlaudit.layers import Judgement, Layer, Verdict, untested
from rlaudit.meaning.from_logs import meaning_of_logs, meaning_of_rollouts
from rlaudit.meaning.limits import Limits
from rlaudit.meaning.meaning import LoggedFigures, Meaning
from rlaudit.meaning.words import WITH_TRAINER, unseen_by
from rlaudit.text.counted import counted

UNSCORED = "the table has no trainer logprobs"


@dataclass(frozen=True, eq=False)
class Comparison:
    """A table that was compared: verdicts and figures, and the sentences about them.

    Of rollouts that no trainer has scored the first layer alone was judged.
    """

    evidence: Evidence
    # From the trainer's scores under other meanings if there are any, else from logs alone.
    meaning: Meaning
    # Like `layers`: semantic, inference path, objective.
    verdicts: tuple[Verdict, Verdict, Verdict]
    # Like `split`, of the sample in which causes are searched for.
    attribution: Attribution | None = None
    path: InferencePath | None = None
    split: ObjectiveSplit | None = None
    layers: tuple[Judgement, ...] = ()
    notes: tuple[str, ...] = ()
    not_seen: tuple[str, ...] = ()
    # What the move from today's engine changes, if that was compared as well.
    move: Move | None = None

    @property
    def limits(self) -> Limits | None:
        """What the log would have shown by itself; None if the trainer's scores say more."""
        figures = self.meaning.figures
        if not isinstance(figures, LoggedFigures):
            return None
        ordinary = self.path is not None and self.path.decided is Decided.ORDINARY
        return replace(figures.limits, k3=ORDINARY) if ordinary else figures.limits

    @property
    def as_today(self) -> Today:
        """What another comparison is compared with."""
        attribution = self.attribution
        # A mismatch has a cause, and is no noise floor.
        floor_k2 = None if attribution is None or Verdict.MISMATCH in self.verdicts else attribution.k2
        return Today(self.evidence.name, self.evidence.measurements, self.evidence.tally, self.verdicts[0], floor_k2)


def judged(evidence: Evidence) -> Comparison:
    """Judge the three layers in their order, each with what the one before it found; `worded` adds the sentences."""
    tokens, distance, settings = evidence.tokens, evidence.distance, evidence.settings
    if tokens is None or distance is None:
        return _rollouts(evidence)
    shares = (evidence.share, evidence.looked_at)
    attribution = attribute(tokens, _parity_k2(distance), settings.seed)
    meaning = tokens.meaning
    if meaning is None:
        leaning = attribution.leaning_of(Layer.SEMANTIC)
        shifted = (sum(evidence.counts.misaligned.values()), evidence.alignment.sequences)
        meaning = meaning_of_logs(tokens, evidence.measurements[SEMANTIC_METRIC], leaning, evidence.siblings, shifted)
    named = attribution.named_of(Layer.SEMANTIC)
    semantic = held(Verdict.MISMATCH if named else meaning.verdict, *shares)
    path = judge_path(distance, attribution, semantic, tokens, evidence.weights, settings.seed)
    earlier = (semantic, held(path.verdict, *shares))
    clean = all(verdict.passes for verdict in earlier)
    objective = held(consequence_verdict(distance, path), *shares) if clean else Verdict.NOT_TESTED
    split = None if evidence.split is None else recommended(evidence.split, earlier)
    return Comparison(evidence, meaning, (*earlier, objective), attribution, path, split)


def _rollouts(evidence: Evidence) -> Comparison:
    """Judge rollouts that no trainer has scored, by samples of one prompt."""
    siblings, share = evidence.siblings, evidence.share
    assert siblings is not None
    meaning = meaning_of_rollouts(siblings, share.tokens, share.sequences, evidence.sampling, evidence.trainer)
    return Comparison(evidence, meaning, (held(meaning.verdict, share), Verdict.NOT_TESTED, Verdict.NOT_TESTED))


def _parity_k2(distance: Distance) -> float:
    """Return the k2 (nats^2) from which on causes are searched for.

    What a clip range feels may be far below what signatures were tried on: a healthy pair in float32 has a shape, too,
    and naming it would be wrong. Below DEFAULT_MARGIN it takes a margin or a reference to call something an excess.
    """
    if distance.yardstick is Yardstick.CONSEQUENCE:
        return max(distance.tolerated, DEFAULT_MARGIN)
    return distance.tolerated


def worded(comparison: Comparison) -> Comparison:
    """Return the comparison with its sentences: each layer as it was judged, and what was not seen."""
    not_seen = (*_left_out(comparison.evidence), *comparison.evidence.gaps, *unseen_by(comparison.meaning))
    return replace(comparison, layers=tuple(_layers(comparison)), not_seen=not_seen)


def _layers(comparison: Comparison) -> list[Judgement]:
    evidence, attribution, path = comparison.evidence, comparison.attribution, comparison.path
    ratio = evidence.measurements.get(SEMANTIC_METRIC)
    judgements = [_with_entropy(say_meaning(comparison.meaning, attribution, ratio), evidence.entropy_left_out)]
    if evidence.distance is None or attribution is None or path is None:
        later = (Layer.INFERENCE_PATH, Layer.OBJECTIVE)
        reason = evidence.settings.first_look.unused.get("trainer_logprob", UNSCORED)
        judgements += [untested(layer, reason, WITH_TRAINER) for layer in later]
    else:
        distance, (semantic, *_), earlier = evidence.distance, comparison.verdicts, comparison.verdicts[:2]
        judgements.append(say_path(path, distance, attribution, semantic, evidence.weights))
        felt = consequence_verdict(distance, path)
        judgements.append(say_objective(evidence.measurements, comparison.split, earlier, distance, felt))
    return [supported(judgement, evidence.share, evidence.looked_at) for judgement in judgements]


def _with_entropy(semantic: Judgement, left_out: str) -> Judgement:
    """Say why a column that may be the next thing to log is there and not used."""
    if not left_out or semantic.verdict not in {Verdict.INCONCLUSIVE, Verdict.NOTHING_FOUND}:
        return semantic
    return replace(semantic, next=f"{semantic.next}. The trainer_entropy of this log is not used: {left_out}")


def _left_out(evidence: Evidence) -> tuple[str, ...]:
    """Say which tokens are in no figure, and whether today's engine cannot serve as a reference."""
    counts = evidence.counts
    lines = []
    if counts.misaligned:
        kinds = ", ".join(f"{kind} in {number}" for kind, number in sorted(counts.misaligned.items()))
        left = counted(sum(counts.misaligned.values()), "sequence")
        lines.append(f"rollout and trainer tokens of {left} do not line up, and all figures leave these out: {kinds}")
    masked = counts.uncounted_tokens - counts.not_drawn_tokens
    if masked > 0:
        lines.append(f"the loss mask leaves out {masked} of {counts.tokens} tokens")
    if counts.impossible_tokens:
        lines.append(f"{counts.impossible_tokens} tokens have no ratio, because the trainer's filters cut them off")
    if evidence.unscored_today is not None:
        lines.append(
            f"the inference path was not compared with {evidence.unscored_today}, which has no trainer logprobs"
        )
    return tuple(lines)
