"""A weight-update audit as Markdown, for pull requests and step summaries: what was found first."""

from collections.abc import Iterable

from rlaudit.printable import one_line, printable
from rlaudit.report import weight_updates_words as words
from rlaudit.report.report_format import Document


def render(document: Document) -> str:
    """The same parts as the text report."""
    document = printable(dict(document))
    sections = [
        f"# {words.headline(document)}",
        f"**{words.verdict(document)}**",
        _list(_conclusions(document)),
        _titled("Sequences of calls", _table(words.sequences(document))),
        _titled("Tokens in flight by version lag", _table(words.lags(document))),
        _titled("What is updated", _list(words.parts(document))),
        _titled("Stale keys and values by distance from the cached blocks", _table(words.decay(document))),
        _titled("Stale keys and values over several updates", _list(words.survival(document))),
        _titled("Updates that had to fail", _list(words.faults(document))),
        *(
            _titled(title, because + (f"\n\n```python\n{code}\n```" if code else ""))
            for title, because, code in words.calls(document)
        ),
        _titled("Not seen", _list(document["not_seen"])),
        words.cost(document),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _conclusions(document: Document) -> Iterable[str]:
    for one in document["weight_updates"]["conclusions"]:
        again = f" See it again: `{one['reproduce']}`." if one["reproduce"] else ""
        figures = f" *{_sentence(one['sure'])}*" if one["sure"] else ""
        following = f" Next: {_sentence(one['next'])}" if one["next"] else ""
        yield f"**{one['severity']}** `{one['rule']}` {_sentence(one['found'])}{figures}{following}{again}"


def _sentence(words_: str) -> str:
    return words_ if words_.endswith(".") else f"{words_}."


def _titled(title: str, body: str) -> str:
    return f"## {title}\n\n{body}" if body else ""


def _table(rows: words.Table) -> str:
    if len(rows) < 2:
        return ""
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join("| " + " | ".join(one_line(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {one_line(line)}" for line in lines)
