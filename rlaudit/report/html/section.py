"""A section of the page: a heading that the contents can lead to, and what is below it."""

from dataclasses import dataclass

from rlaudit.report.html.markup import Markup


@dataclass(frozen=True)
class Shown:
    """`name`: of letters, digits and hyphens, unique in the page."""

    name: str
    title: str
    content: Markup
