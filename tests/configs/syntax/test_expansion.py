"""Variables in a YAML value are what they are where nobody sets them, or unknown."""

import pytest

from rlaudit.configs.syntax.expansion import assumptions, expanded
from rlaudit.configs.syntax.node import Node
from rlaudit.settings.place import Place
from rlaudit.unknown import Unknown

PLACE = Place("compose.yaml", 1, 1, "VALUE")


def _expanded(text: str) -> Node:
    return expanded(Node(text, PLACE, None, text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain", "plain"),
        ("${V1:-0}", "0"),
        ("${V1-0}", "0"),
        ("a-${B:-b}-c", "a-b-c"),
        ("${V1:-}", ""),
        ("${V1:+set}", ""),
        ("5$$", "5$"),
        ("$$HOME", "$HOME"),
    ],
)
def test_a_default_is_the_value(text: str, value: str) -> None:
    assert _expanded(text).value == value


@pytest.mark.parametrize(
    "text",
    [
        "$V1",
        "${V1}",
        "${V1:?needed}",
        "a${V1}b",
        "$(V1)",
        "{{ .Values.v1 }}",
        "${A:-$B}",
        "${A:-${B:-inner}}",
        "${V1",
        "${V1@Q}",
        "${A:-" * 20 + "}" * 20,
    ],
)
def test_what_others_decide_is_unknown(text: str) -> None:
    assert isinstance(_expanded(text).value, Unknown)


def test_the_defaults_that_were_taken_are_reported_once() -> None:
    nodes = [_expanded("${A:-1}${B:-1}"), _expanded("${A:-1}"), _expanded("$C")]
    assert assumptions(nodes) == ("A is taken at its default 1", "B is taken at its default 1")
