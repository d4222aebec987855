"""Tensor-parallel all-reduce and RMSNorm are fused after the migration and were separate kernels before.

What changed
    0.17.0 turned the pass `fuse_allreduce_rms` on at the default optimization level, for tensor parallelism on sm90 and
    sm100 with FlashInfer installed. Until 0.20.2 that held only without data and pipeline parallelism
    (vllm/config/vllm.py, enable_allreduce_rms_fusion).

Why it matters
    The residual stream of every layer is summed and normalised by another kernel in another order. It is rounding,
    but in every layer and on every token, and the trainer's sharding has nothing like it.

Example
    Reported:

        from: 0.16.0
        to: 0.18.1
        engine: {tensor_parallel_size: 2}

    Use instead:

        engine: {compilation_config: {pass_config: {fuse_allreduce_rms: false}}}

Safe to ignore when
    FlashInfer is not installed beside vLLM.

How to confirm
    `rlaudit ablate CONFIG --from A --to B --factor enforce-eager`runs without the pass, on a machine with as many GPUs.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Action, ActionKind, Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown

PASS = "fuse_allreduce_rms"
SETTING = "compilation_config"


def check(audit: Audit) -> Iterator[Finding]:
    """Report kernels that are separate before and fused after, if the pass is vLLM's own choice."""
    if not audit.migrates or audit.after.value(PASS) is not True or audit.before.value(PASS) is not False:
        return
    written = audit.config.engine.get(SETTING)
    if written is not None and (isinstance(written.value, Unknown) or PASS in str(written.value)):
        return
    ranks, machine, installed = audit.after.value("tensor_parallel_size"), audit.after.machine, ""
    if machine.flashinfer is None:
        installed = " if FlashInfer is installed"
    message = (
        f"vLLM {audit.after.version} fuses all-reduce and RMSNorm ({PASS}){installed}; vLLM {audit.before.version} "
        f"does not. This holds with {ranks} tensor-parallel ranks on {machine.gpu}. "
        f"Set {SETTING}.pass_config.{PASS} to false to keep what runs today."
    )
    fix = None
    if written is None or written.value is None:
        off = {"pass_config": {PASS: False}}
        fix = audit.fix("Keep all-reduce and RMSNorm apart, as before", safe=True, compilation_config=off)
    look = f"this needs {ranks} GPUs. enforce-eager switches the fusion off: compare the arms with and without it"
    confirm = Trial(("enforce-eager",), look=look)
    decide = Action(ActionKind.DECIDE, f"{SETTING}.pass_config.{PASS}")
    by = ("tensor_parallel_size",)
    sets = {f"{SETTING}.pass_config.{PASS}": False}
    yield RULE.finding(audit, Severity.WARNING, SETTING, message, fix, confirm, by=by, action=decide, sets=sets)


RULE = Rule("fuse-allreduce-rms", Layer.INFERENCE_PATH, check)
