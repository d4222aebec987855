"""The page `rlaudit explain api`: each public name with its signature and docstring, as they are written.

Files are parsed and not imported: a page should be there at once, and a callback's trainer need not be there at all.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path

import rlaudit

_PACKAGE = Path(rlaudit.__file__).parent
# Each public function and class, and its file.
PUBLIC = {
    "rlaudit.inspect": "api/inspect.py",
    "rlaudit.compare": "api/compare.py",
    "rlaudit.record": "api/record.py",
    "rlaudit.testing.assert_logprobs_agree": "testing.py",
    "rlaudit.callbacks.GateCallback": "callbacks.py",
    "rlaudit.Report": "report/report.py",
    "rlaudit.errors.UsageError": "errors.py",
    "rlaudit.errors.NotFinished": "errors.py",
}


def api_page() -> str:
    """Return the page."""
    names = (inspect.getdoc(rlaudit) or "").partition("\n\nThe house")[0]
    return "\n\n".join([names, *(_entry(name, _PACKAGE / file) for name, file in PUBLIC.items())])


def _entry(name: str, file: Path) -> str:
    """Return the name, its signature or fields, and its docstring."""
    text, plain = file.read_text(encoding="utf-8"), name.rpartition(".")[2]
    nodes = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.ClassDef))
    node = next(node for node in nodes if node.name == plain)
    written = textwrap.indent(textwrap.dedent("\n".join(_written(node, text.splitlines()))), "    ")
    return "\n\n".join(filter(None, [name, written, ast.get_docstring(node)]))


def _written(node: ast.FunctionDef | ast.ClassDef, lines: list[str]) -> Iterator[str]:
    """Yield the lines of a function's signature, or those of a class's fields and of the signature that makes one."""
    if isinstance(node, ast.FunctionDef):
        yield from lines[node.lineno - 1 : node.body[0].lineno - 1]
        return
    for part in node.body:
        if isinstance(part, ast.AnnAssign):
            yield lines[part.lineno - 1].strip()
        elif isinstance(part, ast.FunctionDef) and part.name == "__init__":
            yield from lines[part.lineno - 1 : part.body[0].lineno - 1]
