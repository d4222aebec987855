"""HTML that cannot be injected into: every string is escaped unless it was made here."""

from collections.abc import Iterable
from html import escape

VOID = frozenset({"meta", "br"})


class Markup(str):
    """A string that is HTML already."""

    __slots__ = ()


Content = str | Iterable[str]


def element(name: str, /, *content: Content, **attributes: str | None) -> Markup:
    """Return `<name attributes>content</name>`.

    Strings are escaped, Markup is not, iterables are joined. Of attributes, `class_` is class, an underscore is a
    hyphen, and None is left out.
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
    """Join the parts, each escaped unless it is Markup."""
    parts: list[str] = []
    for part in content:
        if isinstance(part, Markup):
            parts.append(part)
        elif isinstance(part, str):
            parts.append(escape(part))
        else:
            parts.append(joined(*part))
    return Markup("".join(parts))
