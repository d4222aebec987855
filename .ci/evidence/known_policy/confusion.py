"""The confusion table of blind trials in worlds of a known policy, and what it has to keep."""

from collections import Counter
from collections.abc import Sequence

from evidence.known_policy.faults import CAUSES
from evidence.known_policy.trials import Row, Trial
from evidence.selftest.confusion import Target
from evidence.selftest.document import reported_target
from evidence.selftest.matrix import Cell, Matrix

# What these worlds have to reach: where they are. Less than one wrong verdict in a hundred is wanted.
MOST_WRONG, HONEST_WRONG = 0.06, 0.01
TOP_RECALL, MIDDLE_RECALL, HONEST_PASSED = 0.8, 0.8, 0.75
NAMES_OF_CAUSES = frozenset(one.name for one in CAUSES)


def targets_of(trials: Sequence[Trial]) -> tuple[Target, ...]:
    """Return those figures that the trials say something about."""
    causes = [one for one in trials if one.row.name in NAMES_OF_CAUSES]
    top, middle = ([one for one in causes if one.row.dose == dose] for dose in (2, 1))
    honest = [one for one in trials if one.row.fault is None or one.row.fault.honest]
    passed = [one for one in honest if one.exit_code == 0]
    faulty = [one for one in trials if one not in honest]
    groups = (
        ("right at the top dose", top, sum(one.right for one in top), TOP_RECALL, False),
        ("right at the middle dose", middle, sum(one.right for one in middle), MIDDLE_RECALL, False),
        ("top doses that end with 0", top, sum(one.exit_code == 0 for one in top), 0.0, True),
        ("a wrong verdict of a fault", faulty, sum(one.wrong for one in faulty), MOST_WRONG, True),
        ("honest logs called a mismatch", honest, sum(one.wrong for one in honest), HONEST_WRONG, True),
        ("honest logs that end with 0", honest, len(passed), HONEST_PASSED, False),
    )
    return tuple(
        Target(title, events / len(group), bound, at_most, events, len(group))
        for title, group, events, bound, at_most in groups
        if group
    )


def table_of(trials: Sequence[Trial]) -> list[str]:
    """Return a line for each fault: how many trials were right and wrong at each dose, and what was said wrongly."""
    names = dict.fromkeys(one.row.name for one in trials)
    return [_line(name, [one for one in trials if one.row.name == name]) for name in names]


def _line(name: str, trials: Sequence[Trial]) -> str:
    rows = list(dict.fromkeys(one.row for one in trials))
    found = [[one for one in trials if one.row == row] for row in rows]
    doses = ", ".join(f"{row.in_words} {sum(t.right for t in of)}" for row, of in zip(rows, found, strict=True))
    wrong = Counter(one.said for one in trials if one.wrong)
    said = "".join(f"; WRONG {count} x {what}" for what, count in wrong.most_common())
    return f"{name}: right of {len(found[0])}: {doses.removeprefix('- ')}{said}"


def document_of(trials: Sequence[Trial]) -> Matrix:
    """Return the table with its targets."""
    by_row: dict[Row, list[Trial]] = {}
    for one in trials:
        by_row.setdefault(one.row, []).append(one)
    targets = targets_of(trials)
    return Matrix(
        all(one.met for one in targets),
        f"{len(trials)} blind logs of a known policy in {len(by_row)} cells",
        [_cell(row, found) for row, found in by_row.items()],
        [reported_target(one) for one in targets],
        (),
        ("not planted here: what no log of `compare` shows (edges of chunks), and what needs a model that scores",),
    )


def _cell(row: Row, found: Sequence[Trial]) -> Cell:
    said = Counter(one.said for one in found)
    return {
        "planted": row.name,
        "dose": row.in_words,
        "trials": len(found),
        "recall": sum(one.right for one in found) / len(found),
        "wrong": sum(one.wrong for one in found) / len(found),
        "named": [{"causes": what, "trials": count} for what, count in said.most_common()],
    }
