"""V0 rounds the temperature to the dtype of the logits; V1 and the trainer do not.

What changed
    V0 keeps temperature, top-p, min-p and penalties in the dtype of the logits, V1 in float32. In bfloat16 a
    temperature of 0.7 is 0.69921875.
    Source: SamplingTensors, vllm/model_executor/sampling_metadata.py (0.8.5:538).

Why it matters
    V0's logprobs are those of the rounded temperature. Measured with 0.8.5, they are exact to 1.5e-6 at that one, and
    off by up to 0.02 nats at 0.7. After the migration that part of the reference's mismatch is gone. It is a difference
    between the runs that needs no fix.

Example
    Reported:

        from: 0.8.5
        to: 0.18.1
        engine: {dtype: bfloat16}
        environment: {VLLM_USE_V1: "0"}
        sampling: {temperature: 0.7}

    Use instead:

        sampling: {temperature: 0.75}

Safe to ignore when
    Always, unless curves before and after are compared to the third digit. A temperature with few binary digits
    (1, 0.75, 0.5) is not rounded.

How to confirm
    `rlaudit ablate v0-to-v1` with your dtype: the reference's mean absolute log ratio falls with a temperature of
    0.75.
"""

import struct
from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.returned_logprobs import engine_of
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.sampling import is_greedy, temperature
from rlaudit.settings.trainer_facts import Dtype
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown


def check(audit: Audit) -> Iterator[Finding]:
    """Report a temperature that V0's dtype cannot hold."""
    side = audit.before if audit.before.is_v1 is False else audit.after
    heat, dtype = temperature(side), side.value("dtype")
    if side.is_v1 is not False or isinstance(heat, Unknown) or is_greedy(side):
        return
    if not isinstance(dtype, str) or dtype not in ROUNDING:
        return
    if audit.config.facts.rollout_head_dtype is Dtype.FLOAT32:
        return  # a float32 head gives float32 logits, and the temperature is kept in their dtype
    rounded = ROUNDING[dtype](heat)
    if rounded != heat:
        other = engine_of(audit.after) if audit.migrates and audit.after.is_v1 else "a trainer in float32"
        message = (
            f"{engine_of(side)} divides logits by {rounded:.8g}, which is {heat:g} in {dtype}; {other} divides them by "
            f"{heat:g}."
        )
        yield RULE.finding(audit, Severity.NOTE, "temperature", message)


def _bfloat16(value: float) -> float:
    """Round to the nearest, ties to even, as torch does."""
    bits = struct.unpack(">I", struct.pack(">f", value))[0]
    bits += 0x7FFF + ((bits >> 16) & 1)
    rounded: float = struct.unpack(">f", struct.pack(">I", bits & 0xFFFF0000))[0]
    return rounded


def _float16(value: float) -> float:
    rounded: float = struct.unpack(">e", struct.pack(">e", value))[0]
    return rounded


ROUNDING = {"bfloat16": _bfloat16, "float16": _float16, "half": _float16}
RULE = Rule("temperature-rounded-in-bfloat16", Layer.SEMANTIC, check)
