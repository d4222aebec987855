"""What a Python program that samples with vLLM and trains in the same file does with the logprobs it asked for.

That it trains shows in `backward()` and `step()`; that it may train on them, in reading `.logprob` or `.logprobs` of an
output. Values are not followed from there into the loss: whether they enter it stays open. What the file computes
itself (`log_softmax`) it divides by a temperature in sight, or not at all.
"""

import ast
from collections.abc import Iterable

from rlaudit.configs.draft import Draft
from rlaudit.configs.framework_source.bindings import nodes_in
from rlaudit.configs.framework_source.checkout import shown
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Unknown

_READ = {"logprob", "logprobs"}
_COMPUTES = {"log_softmax", "logsumexp", "cross_entropy"}
_CUTS = {"topk", "sort", "argsort", "cumsum", "kthvalue"}
_HEAT = "temp"


def take_own_loss(draft: Draft, source: Source) -> None:
    """Fill `draft.trainer` where the file trains and reads the logprobs that it asks for."""
    asked = draft.sampling.get("logprobs")
    if asked is None or asked.value is None or not (".backward(" in source.text and ".logprob" in source.text):
        return
    nodes = nodes_in(source)
    called = {_called(node) for node in nodes if isinstance(node, ast.Call)}
    read = next((getattr(node, "lineno", 0) for node in nodes if _reads(node)), None)
    if read is None or not {"backward", "step"} <= called:
        return
    ratio = next((getattr(node, "lineno", 0) for node in nodes if _is_ratio(node)), None)
    and_ratio = f" and takes a ratio in line {ratio}" if ratio is not None else ""
    why = (
        f"{shown(source.path)} reads them in line {read}, trains{and_ratio}: how they get into the loss is not followed"
    )
    draft.trains("uses_rollout_logprobs", Unknown(why), why)
    if called & _COMPUTES:
        here = "the file computes its logprobs itself"
        if not any(_divides_by_heat(node) for node in nodes):
            draft.trains("divides_by_temperature", False, f"{here}, and divides by no temperature")
        if not called & _CUTS:
            draft.trains("replays_filters", False, f"{here}, without sorting or cutting the logits")


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _reads(node: ast.AST) -> bool:
    """`output.logprobs`; not what an object keeps of its own."""
    loaded = isinstance(node, ast.Attribute) and node.attr in _READ and isinstance(node.ctx, ast.Load)
    return loaded and getattr(node.value, "id", "") != "self"  # type: ignore[attr-defined]


def _is_ratio(node: ast.AST) -> bool:
    """`exp(new - old)`, or `exp` of a name that says so."""
    if not (isinstance(node, ast.Call) and _called(node) == "exp"):
        return False
    taken = node.args[0] if node.args else getattr(node.func, "value", None)
    return isinstance(taken, ast.AST) and any(
        (isinstance(one, ast.BinOp) and isinstance(one.op, ast.Sub)) or "ratio" in getattr(one, "id", "")
        for one in ast.walk(taken)
    )


def _divides_by_heat(node: ast.AST) -> bool:
    divisors: Iterable[ast.AST] = ()
    if isinstance(node, ast.BinOp | ast.AugAssign):
        by = node.right if isinstance(node, ast.BinOp) else node.value
        # Whoever multiplies by an inverse temperature has a name for it.
        divisors = (by, node) if isinstance(node.op, ast.Div | ast.Mult) else ()
    elif isinstance(node, ast.Call) and _called(node) in {"div", "div_", "true_divide", "mul", "mul_"}:
        divisors = node.args
    return any(_HEAT in _named(one).lower() for part in divisors for one in ast.walk(part))


def _named(node: ast.AST) -> str:
    return str(getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "value", ""))
