from collections.abc import Callable

import pytest

from rlaudit.configs.command_lines import proved
from rlaudit.configs.engine_names import dashed
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.call_edits import call_writer
from rlaudit.configs.syntax.command_edits import flags_writer, list_writer
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.python_calls import calls
from rlaudit.configs.syntax.shell_text import commands
from rlaudit.configs.syntax.spelling import Write, apply, scalar_text
from rlaudit.configs.syntax.toml_edits import toml_writer
from rlaudit.configs.syntax.toml_text import parse_toml
from rlaudit.configs.syntax.yaml_edits import yaml_writer
from rlaudit.configs.syntax.yaml_text import parse_plain_yaml
from rlaudit.settings.place import Edit

Edited = Callable[[str, str, object], str | None]


def twice(text: str, name: str, value: object, write_of: Callable[[str], Write]) -> str | None:
    """The text after the edit, which a second one leaves as it is."""
    edits = write_of(text)(name, value)
    if edits is None:
        return None
    once = apply(text, edits)
    again = write_of(once)(name, value)
    assert again is not None and apply(once, again) == once
    return once


def spell_yaml(name: str, value: object) -> tuple[str, str]:
    return name, scalar_text(value)


def spell_flag(name: str, value: object) -> tuple[str, str]:
    flag = f"--no-{dashed(name)}" if value is False else f"--{dashed(name)}"
    return flag, "" if isinstance(value, bool) else str(value)


def yaml(text: str, name: str, value: object, *path: str) -> str | None:
    def write_of(now: str) -> Write:
        mapping: Node | None = parse_plain_yaml(now, "f.yaml")[0].get(*path)
        assert mapping is not None
        return yaml_writer(mapping, spell_yaml, now)

    return twice(text, name, value, write_of)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a: 1  # why\nb:   2\t\n", "a: 5  # why\nb:   2\t\n"),
        ("# top\r\na: 'x'\r\n", "# top\r\na: 5\r\n"),
        ("b: {a: 1, c: 2}\na: 3", "b: {a: 1, c: 2}\na: 5"),
        ("a:\nb: 1\n", "a: 5\nb: 1\n"),
        ("a: null # x\n", "a: 5 # x\n"),
        ("x: &x 1\na: *x\n", "x: &x 1\na: 5\n"),
        ("a: [1,\n  2]\nb: 1\n", "a: 5\nb: 1\n"),
        ("{a: 1, b: 2}", "{a: 5, b: 2}"),
        ('{"a": 1,\n "b": 2}\n', '{"a": 5,\n "b": 2}\n'),
    ],
)
def test_a_yaml_value_is_replaced_and_nothing_else_moves(before: str, after: str) -> None:
    assert yaml(before, "a", 5) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("b: 1 # why\n\n# end\n", "b: 1 # why\na: 5\n\n# end\n"),
        ("b: 1", "b: 1\na: 5"),
        ("b: 1\r\nc: 2\r\n", "b: 1\r\nc: 2\r\na: 5\r\n"),
        ("b:\n  c:\n    - d: 1 # x\n    # y\n", "b:\n  c:\n    - d: 1 # x\na: 5\n    # y\n"),
        ("b: |\n  text\n  more\n", "b: |\n  text\n  more\na: 5\n"),
        ("b:\n", "b:\na: 5\n"),
        ("{b: 1}", "{b: 1, a: 5}"),
        ("{}", "{a: 5}"),
        ('{\n  "b": {"c": 1}\n}\n', '{\n  "b": {"c": 1},\n  "a": 5\n}\n'),
        ("x: &x {c: 1}\nb: *x\n", "x: &x {c: 1}\nb: *x\na: 5\n"),
    ],
)
def test_a_new_yaml_key_comes_after_the_last_one(before: str, after: str) -> None:
    assert yaml(before, "a", 5) == after


def test_a_nested_mapping_keeps_its_indentation() -> None:
    text = "top:\n    inner:   # note\n        b: 1\n        # tail\nnext: 1\n"
    assert yaml(text, "a", 5, "top", "inner") == text.replace("b: 1\n", "b: 1\n        a: 5\n")


def test_a_key_in_another_spelling_is_the_same_key() -> None:
    (mapping,) = parse_plain_yaml("enable-prefix-caching: true # x\n", "f")
    text = "enable-prefix-caching: true # x\n"
    edits = yaml_writer(mapping, lambda _name, _value: ("no-enable-prefix-caching", "true"), text)("", False)
    assert edits is not None and apply(text, edits) == "no-enable-prefix-caching: true # x\n"


