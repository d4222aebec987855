"""The worker extension of a training: weight updates, and logits in float32 if the recipe requires them.

Loaded by `worker_extension_cls`, which takes one class. Python 3.9 syntax; imports only what a vLLM environment holds.
"""

from rlaudit_fp32_head import Fp32Head
from rlaudit_weight_update import WeightUpdate


class TrainedEngine(WeightUpdate, Fp32Head):
    """Methods that `collective_rpc` reaches in each worker."""
