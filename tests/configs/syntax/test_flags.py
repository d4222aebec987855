from collections.abc import Sequence

import pytest

from rlaudit.configs.syntax.flags import Flag, flags, overrides, typed
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.shell_text import commands
from rlaudit.unknown import Unknown


def line(text: str) -> Sequence[Node]:
    return commands(text, "run.sh")[-1].words


def shown(found: Sequence[Flag]) -> list[tuple[str, object]]:
    return [(flag.name, flag.value.value if flag.value is not None else None) for flag in found]


def test_all_ways_to_write_a_flag_are_told_apart() -> None:
    words = line("x --a-b 1 --c=2 --no-d -tp 2 -q=awq -O3 --e.f_g h --n -1 --i --j")
    assert shown(flags(words, 1)) == [
        ("a_b", "1"), ("c", "2"), ("no_d", None), ("tp", "2"), ("q", "awq"), ("O", "3"), ("e.f_g", "h"), ("n", "-1"),
        ("i", None), ("j", None),
    ]  # fmt: skip


def test_a_switch_leaves_the_word_after_it_alone() -> None:
    assert shown(flags(line("x --eager model --tp 2"), 1, lambda name: name == "eager")) == [
        ("eager", None), ("", "model"), ("tp", "2"),
    ]  # fmt: skip


def test_further_values_and_words_after_a_double_dash_are_kept() -> None:
    sizes, rest = flags(line("x --sizes 1 2 4 -- --not-a-flag"), 1)
    assert [node.value for node in sizes.more] == ["2", "4"]
    assert rest.name == "" and rest.value is not None and rest.value.value == "--not-a-flag"


def test_unknown_words_become_unknown_values_or_stray_words() -> None:
    tp, joined, stray = flags(line('x --tp $TP --n=$N "$@"'), 1, lambda _name: False)[:3]
    assert tp.value is not None and isinstance(tp.value.value, Unknown)
    assert joined.name == "n" and joined.value is not None and isinstance(joined.value.value, Unknown)
    assert joined.more == () and stray.name == ""


def test_the_place_of_a_value_is_the_value_alone() -> None:
    text = "x --a=1 --b='{\"k\": 2}' '--c=d' key.e=f 'g=[1,2]'"
    words = line(text)
    for flag in (*flags(words, 1)[:3], *overrides(words[1:])):
        assert flag.value is not None
        inside = text[flag.value.place.start : flag.value.place.end]
        assert inside in {"1", "'{\"k\": 2}'", "d", "f", "[1,2]"}


def test_hydra_overrides_are_typed_and_keep_their_operator() -> None:
    words = line("python -m x a.b=1 +c=true ++d=null ~e f=[1,2] g='{h: 1, i: x}' j=0.5 k=abc l=$L -m")
    found = {flag.name: flag for flag in overrides(words[3:])}
    values = {name: flag.value.value for name, flag in found.items() if flag.value is not None}
    assert {**values, "l": None} == {
        "a.b": 1, "c": True, "d": None, "f": [1, 2], "g": {"h": 1, "i": "x"}, "j": 0.5, "k": "abc", "l": None,
    }  # fmt: skip
    assert isinstance(values["l"], Unknown)
    assert (found["c"].operator, found["d"].operator, found["e"].operator, found["e"].value) == ("+", "++", "~", None)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1), ("-1", -1), ("1e-6", 1e-6), (".5", 0.5), ("True", True), ("null", None), ("'1'", "1"),
        ("1.2.3", "1.2.3"),
        ('{"a": [1]}', {"a": [1]}), ("{a:1}", {"a": 1}), ("[", "["), ("", ""), ("http://x", "http://x"),
        ("9" * 5000, "9" * 5000),
    ],
)  # fmt: skip
def test_a_word_is_typed_by_what_it_spells(text: str, value: object) -> None:
    assert typed(text) == value


@pytest.mark.parametrize("text", ["---", "--=x", "-", "--", "-=", "'--a'=b", "x==", "=", "~"])
def test_odd_words_break_nothing(text: str) -> None:
    assert isinstance(flags(line(f"x {text}"), 1), tuple)
    assert isinstance(overrides(line(f"x {text}")[1:]), tuple)
