"""Imports of vLLM's modules, and of names in them, that a release does not have; also those that `patch("vllm.a.B.c")`
of unittest.mock and `import_module("vllm.a")` make of a text.
"""

import ast
from collections.abc import Iterator

from packaging.version import Version

from rlaudit.vllm.importable import Gone, gone_module, gone_name

# Functions that import what a text names.
_BY_TEXT = {"patch", "import_module"}


def gone_imports(line: ast.Import | ast.ImportFrom, vllm: Version) -> Iterator[str]:
    """What each of them does, as the rest of a sentence about the line."""
    if isinstance(line, ast.Import):
        for one in line.names:
            gone = gone_module(one.name, vllm) if _is_vllm(one.name) else None
            if gone is not None:
                yield f"imports {one.name}, which vLLM {vllm} does not have: {gone.said(vllm)}"
        return
    if line.level or not _is_vllm(line.module or ""):
        return
    module = line.module or ""
    missing = gone_module(module, vllm)
    found = {one.name: gone_name(module, one.name, vllm) for one in line.names}
    if missing is not None:
        what = f"imports from {module}, which vLLM {vllm} does not have: {missing.said(vllm)}"
        yield what + "".join(_elsewhere(gone) for gone in found.values() if gone is not None)
        return
    for name, gone in found.items():
        if gone is not None:
            what = f"imports {name} from {module}, which vLLM {vllm} does not have there: {gone.said(vllm)}"
            yield what + _elsewhere(gone)


def gone_texts(call: ast.Call, vllm: Version) -> Iterator[str]:
    """What a call does that imports what its first argument names, as the rest of a sentence about the line."""
    called = getattr(call.func, "attr", getattr(call.func, "id", ""))
    named = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
    if called not in _BY_TEXT or not isinstance(named, str) or not _is_vllm(named):
        return
    parts = named.split(".")
    for count in range(len(parts), 1, -1):
        module = ".".join(parts[:count])
        names = parts[count : count + 1]
        for gone in (gone_module(module, vllm), *(gone_name(module, name, vllm) for name in names)):
            # What no release has is no word against it: the part may be a class, or an attribute of one.
            if gone is not None and gone.first is not None:
                said = f"names {named} to {called}, and vLLM {vllm} has no {gone.name}: {gone.said(vllm)}"
                yield said + _elsewhere(gone)
                return


def _is_vllm(module: str) -> bool:
    return module.partition(".")[0] == "vllm"


def _elsewhere(gone: Gone) -> str:
    name = gone.name.rpartition(".")[2]
    return f"; there is a {name} in {' and '.join(gone.homes)}" if gone.homes else ""
