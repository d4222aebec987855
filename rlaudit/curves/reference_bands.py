"""What is usual for a metric, what frameworks gate or alert on, and where that is written.

Bands are of other people's models and hardware: calibrate on two runs of one engine first (`rlaudit ablate` does), and
read a band second. Mixtures of experts and FP8 rollouts lie about ten times higher than dense models in bfloat16.
Not here: figures that could only be read second hand.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Band:
    """values: a range or a limit. means: what is said of it. source: where it can be read."""

    values: str
    means: str
    source: str


OWN = "rlaudit's own reading of the sources above"
VERL_ALERTS = "verl, rollout correction: alert levels"
NEMO_METRICS = "NeMo-RL, docs/guides/grpo.md and its functional tests"
NEMO_MODELS = "NeMo-RL, guide to adding models"

BANDS: Mapping[str, tuple[Band, ...]] = MappingProxyType(
    {
        "k1": (
            Band("below 0.01", "healthy", "Tinker cookbook, kl_sample_train_v1 and v2"),
            Band("|k1| above 0.1", "alert", VERL_ALERTS),
        ),
        "k2": (Band("below 0.01", "healthy", "Tinker cookbook, kl_sample_train_v1 and v2"),),
        "k3": (
            Band("1e-5 to 1e-3", "dense models", "slime and Miles on train-inference mismatch"),
            Band("1e-3 to 1e-1", "mixtures of experts", "slime and Miles on train-inference mismatch"),
            Band("below 1e-3", "acceptable", NEMO_METRICS),
            Band("below 0.015, aimed at 0.01", "gate for a new vLLM or model, 20 steps", "prime-rl, e.g. #3543"),
            Band("below 0.003 to 0.004", "gate for FP8 rollouts, measured at 0.0018 to 0.0031", NEMO_METRICS),
        ),
        "mean_abs_log_ratio": (
            Band("below 1e-6", "aligned kernels on both sides", "slime, gate of its aligned path"),
            Band("below 0.01", "a new model is accepted", "SkyRL"),
            Band("0.011, flat over 30 steps", "a healthy dense run; a rise is what matters", "vime#64"),
            Band("0.03 and more", "something is broken", OWN),
        ),
        "token_mult_prob_error": (
            Band("1.01 to 1.03, 1.02 to 1.04", "Megatron and Hugging Face against vLLM", NEMO_MODELS),
            Band("below 1.05", "gate in bfloat16; above it the run plots its worst samples", NEMO_METRICS),
            Band("below 1.06, 1.1, 2.0", "gates for top-p or top-k, several turns, MXFP8", NEMO_METRICS),
            Band("a steady rise of 1 to 2 %", "weight updates; spikes: the engine", NEMO_METRICS),
        ),
        "k3_reverse": (Band("below 1e-3", "acceptable", NEMO_METRICS),),
        "js_divergence": (Band("below 1e-3", "acceptable", NEMO_METRICS),),
        "probs_diff_mean": (
            Band("below 0.005", "normal", "verl, FAQ"),
            Band("above 0.01", "a precision problem of the inference engine", "verl, FAQ"),
        ),
        "mean_ratio": (
            Band("0.999 to 1.002", "healthy", "MaxText#5231"),
            Band("within 3 standard errors, or 1e-3, of 1", "honest logprobs: the expectation is exactly 1", OWN),
            Band("off by 0.01 and more", "the logprobs mean something else", OWN),
            Band("0.896, 0.965", "top-p 0.8, top-k 20 that the trainer does not replay", "trl#7269"),
        ),
        "mean_weight": (Band("below 0.5 or above 2", "alert", VERL_ALERTS),),
        "effective_sample_size": (Band("below 0.3", "alert", VERL_ALERTS),),
        "chi2_token": (Band("above 1", "alert; can be below 0 in a sample", VERL_ALERTS),),
    }
)
