"""Sentences name their subject, who is a user, a caller, a program or a release; variables have the name of a thing.

What users read is plain English: *shows*, *rules out*, *wrong if*, *took effect*, *noise of repeats*, *fix*.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from rlaudit.causes.attribution.attribute import all_causes
from rlaudit.diagnosis.effect import FORMER_WORDS
from rlaudit.text.counted import counted

ROOT = Path(__file__).parents[1]
VAGUE = re.compile(r"\b(nobody|somebody|anybody|whoever|whatever)\b", re.IGNORECASE)
# A court of law, a workshop and a purse: each word has to be learned before a verdict can be read.
UNPLAIN = re.compile(
    r"convict|acquit|refut|honest|\b(engaged|floors?|excess(es)?|mend(s|ed|ing)?|asked for|of (its|their|your) own)\b",
    re.IGNORECASE,
)
COURT = re.compile(r"convict|acquit|refut|honest", re.IGNORECASE)
# `explain` prints the docstrings of the files in these folders, and --help those of commands.
EXPLAINED = {"causes", "statistics/metrics", "rules", "laboratory/factors"}
# Of a sentence that is read once.
MOST_WORDS = 25
# A field of report.json.
SCHEMA = {"rlaudit/report/parts/comparison.py": {"convicts"}}


def test_no_sentence_has_a_vague_subject() -> None:
    files = [ROOT / "README.md", *ROOT.glob("recipes/*.yaml")]
    files += [file for ending in ("py", "yaml", "md") for file in (ROOT / "rlaudit").rglob(f"*.{ending}")]
    found = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file in files
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1)
        if VAGUE.search(line)
    ]
    assert len(files) > 500 and found == []


def test_no_variable_is_named_after_nothing() -> None:
    """`one` stands beside `other`, if it stands at all."""
    found = []
    for file in (ROOT / "rlaudit").rglob("*.py"):
        for function in ast.walk(_tree(file)):
            if isinstance(function, ast.FunctionDef):
                bound = _bound_in(function)
                vague = bound & {"found", "said", "told"} | (bound & {"one"} if "other" not in bound else set())
                found += [f"{file.relative_to(ROOT)}:{function.lineno}: {name}" for name in sorted(vague)]
    assert found == []


def _bound_in(function: ast.FunctionDef) -> set[str]:
    names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return names | {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}


def test_sentences_for_users_are_in_plain_words() -> None:
    texts = [ROOT / "README.md", *ROOT.glob("recipes/*.yaml")]
    texts += [file for ending in ("yaml", "md") for file in (ROOT / "rlaudit").rglob(f"*.{ending}")]
    lines = [
        (file, number, line)
        for file in texts
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1)
    ]
    modules = list((ROOT / "rlaudit").rglob("*.py"))
    lines += [(file, number, sentence) for file in modules for number, sentence in _sentences(file)]
    found = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file, number, line in lines
        if UNPLAIN.search(line) and line not in FORMER_WORDS
    ]
    assert len(lines) > 10_000 and found == []


def test_no_name_in_the_code_is_of_a_court() -> None:
    found = []
    for file in (ROOT / "rlaudit").rglob("*.py"):
        place = str(file.relative_to(ROOT))
        for node in ast.walk(_tree(file)):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names = {node.name}
            elif isinstance(node, ast.arg):
                names = {node.arg}
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names = {node.id} - SCHEMA.get(place, set())
            else:
                continue
            found += [f"{place}:{node.lineno}: {name}" for name in names if COURT.search(name)]
    assert found == []


@pytest.mark.parametrize("name", all_causes())
def test_a_cause_says_what_it_is_when_it_is_wrong_and_what_to_do_in_short_sentences(name: str) -> None:
    cause = all_causes()[name]
    for text in (cause.title, cause.falsifier, cause.next, *(rival.tells for rival in cause.rivals)):
        assert max(len(sentence.split()) for sentence in text.split(". ")) <= MOST_WORDS, text


def test_a_noun_agrees_with_its_number() -> None:
    assert [counted(1, "error"), counted(0, "error"), counted(2, "prefix", "prefixes")] == [
        "1 error",
        "0 errors",
        "2 prefixes",
    ]


def test_percentages_have_one_form() -> None:
    """`12 %`, with a space, as `{100 * share:.0f} %`."""
    found = [
        f"{file.relative_to(ROOT)}: {hit.group()}"
        for file in (ROOT / "rlaudit").rglob("*.py")
        for hit in re.finditer(r":[+]?\.\d%\}", file.read_text(encoding="utf-8"))
    ]
    assert found == []


def _sentences(file: Path) -> Iterator[tuple[int, str]]:
    """Yield each string with a space in it, by its line; docstrings only if a command prints them."""
    folder = str(file.parent.relative_to(ROOT / "rlaudit"))
    printed = [ast.Module] if folder in EXPLAINED else [ast.FunctionDef] if folder == "cli" else []
    silent = set()
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and type(node) not in printed:
            silent |= {id(first.value) for first in node.body[:1] if isinstance(first, ast.Expr)}
    for node in ast.walk(_tree(file)):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
        if is_text and id(node) not in silent:
            yield node.lineno, node.value


@cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_bytes())
