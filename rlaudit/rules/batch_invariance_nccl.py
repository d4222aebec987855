"""Batch invariance pins NCCL for the whole process, and the weight updates go through the same NCCL.

What changed
    From 0.11.1 on, `VLLM_BATCH_INVARIANT` makes the engine set ten NCCL variables for its process, NCCL_PROTO,
    NCCL_ALGO and NCCL_NTHREADS among them (0.18.1 vllm/model_executor/layers/batch_invariant.py:1040-1060). 0.32.0 pins
    the algorithm per communicator.

Why it matters
    A communicator needs the same settings on all its ranks. The trainer's ranks do not have them: the broadcast of
    new weights hangs, fails or crawls. PipelineRL takes ten variables out again before it joins the trainer's
    group.

Example
    Reported:

        to: 0.18.1
        environment: {VLLM_BATCH_INVARIANT: "1"}
        engine: {attention_backend: FLASH_ATTN, weight_transfer_config: {backend: nccl}}

    Use instead:

        engine: {weight_transfer_config: {backend: ipc}}

Safe to ignore when
    the trainer starts with the same NCCL variables, or the update code removes them before it makes its
    communicator.

How to confirm
    Do one weight update with NCCL_DEBUG=INFO on both sides and compare the settings that are logged.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.batch_invariance import VARIABLE, asks_for_batch_invariance
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.settings.trainer_facts import WeightUpdates
from rlaudit.severity import Severity
from rlaudit.vllm.milestones import BATCH_INVARIANCE
from rlaudit.vllm.resolve import part

# Frameworks whose update code removes the variables itself (PipelineRL pipelinerl/vllm1.py, launch.py:83-101).
REMOVES_THEM = {"pipelinerl"}


def check(audit: Audit) -> Iterator[Finding]:
    """Report batch invariance with weight updates over NCCL, known or possible."""
    if not asks_for_batch_invariance(audit.after) or audit.after.version < BATCH_INVARIANCE:
        return
    if audit.after.machine.platform == "cpu" or audit.config.framework in REMOVES_THEM:
        return
    transfer = part(audit.after.resolution, "weight_transfer_config")
    backend = transfer.get("backend", "nccl") if isinstance(transfer, dict) else None
    confirm = "one weight update with NCCL_DEBUG=INFO on both sides"
    if backend == "nccl":
        message = (
            f"{VARIABLE} pins NCCL in the engine's process while weights arrive over NCCL (weight_transfer_config). "
            "Start the trainer with the same NCCL_ variables, or remove them before the communicator is made."
        )
        yield RULE.finding(audit, Severity.WARNING, VARIABLE, message, confirm=confirm)
    elif backend is None and audit.config.facts.weight_updates is WeightUpdates.IN_FLIGHT:
        message = (
            f"{VARIABLE} pins NCCL in the engine's process. If weights arrive over NCCL, the trainer needs the same "
            "NCCL_ variables. This file does not say how weights arrive."
        )
        yield RULE.finding(audit, Severity.NOTE, VARIABLE, message, confirm=confirm)


RULE = Rule("batch-invariance-nccl", Layer.INFERENCE_PATH, check)
