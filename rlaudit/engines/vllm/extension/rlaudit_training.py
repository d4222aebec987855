"""What a worker needs in a training: weights loaded into it, and logits in float32 where the recipe asks for them.

Loaded by `worker_extension_cls`, which takes one class. Python 3.9 syntax; imports only what a vLLM environment holds.
"""

from rlaudit_fp32_head import Fp32Head
from rlaudit_weight_update import WeightUpdate


class TrainedEngine(WeightUpdate, Fp32Head):
    """Methods that `collective_rpc` reaches in each worker."""
