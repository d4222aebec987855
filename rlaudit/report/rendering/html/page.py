"""The page: head, title, contents, sections, foot. Nothing is loaded from anywhere and no script runs.

A picture has its caption above it and its numbers as a table below; what could not be drawn says why.
"""

from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

from rlaudit.report.rendering.html.blocks import Shown, arrow, folded, listed, table, titled
from rlaudit.report.rendering.html.markup import Markup, element, joined
from rlaudit.report.rendering.html.svg import svg_of
from rlaudit.report.rendering.outline import Outline, Section, outline_of
from rlaudit.report.rendering.picture import NARROW, Missing, Picture, pictures_of
from rlaudit.text.printable import printable

if TYPE_CHECKING:
    from rlaudit.report.report import Report

# The page may use its own style and nothing else: a browser stops scripts, and loads nothing from elsewhere.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def page(report: "Report") -> str:
    """Return the whole file: verdicts, pictures, then the other sections of the report's outline."""
    report = printable(dict(report))
    outline = outline_of(report)
    title = arrow(outline.title)
    shown = outline.shown(on_page=True)
    # A page begins with what a terminal ends with: both are seen first.
    leading = [section for section in shown if section.leads or section.closes]
    drawn, missing = pictures_of(report)
    sections = [
        *map(_shown, leading),
        *drawn_section(drawn),
        *(_shown(section) for section in shown if section not in leading),
        *missing_section(missing),
    ]
    style = Markup(files("rlaudit.report.rendering.html").joinpath("page.css").read_text(encoding="utf-8"))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", f"{title} · rlaudit"),
        element("style", style),
    )
    body = element(
        "body",
        element("a", "Skip to the report", class_="skip", href="#report"),
        element(
            "div",
            _top(report, outline, title, sections),
            element("main", map(_section, sections), id="report", tabindex="-1"),
            element("footer", _foot(report)),
            class_="page",
        ),
    )
    return f'<!doctype html>\n<html lang="en">\n{joined(head, body)}\n</html>\n'


def _shown(section: Section) -> Shown:
    title = arrow("; ".join((section.title, *section.also)))
    return Shown(section.name, title, joined(map(titled, section.blocks)))


def _top(report: "Report", outline: Outline, title: str, sections: Sequence[Shown]) -> Markup:
    entries = (element("li", element("a", section.title, href=f"#{section.name}")) for section in sections)
    return element(
        "header",
        element("p", f"rlaudit {report['command']}", class_="kicker"),
        element("h1", title),
        element("p", outline.lead) if outline.lead else Markup(""),
        listed(outline.about) if outline.about else Markup(""),
        element("p", " · ".join(outline.facts), class_="muted") if outline.facts else Markup(""),
        element("nav", element("ul", entries), aria_label="Contents"),
    )


def _foot(report: "Report") -> str:
    return f"Written by rlaudit {report['rlaudit']}, schema {report['schema']}; exit code {report['exit_code']}."


def _section(section: Shown) -> Markup:
    heading = element("h2", section.title, id=f"{section.name}-title")
    return element("section", heading, section.content, id=section.name, aria_labelledby=f"{section.name}-title")


def drawn_section(drawn: Sequence[Picture]) -> list[Shown]:
    """Return all that could be drawn, group by group."""
    names = dict.fromkeys(picture.group for picture in drawn)
    content = (_group(name, [picture for picture in drawn if picture.group == name], len(names) > 1) for name in names)
    return [Shown("figures", "Figures", joined(content))] if drawn else []


def missing_section(missing: Sequence[Missing]) -> list[Shown]:
    """Return a line for each reason."""
    reasons = dict.fromkeys(picture.reason for picture in missing)
    lines = (
        f"{', '.join(picture.title for picture in missing if picture.reason == reason)}: {reason}" for reason in reasons
    )
    return [Shown("not-drawn", "Not drawn", listed(lines))] if missing else []


def _group(name: str, pictures: Sequence[Picture], named: bool) -> Markup:
    heading = element("h3", name or "All", class_="group") if named else Markup("")
    level = "h4" if named else "h3"
    return joined(heading, element("div", (_figure(picture, level) for picture in pictures), class_="figures"))


def _figure(picture: Picture, level: str) -> Markup:
    caption = element("figcaption", element(level, picture.title), element("p", picture.caption))
    numbers = folded("Numbers", table(picture.table.header, picture.table.rows, f"Numbers of {picture.full_title}"))
    wide = "wide" if picture.width > NARROW else None
    return element("figure", caption, svg_of(picture), numbers, id=picture.name, class_=wide)
