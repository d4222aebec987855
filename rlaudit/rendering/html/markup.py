"""HTML that cannot be injected into: every string is escaped unless it was made here."""

from collections.abc import Iterable
from html import escape

VOID = frozenset({"meta", "br"})


class Markup(str):
    """A string that is HTML already."""

    __slots__ = ()


Content = str | Iterable[str]


def element(name: str, /, *content: Content, **attributes: str | None) -> Markup:
    """<name attributes>content</name>.

    Strings are escaped, Markup is not, iterables are their parts in a row. Attributes: `class_` is class, an
    underscore is a hyphen, None is left out.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{joined(*content)}</{name}>")


def joined(*content: Content) -> Markup:
    """Parts in a row, each escaped unless it is Markup."""
    parts: list[str] = []
    for one in content:
        if isinstance(one, Markup):
            parts.append(one)
        elif isinstance(one, str):
            parts.append(escape(one))
        else:
            parts.append(joined(*one))
    return Markup("".join(parts))
