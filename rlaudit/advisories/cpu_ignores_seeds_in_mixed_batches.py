"""On a CPU, a request's seed is ignored as soon as one other request of the batch has none.

The sampler uses the requests' generators only where every request has one, and else draws all from the default one.
0.29.0 uses those that are there.
"""

from rlaudit.inspection.advisory import Advisory, Condition, Seen, Window
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer

ADVISORY = Advisory(
    name="cpu-ignores-seeds-in-mixed-batches",
    layer=Layer.INFERENCE_PATH,
    severity=Severity.NOTE,
    window=Window(
        before=Seen(
            "0.10.2",
            "vllm/v1/sample/ops/topk_topp_sampler.py:194",
            "one sampler for all devices, which uses the generators that are there",
        ),
        first=Seen(
            "0.11.0",
            "vllm/v1/sample/ops/topk_topp_sampler.py:152",
            "generators are used only where every request has one",
        ),
        last=Seen(
            "0.28.0",
            "vllm/v1/sample/ops/topk_topp_sampler.py:203",
            "generators are used only where every request has one",
        ),
        fixed=Seen(
            "0.29.0", "vllm/v1/sample/ops/topk_topp_sampler.py:203", "generators are used where any request has one"
        ),
    ),
    conditions=(
        Condition("the engine runs on a CPU", lambda side: side.machine.platform == "cpu"),
        Condition("requests have seeds", lambda side: side.config.sampling.get("seed") is not None),
    ),
    setting="seed",
    way_out="Give every request a seed, or none.",
    confirm="Send a seeded request alone and among others: the tokens are the same.",
    threads=("vllm#51226",),
)
