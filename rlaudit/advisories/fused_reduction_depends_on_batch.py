"""With batch invariance and tensor parallelism, the sum over ranks still depends on the batch.

The all-reduce that is fused with the normalisation, on by default from 0.17.0 on for Hopper and Blackwell, is not
batch-invariant, and VLLM_BATCH_INVARIANT does not turn it off. 0.29.0 does.
"""

from rlaudit.inspection.advisory import Advisory, Condition, Seen, Window
from rlaudit.inspection.batch_invariance import asks_for_batch_invariance
from rlaudit.inspection.conditions import setting
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer

ADVISORY = Advisory(
    name="fused-reduction-depends-on-batch",
    layer=Layer.INFERENCE_PATH,
    severity=Severity.WARNING,
    window=Window(
        before=Seen("0.16.0", "vllm/config/vllm.py:162", "the fusion is off by default"),
        first=Seen("0.17.0", "vllm/config/vllm.py:204", "the fusion is on by default, also with VLLM_BATCH_INVARIANT"),
        last=Seen("0.28.0", "vllm/config/vllm.py:272", "the fusion is on by default, also with VLLM_BATCH_INVARIANT"),
        fixed=Seen("0.29.0", "vllm/config/vllm.py:167", "VLLM_BATCH_INVARIANT turns the fusion off"),
    ),
    conditions=(
        Condition("batch invariance is asked for", asks_for_batch_invariance),
        setting("fuse_allreduce_rms", "the reduction is fused", True),
    ),
    setting="compilation_config",
    way_out='Set compilation_config={"pass_config": {"fuse_allreduce_rms": false}}, or move to 0.29.0.',
    confirm="rlaudit ablate, factor batch-size, with batch invariance on",
    threads=("vllm#51290",),
)
