"""Kernels that torch.compile's Inductor writes, or the model's own; CUDA graphs are not changed.

Inductor fuses element-wise operations and keeps what is between them in float32, so activations round elsewhere.
Without Inductor, vLLM takes its own kernels for RMSNorm and the like. Both belong to this factor. Compare it with
`cudagraphs` and with `enforce-eager`, which turns both off at once. If `compile=off` does what `enforce-eager=on` does,
Inductor is to blame. If `cudagraphs=off` does, the graphs are. 0.8.5 and 0.9.0 compile at either level; V0 never
compiles. How each release is configured: rlaudit/engines/inside/execution.py. Source: NeMo-RL issues 998 and 1014
(spikes that ended with use_inductor=False), vLLM issue 55944.
"""

from dataclasses import replace

from rlaudit.laboratory.factor import ArmTrace, Factor, Observation, always
from rlaudit.laboratory.treatment import Treatment
from rlaudit.layers import Layer

# Levels and modes of compilation, by number until 0.11.0 and by name since.
NOTHING = (None, 0, "NONE", "NO_COMPILATION")
PIECEWISE = (3, "PIECEWISE", "VLLM_COMPILE")


def set_level(treatment: Treatment, level: str) -> Treatment:
    """`on` compiles as the release does by default, `off` leaves Inductor out."""
    return replace(treatment, compiles=level == "on")


def observe(trace: ArmTrace) -> Observation:
    """Read the level from the loaded compilation configuration."""
    mode, backend = trace.resolved.get("compilation_mode"), trace.resolved.get("compile_backend")
    inductor = trace.resolved.get("use_inductor")
    because = f"loaded configuration: compilation mode {mode}, backend {backend or 'not named'}"
    if inductor is not None:
        because += f", use_inductor={inductor}"
    if mode in NOTHING or backend == "eager":
        return Observation("off", because)
    # Piecewise compilation reads use_inductor if it exists; other levels run eagerly unless a backend is named.
    by_inductor = inductor is not False if mode in PIECEWISE else bool(backend)
    return Observation("on" if by_inductor else "off", because)


FACTOR = Factor(
    name="compile",
    layer=Layer.INFERENCE_PATH,
    levels=("on", "off"),
    set_level=set_level,
    observe=observe,
    setting="compilation_config",
    move=always("off"),
)
