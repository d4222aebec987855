"""Rollouts that no trainer has scored: the first layer by samples of one prompt, and the other two not tested."""

from rlaudit.diagnosis.compare_stream import Unscored
from rlaudit.diagnosis.comparison import Comparison
from rlaudit.diagnosis.judgement import Judgement, supported
from rlaudit.diagnosis.semantic import judge_rollouts
from rlaudit.layers import Layer, Verdict
from rlaudit.meaning.candidates import Semantics
from rlaudit.meaning.from_rollouts import meaning_of_rollouts
from rlaudit.meaning.from_siblings import siblings_of
from rlaudit.meaning.meaning import RolloutFigures
from rlaudit.meaning.rollout_words import WITH_TRAINER
from rlaudit.tokens.alignment import AlignmentReport

UNSCORED = "the table has no trainer logprobs"


def compare_alone(
    table: Unscored, sampling: Semantics, trainer: Semantics, name: str, notes: tuple[str, ...]
) -> Comparison | None:
    """None where no two samples of a prompt share a context: then nothing can be said."""
    siblings = siblings_of(table.groups)
    if siblings is None:
        return None
    figures = RolloutFigures(siblings, table.share.tokens, table.share.sequences)
    meaning = meaning_of_rollouts(figures, sampling, trainer)
    semantic = supported(judge_rollouts(meaning), table.share, table.share)
    return Comparison(
        name=name,
        counts=table.counts,
        sampling=sampling,
        trainer=trainer,
        measurements={},
        tally=None,
        distance=None,
        alignment=AlignmentReport(0, 0),
        meaning=meaning,
        attribution=None,
        split=None,
        evidence_tokens=table.share.tokens,
        layers=(semantic, _untested(Layer.INFERENCE_PATH), _untested(Layer.OBJECTIVE)),
        share=table.share,
        notes=notes,
        not_seen=meaning.said.not_told,
    )


def _untested(layer: Layer) -> Judgement:
    return Judgement(layer, Verdict.NOT_TESTED, UNSCORED, next=WITH_TRAINER)
