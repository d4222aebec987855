"""A picture as inline SVG, drawn by matplotlib: text stays text, and colours come from the page's style sheet.

Colours are drawn as placeholders and replaced by CSS variables, so that one drawing serves light, dark and print. Ids
are dropped unless something refers to them, and carry the picture's name, so that pictures share a page.
"""

import io
import re
import warnings
import xml.etree.ElementTree as ET
from typing import Any

from rlaudit.report.rendering.drawing.styles import PLACEHOLDERS
from rlaudit.report.rendering.html.markup import Markup
from rlaudit.report.rendering.picture import Picture

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"
_LONG = re.compile(r"-?\d+\.\d{2,}")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_FONT = re.compile(r"font(?:-family)?: *[^;]*?'[^;]*;?")
_PLACEHOLDER = re.compile("|".join(PLACEHOLDERS), re.IGNORECASE)
COORDINATES = frozenset({"d", "transform", "x", "y", "style", "width", "height", "points"})
STYLE = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "text.usetex": False,
    "axes.unicode_minus": True,
    "font.family": "DejaVu Sans",
    "font.size": 10.5,
    "path.simplify": False,
}


def svg_of(picture: Picture) -> Markup:
    """Return the picture in CSS pixels; the page scales it."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    out = io.StringIO()
    style: Any = {**STYLE, "svg.hashsalt": picture.name}
    with rc_context(style), warnings.catch_warnings():
        # Names of arms may have letters that matplotlib's font lacks; the reader's browser has them.
        warnings.filterwarnings("ignore", message=r"(Glyph|Matplotlib currently does not support)")
        figure = Figure(figsize=(picture.width / 72, picture.height / 72), dpi=72)
        FigureCanvasSVG(figure)
        picture.draw(figure)
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
                       transparent=True)  # fmt: skip
    return _inline(out.getvalue(), picture)


def _inline(svg: str, picture: Picture) -> Markup:
    root = ET.fromstring(svg)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in {f"{{{SVG}}}metadata", f"{{{SVG}}}style"}:
                parent.remove(child)
    used = {name for node in root.iter() for value in node.attrib.values() for name in _REFERENCE.findall(value)}
    used |= {node.attrib[f"{{{XLINK}}}href"][1:] for node in root.iter() if f"{{{XLINK}}}href" in node.attrib}
    for node in root.iter():
        _tidy(node, used, picture.name)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.attrib |= {"role": "img", "aria-label": f"{picture.full_title}. {picture.caption}", "focusable": "false"}
    ET.register_namespace("", SVG)
    text = ET.tostring(root, encoding="unicode")
    text = re.sub(r"\n\s*", "\n", text).replace(f' xmlns="{SVG}"', "").replace(f' xmlns:xlink="{XLINK}"', "")
    return Markup(_PLACEHOLDER.sub(lambda match: f"var(--{PLACEHOLDERS[match[0].lower()]})", text))


def _tidy(node: ET.Element, used: set[str], name: str) -> None:
    identifier = node.attrib.get("id")
    if identifier is not None:
        del node.attrib["id"]
        if identifier in used:
            node.attrib["id"] = f"{name}-{identifier}"
    reference = node.attrib.pop(f"{{{XLINK}}}href", None)
    if reference is not None:
        node.attrib["href"] = f"#{name}-{reference[1:]}"
    if node.attrib.get("transform", "").startswith("rotate(-0 "):
        del node.attrib["transform"]
    for key in node.attrib:
        node.attrib[key] = _short_value(key, node.attrib[key], name)
    if node.attrib.get("style") == "":
        del node.attrib["style"]


def _short_value(key: str, value: str, name: str) -> str:
    if key in COORDINATES:
        value = _LONG.sub(_short, value)
    if key == "style":
        value = _FONT.sub("", value).replace("stroke-linejoin: miter", "").strip("; ")
    return _REFERENCE.sub(rf"url(#{name}-\1)", value)


def _short(number: re.Match[str]) -> str:
    return f"{float(number[0]):.1f}".removesuffix(".0")
