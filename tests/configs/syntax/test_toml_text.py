import tomllib

import pytest

from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.toml_text import parse_toml
from rlaudit.configs.syntax.unreadable import UnreadableText

TEXT = '''# top
title = "x"
[inference.vllm]   # engine
"enable_prefix_caching" = false
a.b = 1e-6
list = [1, [2, 3], # inner
  {x = "]"}]
inline = {p = 1, q.r = 'a"b'}
[[orchestrator.env]]
text = """a
"quoted" \\"""
b"""
[[orchestrator.env]]
date = 1979-05-27
raw = \'\'\'it's\'\'\'
[orchestrator.env.deep]
n = 0x1F
'''


def nodes(node: Node) -> list[Node]:
    children = list(node.value.values()) if isinstance(node.value, dict) else list(node.elements())
    return [node, *(inner for child in children for inner in nodes(child))]


def test_values_are_those_of_tomllib() -> None:
    expected = tomllib.loads(TEXT)
    expected["orchestrator"]["env"][1]["date"] = "1979-05-27"
    assert parse_toml(TEXT, "f.toml").plain() == expected


def test_every_scalar_and_key_stands_where_its_place_says() -> None:
    root = parse_toml(TEXT, "f.toml")
    for node in nodes(root):
        if node.text:
            written = TEXT[node.place.start : node.place.end]
            assert written == node.text
            assert str(tomllib.loads(f"x = {written}")["x"]) == str(node.value)
        if node.key is not None and node.text:
            assert TEXT[node.key.start : node.key.end].strip('"') == node.place.setting.rpartition(".")[2]
    caching = root.get("inference", "vllm", "enable_prefix_caching")
    assert caching is not None
    assert (caching.place.line, caching.place.column) == (4, 27)
    assert caching.place.setting == "inference.vllm.enable_prefix_caching"


def test_windows_line_ends_move_no_place() -> None:
    text = TEXT.replace("\n", "\r\n")
    node = parse_toml(text, "f.toml").get("inference", "vllm", "a", "b")
    assert node is not None and text[node.place.start : node.place.end] == "1e-6"


@pytest.mark.parametrize(
    "text",
    [
        "a = ",
        "a = 1\na = 2\n",
        "[" * 10_000,
        "a = " + "[" * 10_000,
        "a." * 10_000 + "b = 1",
        "x = 1\n" * 20_000,
        "a = '",
    ],
)
def test_what_is_no_config_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(UnreadableText) as refusal:
        parse_toml(text, "")
    assert str(refusal.value)
