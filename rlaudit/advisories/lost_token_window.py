"""A weight update that keeps requests and clears the cache loses one token per request, with async scheduling.

Clearing the cache under running requests preempts them and marks the token in flight as one to discard. The mark
outlives the pause and drops the first token after it. 0.22.0 counts what is in flight.
"""

from rlaudit.inspection.advisory import Advisory, Condition, Seen, Window
from rlaudit.inspection.audit import Side
from rlaudit.inspection.conditions import ASYNC_SCHEDULING
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer


def _kept_and_cleared(side: Side) -> bool:
    return side.config.says("pause_mode") == "keep" and side.config.says("pause_clears_cache") is True


ADVISORY = Advisory(
    name="lost-token-window",
    layer=Layer.INFERENCE_PATH,
    severity=Severity.ERROR,
    window=Window(
        before=Seen(
            "0.11.2", "vllm/v1/core/sched/async_scheduler.py", "nothing is discarded: running requests cannot be reset"
        ),
        first=Seen(
            "0.12.0",
            "vllm/v1/core/sched/async_scheduler.py:48",
            "the next output is dropped, whether or not one was in flight",
        ),
        last=Seen(
            "0.21.0",
            "vllm/v1/core/sched/async_scheduler.py:40",
            "the next output is dropped, whether or not one was in flight",
        ),
        fixed=Seen(
            "0.22.0", "vllm/v1/core/sched/async_scheduler.py:40", "as many outputs are dropped as were in flight"
        ),
    ),
    conditions=(ASYNC_SCHEDULING, Condition("requests are kept, and the cache is cleared", _kept_and_cleared)),
    setting="async_scheduling",
    way_out="Set async_scheduling to false, or move to 0.22.0.",
    confirm="rlaudit ablate weight-update, with async_scheduling: [on, off]",
    threads=("vllm#42043",),
    escape={"async_scheduling": False},
)
