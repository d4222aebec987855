"""The confusion matrix of blind trials from ids and one logprob a token."""

from collections import Counter
from collections.abc import Sequence

from selftest.blind import CLEAN
from worlds.plant import Dose

from evidence.selftest.confusion import CLEAN_RECALL, MIDDLE_RECALL, MOST_WRONG, TOP_RECALL, Target
from evidence.selftest.document import reported_target
from evidence.selftest.matrix import Cell as ReportedCell
from evidence.selftest.matrix import Matrix
from evidence.selftest.sibling_trials import SiblingLabel, SiblingTrial
from evidence.selftest.sibling_world import PROMPTS, SAMPLES

NOT_SEEN = (
    "not planted here: what needs the trainer's scores, entropies or top logprobs to be seen; that is the matrix "
    "without --ids-only",
)


def document_of_siblings(trials: Sequence[SiblingTrial]) -> Matrix:
    """All of it, with the targets."""
    by_label: dict[SiblingLabel, list[SiblingTrial]] = {}
    for trial in trials:
        by_label.setdefault(trial.label, []).append(trial)
    targets = targets_of(trials)
    bounds = {Dose.TOP: TOP_RECALL, Dose.MIDDLE: MIDDLE_RECALL}
    missed = [
        f"{label.fault} ({label.planted.doses[label.dose]}): recall {_recall(found):.2f} < {bounds[label.dose]:.2f}"
        for label, found in by_label.items()
        if label.dose in bounds and _recall(found) < bounds[label.dose]
    ]
    return Matrix(
        all(target.met for target in targets),
        f"{len(trials)} blind trials in {len(by_label)} cells from ids and one logprob a token, {PROMPTS} prompts with "
        f"{SAMPLES} samples each",
        [_cell(label, found) for label, found in by_label.items()],
        [reported_target(target) for target in targets],
        missed,
        NOT_SEEN,
    )


def targets_of(trials: Sequence[SiblingTrial]) -> tuple[Target, ...]:
    """Those that the trials at hand say something about."""
    planted = [trial for trial in trials if trial.label.fault != CLEAN]
    groups = (
        ("recall at the top dose", [one for one in planted if one.label.dose is Dose.TOP], TOP_RECALL),
        ("recall at the middle dose", [one for one in planted if one.label.dose is Dose.MIDDLE], MIDDLE_RECALL),
        ("clean called clean", [one for one in trials if one.label.fault == CLEAN], CLEAN_RECALL),
    )
    found = [
        Target(title, _recall(group), bound, False, sum(one.recalled for one in group), len(group))
        for title, group, bound in groups
        if group
    ]
    wrong = sum(one.wrong for one in trials)
    return (*found, Target("wrongly convicted or acquitted", wrong / len(trials), MOST_WRONG, True, wrong, len(trials)))


def _recall(trials: Sequence[SiblingTrial]) -> float:
    return sum(trial.recalled for trial in trials) / len(trials)


def _cell(label: SiblingLabel, trials: Sequence[SiblingTrial]) -> ReportedCell:
    said = Counter(trial.said for trial in trials)
    return {
        "planted": label.fault,
        "dose": label.planted.doses[label.dose],
        "trials": len(trials),
        "recall": _recall(trials),
        "wrong": sum(trial.wrong for trial in trials) / len(trials),
        "named": [{"causes": what, "trials": count} for what, count in said.most_common()],
    }
