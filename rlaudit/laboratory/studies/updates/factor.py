"""Weights updated while requests run: how the engine is paused, whether its cache is cleared, how weights are loaded.

A factor with separate recipes (key `weight_updates`), because several sets of weights pass through each of its
engines and every token is scored with those that should have sampled it. `rlaudit ablate weight-update` runs the one
that is shipped; copy it, and keep the releases, modes and paths that you use.

An update took effect if requests were running and the worker holds the new weights: by fingerprints of its tensors, and
by what its head computes. Reported separately: requests that the pause ended; tokens by how old their weights were;
stale keys and values in the cache; weights that did not update. Source: vllm/v1/engine/async_llm.py (pause_generation
since 0.12.0, its mode since 0.16.0), vllm issues 42043 and 46125.
"""

from rlaudit.layers import Layer
from rlaudit.settings.trainer_facts import PauseMode

NAME = "weight-update"
LAYER = Layer.INFERENCE_PATH
LEVELS = tuple(PauseMode)
SETTING = "pause_generation(mode, clear_cache), then reload_weights, update_weights or a worker extension"


def documentation() -> str:
    """Return what `rlaudit explain weight-update` prints."""
    levels = f"{', '.join(LEVELS)}; each with clear_cache true or false, or with salted requests; or LoRA adapters"
    return f"{(__doc__ or '').strip()}\n\nLevels: {levels}\nLayer:  {LAYER}\nSets:   {SETTING}"
