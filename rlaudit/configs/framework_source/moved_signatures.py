"""Calls of vLLM's functions and classes that a release does not take as they are written, and another did."""

import ast
from collections.abc import Iterator

from packaging.version import Version

from rlaudit.configs.syntax.python_program import Program
from rlaudit.vllm.callables import refused


def moved_signatures(call: ast.Call, program: Program, vllm: Version) -> Iterator[str]:
    """The rest of a sentence about a call of what the file imports from vLLM."""
    path = program.origin(call.func) if isinstance(call.func, ast.Name | ast.Attribute) else ""
    if path.partition(".")[0] != "vllm" or getattr(call.func, "id", "") in program.classes:
        return
    starred = any(isinstance(one, ast.Starred) for one in call.args)
    keywords = [one.arg for one in call.keywords if one.arg is not None]
    whole = not starred and len(keywords) == len(call.keywords)
    given = [] if starred else [getattr(one, "id", "") for one in call.args]
    why = refused(path, given, keywords, vllm, whole=whole)
    if why:
        yield f"calls {path.rpartition('.')[2]} of {path.rpartition('.')[0]}, which {why} in vLLM {vllm}"
