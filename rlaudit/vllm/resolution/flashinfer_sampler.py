"""Whether top-k and top-p are sampled by FlashInfer's rejection kernel instead of a sort.

It never runs with processed logprobs: those need the filtered distribution itself.
"""

from rlaudit.unknown import Unknown
from rlaudit.vllm.milestones import (
    FLASHINFER_ONLY_WHEN_ASKED,
    FLASHINFER_SAMPLES,
    FLASHINFER_SAMPLES_AGAIN,
    PROCESSED_IS_FINAL,
)
from rlaudit.vllm.resolve import Function, Resolution, ResolutionRule, Resolved, engine_unknown

_FILE = "vllm/v1/sample/ops/topk_topp_sampler.py"


def apply(view: Resolution) -> Resolved:  # noqa: PLR0911 - one line per decision
    """Return whether it samples; Unknown if that depends on what is installed."""
    if view.machine.platform == "cpu":
        return Resolved(False, "FlashInfer runs on GPUs only")
    if view.is_v1 is None:
        return engine_unknown(view, "the FlashInfer sampler")
    variable = view.variable("VLLM_USE_FLASHINFER_SAMPLER")
    if isinstance(variable, Unknown):
        return Resolved(variable, "VLLM_USE_FLASHINFER_SAMPLER decides")
    if not view.is_v1:
        return Resolved(variable == "1", "V0 takes it only with VLLM_USE_FLASHINFER_SAMPLER=1")
    mode = view.value("logprobs_mode")
    if isinstance(mode, Unknown):
        return Resolved(mode, "processed logprobs exclude it")
    if view.since(PROCESSED_IS_FINAL) and str(mode).startswith("processed"):
        return Resolved(False, "processed logprobs exclude it")
    if variable == "0":
        return Resolved(False, "VLLM_USE_FLASHINFER_SAMPLER=0")
    if not view.since(FLASHINFER_SAMPLES):
        return _if_installed(view, "0.8.5 takes it only with a FlashInfer older than 0.2.3", opposite=True)
    if not view.since(FLASHINFER_ONLY_WHEN_ASKED):
        return _if_installed(view, "taken by default where FlashInfer 0.2.3 or later is installed")
    if not view.since(FLASHINFER_SAMPLES_AGAIN):
        return Resolved(variable == "1", "only with VLLM_USE_FLASHINFER_SAMPLER=1 between 0.11.1 and 0.20")
    if view.machine.capability < 80 and variable != "1":
        return Resolved(False, "the GPU is too old for it")
    if view.machine.flashinfer is False:
        return Resolved(False, "FlashInfer is not installed")
    return Resolved(True, "default from 0.21.0 on")


def _if_installed(view: Resolution, why: str, opposite: bool = False) -> Resolved:
    installed = view.machine.flashinfer
    if installed is None:
        return Resolved(Unknown("FlashInfer is an optional package of this release"), why)
    return Resolved(installed and not opposite, why)


RESOLUTION = ResolutionRule("flashinfer_sampler", (Function(_FILE, "TopKTopPSampler.__init__"),), apply)
