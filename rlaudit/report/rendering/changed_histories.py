"""The turns of conversations that begin with other tokens than were sent and sampled, which stand before the layers."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rlaudit.report.figures import interval
from rlaudit.report.rendering.outline import Block, Lines, Prose, Section
from rlaudit.text.counted import counted

if TYPE_CHECKING:
    from rlaudit.diagnosis.conversations import ChangedHistory, JudgedConversations
    from rlaudit.report.report import Report


def changed_histories(report: "Report") -> Section:
    """Return the section, without blocks if each turn begins with what was sent and sampled."""
    return Section("conversations", "Conversations", list(_blocks(report)), leads=True)


def changed_turns(report: "Report") -> list[str]:
    """Return the sentence on each table that has such turns."""
    return [
        changed_sentence(table.conversations)
        for table in report.get("comparisons", ())
        if table.conversations is not None and table.conversations.changed
    ]


def changed_sentence(judged: "JudgedConversations") -> str:
    """Return how many turns begin with other tokens."""
    later = judged.turns - judged.conversations
    return (
        f"{judged.changed} of {counted(later, 'later turn')} begin with other tokens than were sent and sampled before."
    )


def unchanged_sentence(judged: "JudgedConversations") -> str:
    """Return what was looked at and is as it was."""
    later = counted(judged.turns - judged.conversations, "later turn")
    return f"all {later} of {counted(judged.conversations, 'conversation')} begin with what was sent and sampled before"


def _blocks(report: "Report") -> Iterator[Block]:
    tables = report.get("comparisons", ())
    for table in tables:
        judged = table.conversations
        if judged is None or not judged.changed:
            continue
        name = f"{table.name}: " if len(tables) > 1 else ""
        yield Prose([f"{name}{changed_sentence(judged)}", *_cost(judged)])
        yield Lines([*map(_change, judged.changes), *_counts(judged)])


def _cost(judged: "JudgedConversations") -> Iterator[str]:
    if judged.k3_after is not None and judged.k3_others is not None:
        yield (
            f"k3 of turns after such a place is {interval(judged.k3_after)} nats, of all others "
            f"{interval(judged.k3_others)}."
        )
        if judged.costs_nothing:
            yield (
                "Both figures are alike, so the trainer scores each turn behind the prompt that was sent, and "
                "nothing is lost."
            )


def _change(changed: "ChangedHistory") -> str:
    ids = f"token {changed.place}: ids {_ids(changed.was)} became {_ids(changed.now)}"
    first = f"first: prompt {changed.prompt}, sample {changed.sample}, turn {changed.turn}, {ids}"
    return f"{counted(changed.turns, 'turn')}: {changed.words} ({first})"


def _ids(ids: "Sequence[int]") -> str:
    return ", ".join(map(str, ids)) or "none"


def _counts(judged: "JudgedConversations") -> Iterator[str]:
    if judged.unjoined:
        yield f"{counted(judged.unjoined, 'turn')} hold an earlier prompt, and an answer behind it that this log lacks"
    if judged.untrained:
        yield f"{counted(judged.untrained, 'turn')} without a trained token, in conversations that have some"
    if judged.beyond:
        yield f"{counted(judged.beyond, 'turn')} not looked at, because the log is too large"
