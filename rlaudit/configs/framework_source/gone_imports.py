"""Imports of vLLM's modules, and of names in them, that a release does not have."""

import ast
from collections.abc import Iterator

from packaging.version import Version

from rlaudit.vllm.importable import Gone, gone_module, gone_name


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


def _is_vllm(module: str) -> bool:
    return module.partition(".")[0] == "vllm"


def _elsewhere(gone: Gone) -> str:
    name = gone.name.rpartition(".")[2]
    return f"; there is a {name} in {' and '.join(gone.homes)}" if gone.homes else ""
