"""The server takes sampling parameters that requests leave out from the model's generation_config.json.

What changed
    `generation_config=auto` is vLLM's default in every catalogued release. If a request does not name temperature,
    top_p, top_k, min_p or repetition_penalty, an OpenAI-compatible server then takes it from the model's own file.
    0.31.0 adds presence_penalty and frequency_penalty to that list.
    Source: get_diff_sampling_param, vllm/config/model.py (0.18.1:1332, 0.31.0:1804).

Why it matters
    Qwen models bring top_k=20, top_p=0.8 and repetition_penalty=1.05. The trainer never learns that rollouts are
    filtered and penalised. A new checkpoint or release can change it without a line of config changing. No setting that
    vLLM returns shows it.

Example
    Reported:

        to: 0.18.1
        sampling: {temperature: 1.0}
        trainer: {divides_by_temperature: true, uses_rollout_logprobs: true}

    Use instead:

        engine: {generation_config: vllm}

Safe to ignore when
    Every request carries temperature, top_p, top_k, min_p and the penalties. Or rollouts are made in-process with
    separate SamplingParams, or the model has no generation_config.json.

How to confirm
    vLLM logs at start that default sampling parameters have been overridden by the model's generation_config.json.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit, Side
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.returned_logprobs import engine_of
from rlaudit.rules.audit.rule import Rule
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown
from rlaudit.vllm.milestones import PENALTIES_FROM_THE_MODEL
from rlaudit.vllm.resolve import object_of

COMMON = ("temperature", "top_p", "top_k", "repetition_penalty")
RARE = ("min_p",)
PENALTIES = ("presence_penalty", "frequency_penalty")


def check(audit: Audit) -> Iterator[Finding]:
    """Report sampling parameters that are left to the model's file."""
    side = audit.after
    where = side.value("generation_config")
    if side.config.offline or where is None or where == "vllm":
        return
    left, unknown = _left_to_the_model(side)
    open_questions = [where.reason] if isinstance(where, Unknown) else []
    if not left:
        open_questions = list(dict.fromkeys([*open_questions, *unknown.values()]))
    if open_questions and (left or unknown):
        message = (
            f"It is not known whether {engine_of(side)} takes {', '.join(left or unknown)} from the model's "
            f"generation_config.json: {'; '.join(open_questions)}."
        )
        yield RULE.finding(audit, Severity.NOTE, "generation_config", message, by=("model",))
    elif left:
        certain = audit.config.has_trainer and set(left) & set(COMMON)
        file = "the model's generation_config.json" if where == "auto" else f"the generation_config.json in {where}"
        them = "it" if len(left) == 1 else "them"
        message = f"{engine_of(side)} takes {', '.join(left)} from {file} if a request leaves {them} out"
        if audit.crosses(PENALTIES_FROM_THE_MODEL) and set(left) & set(PENALTIES):
            message += " (the penalties are new in 0.31.0)"
        message += ". Set generation_config=vllm, or write these parameters into every request."
        fix = audit.fix("use vLLM's neutral sampling defaults", safe=False, generation_config="vllm")
        severity = Severity.WARNING if certain else Severity.NOTE
        yield RULE.finding(audit, severity, "generation_config", message, fix, by=("model",))


def _left_to_the_model(side: Side) -> tuple[list[str], dict[str, str]]:
    """Return parameters that neither requests nor an override name, and those that they may name, with the reason."""
    override = side.value("override_generation_config")
    overridden = object_of(override)
    names = (*COMMON, *RARE, *(PENALTIES if side.version >= PENALTIES_FROM_THE_MODEL else ()))
    settings = {name: side.config.sampling.get(name) for name in names if name not in overridden}
    left = [name for name, setting in settings.items() if setting is None or setting.value is None]
    # A written parameter is in the requests, even if its value is unknown. One that another file may set is open.
    unknown = {
        name: setting.value.reason
        for name, setting in settings.items()
        if setting is not None and isinstance(setting.value, Unknown) and name not in side.config.sampling
    }
    if isinstance(override, Unknown):
        return [], {**dict.fromkeys(left, override.reason), **unknown}
    return left, unknown


RULE = Rule("generation-config-auto", Layer.SEMANTIC, check, defaults=("generation_config",))
