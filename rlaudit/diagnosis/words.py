"""What is said of a comparison: each layer as it was judged, and what was not seen. Nothing parses it.

The sentences of a layer, for comparisons and ablations alike, are in the file of its name.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from rlaudit.diagnosis.evidence import Evidence
from rlaudit.diagnosis.inference_path import say_path
from rlaudit.diagnosis.judgement import SEMANTIC_METRIC, supported
from rlaudit.diagnosis.objective import say_objective
from rlaudit.diagnosis.semantic import say_meaning
from rlaudit.layers import Judgement, Layer, untested
from rlaudit.meaning.words import WITH_TRAINER, unseen_by

# A comparison is made of them.
if TYPE_CHECKING:
    from rlaudit.diagnosis.compare import Comparison

UNSCORED = "the table has no trainer logprobs"


def worded(comparison: "Comparison") -> "Comparison":
    """Return the comparison with all that is said of it."""
    not_seen = (*_left_out(comparison.evidence), *comparison.evidence.gaps, *unseen_by(comparison.meaning))
    return replace(comparison, layers=tuple(_layers(comparison)), not_seen=not_seen)


def _layers(comparison: "Comparison") -> list[Judgement]:
    evidence, attribution, path = comparison.evidence, comparison.attribution, comparison.path
    ratio = evidence.measurements.get(SEMANTIC_METRIC)
    judgements = [say_meaning(comparison.meaning, attribution, ratio)]
    if evidence.distance is None or attribution is None or path is None:
        later = (Layer.INFERENCE_PATH, Layer.OBJECTIVE)
        judgements += [untested(layer, UNSCORED, WITH_TRAINER) for layer in later]
    else:
        distance, (semantic, *_), earlier = evidence.distance, comparison.verdicts, comparison.verdicts[:2]
        judgements.append(say_path(path, distance, attribution, semantic, evidence.weights))
        judgements.append(say_objective(evidence.measurements, comparison.split, earlier, distance))
    return [supported(judgement, evidence.share, evidence.looked_at) for judgement in judgements]


def _left_out(evidence: Evidence) -> tuple[str, ...]:
    """Say which tokens are in no figure, and what runs today if that cannot serve as a reference."""
    counts = evidence.counts
    lines = []
    if counts.misaligned:
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(counts.misaligned.items()))
        lines.append(f"sequences whose two sides do not meet are in no figure: {kinds}")
    if counts.uncounted_tokens:
        lines.append(f"{counts.uncounted_tokens} of {counts.tokens} tokens are not counted by the loss mask")
    if counts.impossible_tokens:
        lines.append(
            f"{counts.impossible_tokens} tokens lie outside what the trainer's filters keep; they have no ratio"
        )
    if evidence.unscored_today is not None:
        lines.append(f"{evidence.unscored_today}: no trainer logprobs, so the inference path is not held against it")
    return tuple(lines)
