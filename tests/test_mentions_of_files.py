"""A docstring or comment that sends the reader to a file sends them to one that is there.

Another project's file is told from ours by its path, in which the project's name is a folder (`verl/trainer/main.py`),
or by the sentence, which names the project.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

import rlaudit
from rlaudit.inspection.read_configs import known_dialects

PACKAGE = Path(rlaudit.__file__).parent
TESTS = Path(__file__).parent
FILES = {f"/{path.relative_to(top.parent)}" for top in (PACKAGE, TESTS) for path in top.rglob("*.py")}
PACKAGES = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
MENTION = re.compile(r"[\w./-]*\w\.py\b")
SENTENCE_ENDS = re.compile(r"(?<=[.?!])\s+(?=[A-Z`])")
# Beside the dialects: what engines and trainers are made of, who logs, and a package that is not called as its project.
PROJECTS = {"vllm", "transformers", "triton", "torch", "wandb", "swift", "miles"}


def projects() -> set[str]:
    """Their names, as words of a sentence and as folders of a path."""
    dialects = known_dialects()
    return {folded(name) for name in PROJECTS | dialects.keys() | {dialect.title for dialect in dialects.values()}}


def folded(name: str) -> str:
    return name.lower().replace("_", "-")


def blocks(text: str) -> Iterator[str]:
    """Docstrings, and comments that follow each other on lines, each in one line."""
    comments = [
        token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type == tokenize.COMMENT
    ]
    for _, block in groupby(enumerate(comments), lambda one: one[1].start[0] - one[0]):
        yield " ".join(token.string.lstrip("# ") for _, token in block)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield " ".join((ast.get_docstring(node) or "").split())


def misleading(text: str, others: set[str]) -> list[str]:
    """Mentions of files that are not there, with the sentence."""
    named = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, sorted(others)))})(?![\w-])")
    found = []
    for sentence in (sentence for block in blocks(text) for sentence in SENTENCE_ENDS.split(block)):
        words = folded(MENTION.sub("", sentence))
        for mention in MENTION.findall(sentence):
            ours = any(path.endswith(f"/{mention.lstrip('/')}") for path in FILES)
            *folders, _ = folded(mention).split("/")
            # A path that begins with a package of ours is ours, whatever its other folders are called.
            theirs = bool(named.search(words)) or bool(others & set(folders))
            if not ours and (not theirs or (folders and folders[0] in PACKAGES - others)):
                found.append(f"{mention}: {sentence}")
    return found


def test_every_file_that_is_mentioned_is_there() -> None:
    others = projects()
    texts = {str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    assert not {path: found for path, text in texts.items() if (found := misleading(text, others))}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"""What follows; `where.py` looks for it."""', 1),
        ('"""What follows. verl counts otherwise. `where.py` looks for it."""', 1),
        ("# As gone/discover.py\n# has it.\n", 1),
        ("# As engines/vllm/discover.py has it.\n", 1),
        ("# As rlaudit/discover.py has it, beside explain.py and cli/explain.py.\n", 0),
        ("# verl/trainer/main.py, and main_ppo.py of verl\n", 0),
    ],
)
def test_a_file_that_is_nowhere_is_seen(text: str, found: int) -> None:
    assert len(misleading(text, projects())) == found
