"""`processed_logprobs` are taken before temperature, top-k, top-p and min-p.

Later releases use the same name, and take them after everything that changes the distribution. In the first ones a
trainer that divides by the temperature gets probabilities of another distribution.
"""

from rlaudit.inspection.advisory import Advisory, Seen, Window
from rlaudit.inspection.conditions import TEMPERATURE_NOT_ONE, setting
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer

ADVISORY = Advisory(
    name="processed-before-temperature",
    layer=Layer.SEMANTIC,
    severity=Severity.ERROR,
    window=Window(
        before=Seen("0.9.2", "vllm/v1/sample/sampler.py", "there is no logprobs_mode"),
        first=Seen(
            "0.10.0",
            "vllm/v1/sample/sampler.py:62",
            "processed logprobs are computed before sample(), which applies the temperature",
        ),
        last=Seen(
            "0.10.1.1",
            "vllm/v1/sample/sampler.py:62",
            "processed logprobs are computed before sample(), which applies the temperature",
        ),
        fixed=Seen("0.10.2", "vllm/v1/sample/sampler.py:101", "sample() returns processed logprobs"),
    ),
    conditions=(
        setting("logprobs_mode", "processed logprobs are asked for", "processed_logprobs"),
        TEMPERATURE_NOT_ONE,
    ),
    setting="logprobs_mode",
    way_out="Move to 0.10.2.",
    confirm="rlaudit ablate, factor engine-version between this release and 0.10.2",
    threads=("vllm#22387", "prime-rl#697"),
)
