"""With pipeline parallelism, only the last stage's layers have experts that are returned: all others are zero.

Earlier stages return before experts are saved, and the last one writes zeros over the layers that are not its own.
0.21.0 refuses the combination.
"""

from rlaudit.inspection.advisory import Advisory, Seen, Window
from rlaudit.inspection.conditions import REPLAYS_ROUTING, more_than_one
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer

ADVISORY = Advisory(
    name="routed-experts-of-the-last-stage",
    layer=Layer.INFERENCE_PATH,
    severity=Severity.ERROR,
    window=Window(
        before=Seen("0.13.0", "vllm/v1/worker/gpu_model_runner.py", "experts are not returned"),
        first=Seen(
            "0.14.0",
            "vllm/v1/worker/gpu_model_runner.py:3503",
            "experts are saved after stages that are not the last have returned (3312)",
        ),
        last=Seen(
            "0.20.2",
            "vllm/v1/worker/gpu_model_runner.py:4334",
            "experts are saved after stages that are not the last have returned (4072)",
        ),
        fixed=Seen("0.21.0", "vllm/config/vllm.py:1914", "more than one stage is refused"),
    ),
    conditions=(REPLAYS_ROUTING, more_than_one("pipeline_parallel_size", "there are several pipeline stages")),
    setting="pipeline_parallel_size",
    way_out="Use tensor or expert parallelism instead of stages.",
    confirm="Count the zeros in what is returned: no layer is all zero.",
    threads=("vllm#35623", "vllm#35626"),
)
