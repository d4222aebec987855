"""Keywords of the engine's methods that a release does not take, and another did."""

import ast
from collections.abc import Iterator

from packaging.version import Version

from rlaudit.vllm.catalogue import Catalogue, known_versions


def gone_keywords(kind: str, call: ast.Call, vllm: Version) -> Iterator[str]:
    """Of a call of a method of `LLM`, or of another class of the engine."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    method = f"{kind}.{name}" if kind == "LLM" else name
    takes = Catalogue.at(vllm).signatures.get(method)
    given = [keyword.arg for keyword in call.keywords if keyword.arg is not None]
    if takes is None or not given:
        return
    known = {one for release in (known_versions()[0], known_versions()[-1])
             for one in Catalogue.at(release).signatures.get(method, ())}  # fmt: skip
    yield from (one for one in given if one in known and one not in takes)
