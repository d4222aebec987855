"""Asynchronous scheduling: absent until 0.9, off until 0.13, on by default from 0.14.0.

The next step is scheduled while the last one still runs, so batches are composed differently, and a pause in the middle
of a rollout finds tokens that are already on their way.
"""

from dataclasses import replace
from typing import Any

from rlaudit.unknown import Unknown
from rlaudit.vllm.resolve import Function, Resolution, ResolutionRule, Resolved, number, part, task_of

_CPU = "vllm/platforms/cpu.py"
_DRAFTERS = {"eagle", "eagle3", "mtp", "deepseek_mtp", "mimo_mtp", "qwen3_next_mtp", "ngram_gpu", "dspark", "dflash"}


def apply(view: Resolution) -> Resolved | None:
    """Return whether it is on, which executor and speculation have to allow."""
    if view.machine.platform == "cpu" and view.since("0.14.0"):
        return Resolved(False, "forced off on a CPU, even if the log says otherwise before", overrules=True, at=_CPU)
    if view.given("async_scheduling") is not None or not view.since("0.14.0"):
        return None
    if task_of(view) not in (None, "auto", "generate") and view.since("0.20.0"):
        return Resolved(False, "off for models that do not generate")
    return _stages(view) or _speculation(view) or _executor(view)


def _stages(view: Resolution) -> Resolved | None:
    stages = view.given("pipeline_parallel_size")
    if isinstance(stages, Unknown) and not view.since("0.15.0"):
        return Resolved(stages, "off with pipeline parallelism in 0.14")
    if (number(stages) or 1) <= 1:
        return None
    if not view.since("0.15.0"):
        return Resolved(False, "off with pipeline parallelism in 0.14")
    if view.since("0.31.0") and view.value("model_runner") != "V2":
        return Resolved(False, "off with pipeline parallelism on the old model runner")
    return None


def _speculation(view: Resolution) -> Resolved | None:
    speculative = view.given("speculative_config")
    if speculative is None:
        return None
    if view.since("0.33.0"):
        return Resolved(Unknown("with speculative decoding, the model runner decides"), "speculative decoding")
    method = part(view, "speculative_config", "method")
    if method in _DRAFTERS and part(view, "speculative_config", "disable_padded_drafter_batch") is not True:
        return None
    if isinstance(speculative, Unknown) or isinstance(method, Unknown) or method is None:
        return Resolved(Unknown("the method of speculative decoding decides"), "speculative decoding")
    if method == "draft_model" and view.since("0.28.0"):
        return None
    return Resolved(False, f"off with speculative decoding by {method}")


def _executor(view: Resolution) -> Resolved:
    given = view.given("distributed_executor_backend")
    if isinstance(given, Unknown):
        possible = [_by_executor(executor, view) for executor in given.among]
        agree = bool(possible) and all(outcome.value is possible[0].value for outcome in possible)
        # A config or a framework may give Ray, or a class of its own.
        because = replace(given, reason=f"the default depends on the executor, and {given.reason}", hangs_on=given.fact)
        return possible[0] if agree else Resolved(because, "not every executor supports it")
    return _by_executor(view.value("distributed_executor_backend"), view)


def _by_executor(executor: Any, view: Resolution) -> Resolved:
    # vLLM itself chooses one process or several, and both support it.
    if isinstance(executor, Unknown) or executor in ("uni", "mp", "external_launcher"):
        return Resolved(True, "on by default from 0.14.0")
    if executor == "ray":
        return _ray(view)
    if not view.since("0.21.0"):
        return Resolved(False, "off with an executor that is none of vLLM's own")
    return Resolved(Unknown(f"it is not known whether executor {executor} supports it"), "by executor")


def _ray(view: Resolution) -> Resolved:
    variable = view.variable("VLLM_USE_RAY_V2_EXECUTOR_BACKEND")
    if isinstance(variable, Unknown):
        return Resolved(variable, "VLLM_USE_RAY_V2_EXECUTOR_BACKEND decides")
    second = view.since("0.33.0") or (variable == "1" if variable is not None else view.since("0.21.0"))
    if second and view.since("0.20.0"):
        return Resolved(True, "on by default, also with the Ray executor from 0.21.0 on")
    return Resolved(False, "the Ray executor does not support it before 0.21.0")


RESOLUTION = ResolutionRule(
    "async_scheduling",
    (
        Function("vllm/config/vllm.py", "VllmConfig.__post_init__", ("async_scheduling",)),
        Function(_CPU, "CpuPlatform.check_and_update_config", ("async_scheduling",)),
    ),
    apply,
)
