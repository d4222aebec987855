"""The page: head, title, contents, sections, foot. Nothing is loaded from anywhere and no script runs."""

from collections.abc import Sequence
from importlib.resources import files

from rlaudit.printable import printable
from rlaudit.report.html.blocks import Shown, arrow, listed, titled
from rlaudit.report.html.figures import drawn_section, missing_section
from rlaudit.report.html.markup import Markup, element, joined
from rlaudit.report.outline import Outline, Section, outline_of
from rlaudit.report.pictures_of import pictures_of
from rlaudit.report.report import Report

# What the page may do: nothing but its own style. A script or a link to elsewhere would be stopped by the browser.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def page(document: Report) -> str:
    """The whole file: verdicts, pictures, what the command's own report holds."""
    document = printable(dict(document))
    outline = outline_of(document)
    title = arrow(outline.title)
    shown = outline.shown(on_page=True)
    # What a terminal ends with, so that it is seen, a page begins with.
    leading = [section for section in shown if section.leads or section.closes]
    drawn, missing = pictures_of(document)
    sections = [
        *map(_shown, leading),
        *drawn_section(drawn),
        *(_shown(section) for section in shown if section not in leading),
        *missing_section(missing),
    ]
    style = Markup(files("rlaudit.report.html").joinpath("page.css").read_text(encoding="utf-8"))
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
            _top(document, outline, title, sections),
            element("main", map(_section, sections), id="report", tabindex="-1"),
            element("footer", _foot(document)),
            class_="page",
        ),
    )
    return f'<!doctype html>\n<html lang="en">\n{joined(head, body)}\n</html>\n'


def _shown(section: Section) -> Shown:
    title = arrow("; ".join((section.title, *section.also)))
    return Shown(section.name, title, joined(map(titled, section.blocks)))


def _top(document: Report, outline: Outline, title: str, sections: Sequence[Shown]) -> Markup:
    return element(
        "header",
        element("p", f"rlaudit {document['command']}", class_="kicker"),
        element("h1", title),
        element("p", outline.lead) if outline.lead else Markup(""),
        listed(outline.about) if outline.about else Markup(""),
        element("p", " · ".join(outline.facts), class_="muted") if outline.facts else Markup(""),
        element("nav", element("ul", map(_entry, sections)), aria_label="Contents"),
    )


def _foot(document: Report) -> str:
    return f"Written by rlaudit {document['rlaudit']}, schema {document['schema']}; exit code {document['exit_code']}."


def _entry(section: Shown) -> Markup:
    return element("li", element("a", section.title, href=f"#{section.name}"))


def _section(section: Shown) -> Markup:
    heading = element("h2", section.title, id=f"{section.name}-title")
    return element("section", heading, section.content, id=section.name, aria_labelledby=f"{section.name}-title")
