"""What `collective_rpc` and `apply_model` are given, and what no engine in a process of its own is sent: functions, and
values that msgpack has no word for, of which weight updates use `torch.dtype`.

Until 0.8.5 they were pickled. From 0.9.0 on vllm/v1/serial_utils.py refuses, unless VLLM_ALLOW_INSECURE_SERIALIZATION
is set. Shapes pass: a torch.Size is a tuple.
"""

import ast
from collections.abc import Iterator

from packaging.version import Version

from rlaudit.configs.syntax.python_program import callee
from rlaudit.vllm.milestones import NOTHING_IS_PICKLED

SWITCH = "VLLM_ALLOW_INSECURE_SERIALIZATION"
# In the package of a framework: that it lets everything be sent, and that somebody passes a torch.dtype on.
SWITCHED_ON = rf"{SWITCH}[\"']\]?\s*[=:,]\s*[\"']?(?:1|[Tt]rue)"
PASSES_DTYPE = r"\bdtype=[\w.]+\.dtype\b"
BY_NAME, _BY_FUNCTION = "collective_rpc", "apply_model"
_DTYPES = {"float32", "float", "float16", "half", "bfloat16", "float8_e4m3fn", "float8_e5m2"}
_MOST = 40  # letters of an expression


def unsent_arguments(
    call: ast.Call, functions: frozenset[str], parameters: frozenset[str], vllm: Version
) -> Iterator[tuple[str, bool]]:
    """What a call hands over in vain, as the rest of a sentence, and whether that depends on what a name holds.

    functions: names of the file's own functions. parameters: names that are given to a function, and to nothing else.
    """
    method = callee(call.func)
    if vllm < NOTHING_IS_PICKLED or method not in {BY_NAME, _BY_FUNCTION}:
        return
    for value in _handed(call, method):
        what, doubt = _kind(value, functions, parameters)
        if what:
            text = ast.unparse(value)
            shown = text if len(text) <= _MOST else f"{text[:_MOST]}..."
            kind = f"{shown} to {method}: where that is {what}," if doubt else f"{shown}, {what}, to {method}, and"
            yield f"hands {kind} vLLM {vllm} sends it to no engine in a process of its own without {SWITCH}=1", doubt


def _handed(call: ast.Call, method: str) -> Iterator[ast.expr]:
    """The method itself, and what it is called with."""
    yield from call.args[:1]
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    if "method" in named or "func" in named:
        yield named.get("method") or named["func"]
    if method == _BY_FUNCTION:
        return
    arguments = named.get("args", call.args[2] if len(call.args) > 2 else None)
    if isinstance(arguments, ast.Tuple | ast.List):
        yield from arguments.elts
    keywords = named.get("kwargs")
    if isinstance(keywords, ast.Dict):
        yield from keywords.values


def _kind(value: ast.expr, functions: frozenset[str], parameters: frozenset[str]) -> tuple[str, bool]:
    match value:
        case ast.Lambda():
            return "a function", False
        case ast.Name(id=name) if name in functions:
            return "a function", False
        case ast.Attribute(attr="dtype"):
            return "a torch.dtype", False
        case ast.Attribute(value=ast.Name(id="torch"), attr=name) if name in _DTYPES:
            return "a torch.dtype", False
        case ast.Name(id="dtype") if "dtype" in parameters:
            return "a torch.dtype", True
    return "", False