def test_a_mapping_that_others_share_is_not_edited() -> None:
    assert yaml("x: &x\n  a: 1\ny: *x\nz:\n  <<: *x\n", "a", 5, "x") is None


def test_a_merged_key_gets_its_own_entry() -> None:
    assert yaml("x: &x {a: 1}\ny:\n  <<: *x\n  b: 1\n", "a", 5, "y") == "x: &x {a: 1}\ny:\n  <<: *x\n  b: 1\n  a: 5\n"


def shell(text: str, name: str, value: object) -> str | None:
    def write_of(now: str) -> Write:
        return flags_writer(commands(now, "run.sh")[-1], spell_flag)

    return twice(text, name, value, write_of)


@pytest.mark.parametrize(
    ("before", "name", "value", "after"),
    [
        ("serve m --seed 1 # x\n", "seed", 2, "serve m --seed 2 # x\n"),
        ("serve m --seed=1\n", "seed", 2, "serve m --seed=2\n"),
        ("serve m --enable-x --b 1\n", "enable_x", False, "serve m --no-enable-x --b 1\n"),
        ("serve m --no-enable-x\n", "enable_x", True, "serve m --enable-x\n"),
        ("serve m", "seed", 2, "serve m --seed 2"),
        ("serve m > log 2>&1 &\n", "seed", 2, "serve m --seed 2 > log 2>&1 &\n"),
        ("serve m \\\n  --a 1 \\\n  --b 2\nnext='x'\nserve m \\\n  --a 1 \\\n  --b 2\n", "seed", 2,
         "serve m \\\n  --a 1 \\\n  --b 2\nnext='x'\nserve m \\\n  --a 1 \\\n  --b 2 \\\n  --seed 2\n"),
        ("serve m \\\r\n\t--a 1\r\n", "seed", 2, "serve m \\\r\n\t--a 1 \\\r\n\t--seed 2\r\n"),
        ("A=(--seed 1)\nserve m \"${A[@]}\"\n", "seed", 2, "A=(--seed 2)\nserve m \"${A[@]}\"\n"),
        ("serve m --seed $S\n", "seed", 2, "serve m --seed 2\n"),
        ("serve m\n", "over", "{\"a\": 1}", "serve m --over '{\"a\": 1}'\n"),
        ("serve m --over '{\"a\": 2}' -x\n", "over", "{\"a\": 1}", "serve m --over '{\"a\": 1}' -x\n"),
    ],
)  # fmt: skip
def test_a_flag_is_replaced_or_appended_and_nothing_else_moves(
    before: str, name: str, value: object, after: str
) -> None:
    assert shell(before, name, value) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("C='serve m'\neval $C\n", "C='serve m --seed 2'\neval $C\n"),
        ("C='serve m'\neval $C --a 1\n", "C='serve m'\neval $C --a 1 --seed 2\n"),
        ("C='serve m | tee log'\neval \"$C\"\n", "C='serve m --seed 2 | tee log'\neval \"$C\"\n"),
        ("C='serve m'\n$C\n", "C='serve m'\n$C --seed 2\n"),
        ("C='serve m'\nsrun $C > log\n", "C='serve m'\nsrun $C --seed 2 > log\n"),
        ("K=-1\nserve m --top-k $K\n", "K=-1\nserve m --top-k $K --seed 2\n"),
        ('A=(m --a 1)\nserve "${A[@]}"\n', 'A=(m --a 1)\nserve "${A[@]}" --seed 2\n'),
        ('bash -c "serve m --tp ${TP:-8}"\n', None),
    ],
)
def test_a_new_flag_comes_after_everything_that_the_command_expands_to(before: str, after: str | None) -> None:
    command = next(one for one in commands(before, "run.sh") if any(word.value == "serve" for word in one.words))
    edits = flags_writer(command, spell_flag)("seed", 2)
    assert (edits and apply(before, edits)) == after


@pytest.mark.parametrize(("at", "words"), [(0, "sudo "), (20, "other\n"), (9, " m2"), (3, "x ")])
def test_an_addition_that_reads_as_another_command_is_not_made(at: int, words: str) -> None:
    source = Source("run.sh", "C='serve m'\neval $C\n")
    edit = Edit("run.sh", at, at, words)
    assert proved(lambda _name, _value: (edit,), source.commands[0], source)("seed", 2) is None


