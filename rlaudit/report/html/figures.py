"""The pictures, each with its caption above and its numbers as a table below; what could not be drawn says why."""

from collections.abc import Sequence

from rlaudit.report.html.blocks import Shown, folded, listed, table
from rlaudit.report.html.markup import Markup, element, joined
from rlaudit.report.html.svg import svg_of
from rlaudit.report.picture import Missing, Picture


def drawn_section(drawn: Sequence[Picture]) -> list[Shown]:
    """All that could be drawn, group by group."""
    names = dict.fromkeys(one.group for one in drawn)
    content = (_group(name, [one for one in drawn if one.group == name], len(names) > 1) for name in names)
    return [Shown("figures", "Figures", joined(content))] if drawn else []


def missing_section(missing: Sequence[Missing]) -> list[Shown]:
    """A line for each reason."""
    reasons = dict.fromkeys(one.reason for one in missing)
    lines = (f"{', '.join(one.title for one in missing if one.reason == reason)}: {reason}" for reason in reasons)
    return [Shown("not-drawn", "Not drawn", listed(lines))] if missing else []


def _group(name: str, pictures: Sequence[Picture], named: bool) -> Markup:
    heading = element("h3", name or "All", class_="group") if named else Markup("")
    level = "h4" if named else "h3"
    return joined(heading, element("div", (_figure(one, level) for one in pictures), class_="figures"))


def _figure(picture: Picture, level: str) -> Markup:
    caption = element("figcaption", element(level, picture.title), element("p", picture.caption))
    numbers = folded("Numbers", table(picture.table.header, picture.table.rows, f"Numbers of {picture.full_title}"))
    return element("figure", caption, svg_of(picture), numbers, id=picture.name)
