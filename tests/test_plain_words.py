"""Sentences name their subject, who is a user, a caller, a program or a release; variables have the name of a thing."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
VAGUE = re.compile(r"\b(nobody|somebody|anybody|whoever|whatever)\b", re.IGNORECASE)


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
        for function in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(function, ast.FunctionDef):
                bound = _bound_in(function)
                vague = bound & {"found", "said", "told"} | (bound & {"one"} if "other" not in bound else set())
                found += [f"{file.relative_to(ROOT)}:{function.lineno}: {name}" for name in sorted(vague)]
    assert found == []


def _bound_in(function: ast.FunctionDef) -> set[str]:
    names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return names | {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
