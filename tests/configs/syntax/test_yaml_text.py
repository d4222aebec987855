import math

import pytest

from rlaudit.configs.syntax.unreadable import UnreadableText
from rlaudit.configs.syntax.yaml_text import parse_plain_yaml
from rlaudit.unknown import Unknown


def test_every_value_knows_its_line_column_span_and_path_of_keys() -> None:
    text = "a:\n  b: 1 # note\n  c: [x, 'y z']\n"
    (root,) = parse_plain_yaml(text, "f.yaml")
    node = root.get("a", "b")
    assert node is not None and node.key is not None
    assert (node.place.line, node.place.column, node.place.setting) == (2, 6, "a.b")
    assert text[node.place.start : node.place.end] == node.text == "1"
    assert text[node.key.start : node.key.end] == "b"
    listed = root.get("a", "c")
    assert listed is not None
    assert [text[one.place.start : one.place.end] for one in listed.elements()] == ["x", "'y z'"]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1e-6", 1e-6), (".5", 0.5), ("1_000", 1000), ("0x10", 16), ("017", 15), ("0b11", 3), ("1:30", 90),
        ("yes", True), ("off", False), ("~", None), ("", None), ("'1'", "1"), ("1e5x", "1e5x"), (".inf", math.inf),
        ("9" * 400, "9" * 400), ("-12", -12),
    ],
)  # fmt: skip
def test_scalars_read_as_pyyaml_and_omegaconf_read_them(written: str, value: object) -> None:
    (root,) = parse_plain_yaml(f"a: {written}\n", "")
    assert root.plain() == {"a": value}


def test_own_keys_win_over_merged_ones_and_the_first_merged_mapping_over_the_second() -> None:
    (root,) = parse_plain_yaml("x: &x {a: 1, b: 1}\ny: &y {b: 2, c: 2}\nz:\n  <<: [*x, *y]\n  a: 3\n", "")
    assert root.plain()["z"] == {"a": 3, "b": 1, "c": 2}


def test_a_foreign_tag_is_unknown_and_is_not_obeyed() -> None:
    (root,) = parse_plain_yaml("a: !!python/object/apply:os.system [x]\nb: !env HOME\n", "")
    assert root.get("b") is not None
    assert "!env" in str(root.plain()["b"])


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "{a: " * 100_000,
        "- " * 100_000,
        "? " * 100_000,
        "a: 1\n" * 100_000,
        "a: &a [x, x, x, x, x, x, x, x]\n"
        + "".join(f"k{n}: &k{n} [{', '.join(['*' + (f'k{n - 1}' if n else 'a')] * 8)}]\n" for n in range(12)),
        "a: &a {}\n" + "".join(f"k{n}: &k{n} {{<<: [*{f'k{n - 1}' if n else 'a'}, *a]}}\n" for n in range(300)),
        "a: &a\n  <<: [*a, *a]\n",
        "a: [1\n",
        "a:\n\tb: 1\n",
        "\x00",
        "a: \ud800",
    ],
    ids=[
        "flow",
        "flow-maps",
        "compact",
        "complex-keys",
        "long",
        "bomb",
        "merges",
        "self",
        "open",
        "tab",
        "nul",
        "half",
    ],
)
def test_what_is_no_config_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(UnreadableText) as refusal:
        parse_plain_yaml(text, "")
    assert str(refusal.value)


def test_dollar_braces_stay_text_where_they_are_no_interpolation() -> None:
    text = "command: vllm serve ${MODEL:-x}\n"
    assert parse_plain_yaml(text, "")[0].plain() == {"command": "vllm serve ${MODEL:-x}"}
    assert "MODEL" in str(parse_plain_yaml(text, "")[0].plain()["command"])


def test_a_key_that_is_written_twice_is_open_with_both_lines() -> None:
    (root,) = parse_plain_yaml("a: 1\nb: {c: 2}\na: 3\n", "x.yaml")
    twice, once = root.get("a"), root.get("b", "c")
    assert twice is not None and isinstance(twice.value, Unknown)
    assert "written twice, in line 1 and in line 3" in twice.value.reason
    assert once is not None and once.value == 2


def test_a_key_over_a_merged_one_is_no_second_one() -> None:
    (root,) = parse_plain_yaml("base: &base {a: 1}\nown:\n  <<: *base\n  a: 2\n", "x.yaml")
    own = root.get("own", "a")
    assert own is not None and own.value == 2
