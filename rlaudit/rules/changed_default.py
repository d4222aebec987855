"""Other defaults that the config leaves to vLLM differ between the two versions.

What changed
    What the message lists: declared defaults of engine arguments, values that vLLM decides at start-up, and variables
    that choose kernels. Defaults with a separate rule (prefix caching, async scheduling, seed, ...) are not
    repeated.

Why it matters
    Each changed default is a difference between the two engines that a comparison measures as well. Most of them are
    harmless. But `gpu_memory_utilization`, for example, decides when requests are preempted, and so which run together.

Example
    Reported:

        from: 0.18.1
        to: 0.32.0

    Use instead:

        engine: {gpu_memory_utilization: 0.9}
        to: 0.18.1

Safe to ignore when
    you do not compare the two versions with each other.

How to confirm
    `rlaudit explain A..B` prints every default that moves. `rlaudit ablate CONFIG --from A --to B --factor
    engine-version` measures all of them together.
"""

from collections.abc import Iterator
from typing import Any

from rlaudit.configs.elsewhere import Elsewhere
from rlaudit.layers import Layer
from rlaudit.rules import known_rules
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.batch_invariance import BACKEND_VARIABLE
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.moved_default import moved_default
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.severity import Severity
from rlaudit.text.counted import counted
from rlaudit.unknown import Unknown

CONFIRM = Trial()
# Names, downloads and classes that say the same in other words.
NO_DIFFERENCE = {
    "distributed_executor_backend", "ignore_patterns", "model", "model_weights", "scheduler_cls", "served_model_name",
    "tokenizer", "worker_cls",
}  # fmt: skip
# Variables whose default chooses another kernel; the others are timeouts, paths and ports.
KERNELS = ("VLLM_ALLREDUCE_USE_SYMM_MEM", "VLLM_ALLREDUCE_USE_FLASHINFER", "VLLM_USE_DEEP_GEMM")


def check(audit: Audit) -> Iterator[Finding]:
    """Report one note that lists them all."""
    if not audit.migrates:
        return
    moved = {}
    chosen = audit.after.variable(BACKEND_VARIABLE) is not None
    names = (audit.before.catalogue.engine.keys() & audit.after.catalogue.engine.keys()) | {"attention_backend"}
    reported = NO_DIFFERENCE.union(*(rule.defaults for rule in known_rules().values()))
    for name in sorted(names - reported - ({"attention_backend"} if chosen else set())):
        default = moved_default(audit, name)
        if default is not None and _differ(default.before.value, default.after.value):
            moved[name] = (default.before.value, default.after.value)
    moved |= _variables(audit)
    if not moved:
        return
    listed = ", ".join(f"{name} {_spell(before)} -> {_spell(after)}" for name, (before, after) in moved.items())
    message = (
        f"From {audit.before.version} to {audit.after.version} vLLM changes the default of "
        f"{counted(len(moved), 'setting')} that this config leaves out: {listed}."
    )
    place = audit.place("")
    yield RULE.finding(audit, Severity.NOTE, next(iter(moved)), message, confirm=CONFIRM, place=place)


def _variables(audit: Audit) -> dict[str, tuple[Any, Any]]:
    if isinstance(audit.config.engine, Elsewhere):
        # The variables of an engine that another command starts are that command's.
        return {}
    before, after = audit.before.catalogue.variables, audit.after.catalogue.variables
    one_gpu = audit.after.value("tensor_parallel_size") == 1
    moved = {}
    for name in KERNELS:
        if name not in before or name not in after or audit.after.variable(name) is not None:
            continue
        if ("ALLREDUCE" in name and one_gpu) or ("DEEP_GEMM" in name and audit.after.value("quantization") is None):
            continue
        was, now = before[name].default, after[name].default
        if not isinstance(was, Unknown) and not isinstance(now, Unknown) and _differ(was, now):
            moved[name] = (was, now)
    return moved


def _differ(before: Any, after: Any) -> bool:
    """Return whether two defaults certainly differ: None means that vLLM decides later."""
    return before is not None and after is not None and bool(before != after)


def _spell(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


RULE = Rule("changed-default", Layer.INFERENCE_PATH, check)