def test_a_variable_of_two_commands_gets_no_flag_for_one_of_them() -> None:
    source = Source("run.sh", "C='serve m'\neval $C --a 1\neval $C\n")
    written = [proved(flags_writer(one, spell_flag), one, source)("seed", 2) for one in source.commands]
    assert [len(edits or ()) for edits in written] == [1, 0]


def test_what_would_need_quotes_inside_quotes_is_not_written() -> None:
    command = commands("bash -c 'serve m'\n", "run.sh")[-1]
    assert flags_writer(command, spell_flag)("over", '{"a": 1}') is None


@pytest.mark.parametrize(
    ("before", "name", "value", "after"),
    [
        ('c: ["serve", "--seed", "1"] # x\n', "seed", 2, 'c: ["serve", "--seed", "2"] # x\n'),
        ('c: ["serve"]\n', "seed", 2, 'c: ["serve", "--seed", "2"]\n'),
        ("c: ['serve',\n    '--a']\n", "seed", 2, "c: ['serve',\n    '--a',\n    '--seed',\n    '2']\n"),
        ("c:\n  - serve\n  - --a # x\nd: 1\n", "x", True, "c:\n  - serve\n  - --a # x\n  - --x\nd: 1\n"),
        ("c:\n- serve\n- --enable-x\n", "enable_x", False, "c:\n- serve\n- --no-enable-x\n"),
        ("c:\n- serve\n- --seed=1\n", "seed", 2, "c:\n- serve\n- --seed=2\n"),
        ('c:\r\n- "--a"\r\n', "seed", 2, 'c:\r\n- "--a"\r\n- "--seed"\r\n- "2"\r\n'),
    ],
)
def test_a_word_of_a_list_is_replaced_or_appended(before: str, name: str, value: object, after: str) -> None:
    def write_of(now: str) -> Write:
        listed = parse_plain_yaml(now, "f.yaml")[0].get("c")
        assert listed is not None
        return list_writer(listed.elements(), spell_flag, now)

    assert twice(before, name, value, write_of) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[t] # x\nb = 1 # y\n\n[u]\na = 1\n", "[t] # x\nb = 1 # y\na = 5\n\n[u]\na = 1\n"),
        ("[t]\na = 1 # y\n", "[t]\na = 5 # y\n"),
        ("[t] # x\n[u]\n", "[t] # x\na = 5\n[u]\n"),
        ("t = {b = 1}\n", "t = {b = 1, a = 5}\n"),
        ("t = {}\n", "t = { a = 5 }\n"),
        ("[t]\r\n  b = [\r\n 1 ]", "[t]\r\n  b = [\r\n 1 ]\r\n  a = 5"),
        ("[t]\nb = 1\n[t.u]\nc = 1\n", "[t]\nb = 1\na = 5\n[t.u]\nc = 1\n"),
    ],
)
def test_a_toml_key_is_replaced_or_appended(before: str, after: str) -> None:
    def write_of(now: str) -> Write:
        table = parse_toml(now, "f.toml").get("t")
        assert table is not None
        return toml_writer(table, spell_yaml, now)

    assert twice(before, "a", 5, write_of) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("LLM()", "LLM(a=5)"),
        ("LLM(m)", "LLM(m, a=5)"),
        ("LLM(m, a=1)  # x", "LLM(m, a=5)  # x"),
        ("LLM(\n    m,\n    b=1,  # x\n)\n", "LLM(\n    m,\n    b=1,  # x\n    a=5,\n)\n"),
        ("LLM(\n    b=1  # x\n)\n", "LLM(\n    b=1,  # x\n    a=5,\n)\n"),
        ("LLM(m,)", "LLM(m, a=5)"),
        ("K = dict(a=1)\nLLM(**K)", "K = dict(a=5)\nLLM(**K)"),
    ],
)
def test_a_keyword_is_replaced_or_appended(before: str, after: str) -> None:
    def write_of(now: str) -> Write:
        (call,) = calls(now, "run.py", {"LLM"})
        return call_writer(call, lambda name, value: (name, repr(value)), now)

    assert twice(before, "a", 5, write_of) == after


def test_a_flag_behind_a_page_of_blanks_is_taken_away_in_no_time() -> None:
    text = "serve" + " " * 100_000 + "m \\\n  --x \\\n"
    edits = flags_writer(commands(text, "run.sh")[-1], spell_flag, lambda _name: True)("x", None)
    assert edits is not None and apply(text, edits) == "serve" + " " * 100_000 + "m \\\n"
