"""Data-parallel ranks sample from one seed, so equal prompts in equal batches give equal samples.

From 0.9.0 on a seed that is not set is 0, for every rank. 0.32.0 mixes the rank in.
"""

from rlaudit.inspection.advisory import Advisory, Condition, Seen, Window
from rlaudit.inspection.conditions import more_than_one, setting
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer

ADVISORY = Advisory(
    name="seed-shared-by-replicas",
    layer=Layer.INFERENCE_PATH,
    severity=Severity.WARNING,
    window=Window(
        before=Seen("0.8.5.post1", "vllm/engine/arg_utils.py:220", "a seed that is not given stays None"),
        first=Seen("0.9.0", "vllm/config.py:451", "V1 sets the seed to 0 where none is given"),
        last=Seen("0.31.0", "vllm/utils/torch_utils.py:533", "the seed is the same on every rank"),
        fixed=Seen("0.32.0", "vllm/utils/torch_utils.py:546", "the rank is mixed into the seed"),
    ),
    conditions=(
        more_than_one("data_parallel_size", "there are several data-parallel ranks"),
        setting("seed", "the seed is 0", 0),
        Condition("requests have no seeds", lambda side: side.config.sampling.get("seed") is None),
    ),
    setting="seed",
    way_out="Send a seed with every request, or move to 0.32.0.",
    confirm="Send one prompt at T=1 to two ranks that just started and compare the tokens.",
)
