"""With async scheduling, penalties do not see the tokens that a request has generated.

The worker's list of generated tokens holds -1 for each, because the real ones are still on the GPU: repetition,
presence and frequency penalty have nothing to count. 0.11.1 puts the real tokens in before it samples.
"""

from rlaudit.inspection.advisory import Advisory, Condition, Seen, Window
from rlaudit.inspection.conditions import ASYNC_SCHEDULING
from rlaudit.inspection.finding import Severity
from rlaudit.inspection.sampling import penalties
from rlaudit.layers import Layer

ADVISORY = Advisory(
    name="penalties-blind-when-async",
    layer=Layer.SEMANTIC,
    severity=Severity.ERROR,
    window=Window(
        before=Seen("0.10.1.1", "vllm/v1/worker/gpu_model_runner.py:1766", "the sampled tokens are appended"),
        first=Seen("0.10.2", "vllm/v1/worker/gpu_model_runner.py:1966", "-1 is appended for every sampled token"),
        last=Seen("0.11.0", "vllm/v1/worker/gpu_model_runner.py:2181", "-1 is appended for every sampled token"),
        fixed=Seen(
            "0.11.1", "vllm/v1/worker/gpu_input_batch.py:908", "update_async_output_token_ids puts the real ones in"
        ),
    ),
    conditions=(ASYNC_SCHEDULING, Condition("a penalty is set", lambda side: bool(penalties(side)))),
    setting="async_scheduling",
    way_out="Set async_scheduling to false, or move to 0.11.1.",
    confirm="rlaudit ablate, factor async-scheduling, with the penalty under sampling",
    threads=("vllm#27878", "vllm#26467", "vllm#27910"),
    escape={"async_scheduling": False},
)
