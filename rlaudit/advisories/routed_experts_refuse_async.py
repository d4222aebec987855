"""Returning routed experts refuses to start with async scheduling, which is on by default.

This release alone raises ValueError for the combination; before it nothing was checked, and 0.22.0 supports it.
"""

from rlaudit.inspection.advisory import Advisory, Seen, Window
from rlaudit.inspection.conditions import ASYNC_SCHEDULING, REPLAYS_ROUTING
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer

ADVISORY = Advisory(
    name="routed-experts-refuse-async",
    layer=Layer.INFERENCE_PATH,
    severity=Severity.ERROR,
    window=Window(
        before=Seen("0.20.2", "vllm/config/vllm.py", "async scheduling is not checked"),
        first=Seen("0.21.0", "vllm/config/vllm.py:1933", "async scheduling is refused"),
        last=Seen("0.21.0", "vllm/config/vllm.py:1933", "async scheduling is refused"),
        fixed=Seen("0.22.0", "vllm/config/vllm.py:848", "only other combinations are refused"),
    ),
    conditions=(REPLAYS_ROUTING, ASYNC_SCHEDULING),
    setting="async_scheduling",
    way_out="Set async_scheduling to false, or move to 0.22.0.",
    confirm="Start the engine.",
    threads=("vllm#39917", "vime#34"),
    escape={"async_scheduling": False},
)
