"""Which logprobs the engine returns: `raw` (before temperature, penalties and filters) or `processed` (after them).

V0 always returned processed logprobs. V1 returns raw ones unless `logprobs_mode=processed_logprobs`. In 0.10.0 and
0.10.1 that name stood for logprobs without temperature, so the level is observed in the returned numbers as well as in
the configuration. At temperature 1 without filters or penalties the two are the same thing and nothing can be observed.
Source: vllm/v1/sample/sampler.py (0.10.2 and later), vLLM pull requests 21398 and 22387.
"""

from collections.abc import Mapping
from typing import Any

from rlaudit.laboratory.factor import ArmTrace, Factor, Move, Observation
from rlaudit.laboratory.treatment import Treatment
from rlaudit.layers import Layer
from rlaudit.meaning.candidates import RAW
from rlaudit.rules.audit.audit import Audit


def set_level(treatment: Treatment, level: str) -> Treatment:
    """`raw` or `processed`, by vLLM's engine argument."""
    return treatment.with_engine_args("logprobs-mode", logprobs_mode=f"{level}_logprobs")


def observe(trace: ArmTrace) -> Observation:
    """Read the level from what the returned numbers fit, and from the configuration only if they cannot tell."""
    mode, configured = _configured(trace.resolved)
    if trace.requested == RAW:
        return Observation(mode, f"{configured}; raw and processed logprobs are the same at these sampling parameters")
    if not trace.reported.differences(trace.requested):
        return Observation("processed", f"{configured}; the returned logprobs fit the sampling parameters")
    if not trace.reported.differences(RAW):
        return Observation("raw", f"{configured}; the returned logprobs fit T=1 before any processing")
    return Observation(None, f"{configured}; the returned logprobs fit neither mode but {trace.reported.name}")


def _configured(resolved: Mapping[str, Any]) -> tuple[str | None, str]:
    """Return the level that the loaded engine is set to, and how it is known. V0 of 0.10 does not read the argument."""
    if resolved["engine"] == "V0":
        return "processed", "V0 has one mode, processed"
    mode = resolved.get("logprobs_mode")
    if mode is None:
        return "raw", "a V1 without logprobs_mode has one mode, raw"
    level = {"raw_logprobs": "raw", "processed_logprobs": "processed"}.get(mode)
    return level, f"loaded configuration: logprobs_mode={mode}"


def move(audit: Audit, setting: str) -> Move:
    """Try the other mode; processed is what every release once returned."""
    processed = str(audit.after.value(setting)).startswith("processed")
    return Move("raw" if processed else "processed", to_reference=not processed)


FACTOR = Factor(
    name="logprobs-mode",
    layer=Layer.SEMANTIC,
    levels=("raw", "processed"),
    set_level=set_level,
    observe=observe,
    setting="logprobs_mode",
    move=move,
)
