"""The page around the sections: head, title, contents, foot. Nothing is loaded from anywhere and no script runs."""

from collections.abc import Sequence
from importlib.resources import files

from rlaudit.report.html.markup import Markup, element, joined
from rlaudit.report.html.section import Section

# What the page may do: nothing but its own style. A script or a link to elsewhere would be stopped by the browser.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def page(title: str, kicker: str, lead: str, facts: Sequence[str], sections: Sequence[Section], foot: str) -> str:
    """The whole file."""
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
    top = element(
        "header",
        element("p", kicker, class_="kicker"),
        element("h1", title),
        element("p", lead) if lead else Markup(""),
        element("p", " · ".join(facts), class_="muted") if facts else Markup(""),
        element("nav", element("ul", (_entry(section) for section in sections)), aria_label="Contents"),
    )
    body = element(
        "body",
        element("a", "Skip to the report", class_="skip", href="#report"),
        element("div", top, element("main", (_section(one) for one in sections), id="report", tabindex="-1"),
                element("footer", foot), class_="page"),
    )  # fmt: skip
    return f'<!doctype html>\n<html lang="en">\n{joined(head, body)}\n</html>\n'


def _entry(section: Section) -> Markup:
    return element("li", element("a", section.title, href=f"#{section.name}"))


def _section(section: Section) -> Markup:
    heading = element("h2", section.title, id=f"{section.name}-title")
    return element("section", heading, section.content, id=section.name, aria_labelledby=f"{section.name}-title")
