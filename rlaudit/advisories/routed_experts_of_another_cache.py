"""For models with several kinds of layers, the experts that are returned for replay are those of other tokens, or none.

Routes are stored by cache slot, and the slots of the first cache group are taken. In a model with state space or linear
attention layers that group is theirs, with blocks of hundreds of thousands of tokens: indices leave the buffer, or
name other tokens. 0.18.0 takes the group of full attention.
"""

from rlaudit.inspection.advisory import Advisory, Seen, Window
from rlaudit.inspection.conditions import MIXTURE, REPLAYS_ROUTING, model
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer

ADVISORY = Advisory(
    name="routed-experts-of-another-cache",
    layer=Layer.INFERENCE_PATH,
    severity=Severity.WARNING,
    window=Window(
        before=Seen("0.13.0", "vllm/v1/worker/gpu_model_runner.py", "experts are not returned"),
        first=Seen("0.14.0", "vllm/v1/worker/gpu_model_runner.py:1640", "slots are those of cache group 0"),
        last=Seen("0.17.1", "vllm/v1/worker/gpu_model_runner.py:1833", "slots are those of cache group 0"),
        fixed=Seen("0.18.0", "vllm/v1/worker/gpu_model_runner.py:1960", "slots are those of the attention group"),
    ),
    conditions=(
        REPLAYS_ROUTING,
        MIXTURE,
        model("layers keep several kinds of caches", lambda kind: kind.several_caches),
    ),
    setting="enable_return_routed_experts",
    way_out="Move to 0.22.0.",
    confirm="Compare the experts of a prompt's tokens with those of the trainer's router: most agree.",
    threads=("vllm#35744", "verl#6922"),
)
