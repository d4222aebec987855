"""A sampling parameter of this config no longer exists, or V1 refuses it.

What changed
    `best_of` and `guided_decoding` (with the request fields guided_json, guided_regex, guided_choice,
    guided_grammar) are gone from 0.12.0 on, per-request `logits_processors` and `truncate_prompt_tokens` from
    0.17.0 on. V1 refuses `best_of` above 1 and per-request processors in every release.
    Source: vllm/sampling_params.py (0.11.2, 0.12.0, 0.16.0, 0.17.0), vllm/v1/engine/processor.py (0.8.5:118).

Why it matters
    In-process the call fails with a TypeError. A server drops the unknown field with a line in its log and samples
    without it. Guided rollouts are then not guided any more, and nothing else says so.

Example
    Reported:

        from: 0.10.2
        to: 0.18.1
        offline: true
        sampling: {temperature: 1.0, guided_decoding: {regex: "[0-9]+"}}

    Use instead:

        sampling: {guided_decoding: null, structured_outputs: {regex: "[0-9]+"}}

Safe to ignore when
    The framework translates the parameter before vLLM sees it.

How to confirm
    Send one request to the new version and read its log.
"""

from collections.abc import Iterator
from typing import Any

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.returned_logprobs import engine_of
from rlaudit.rules.audit.rule import Rule
from rlaudit.settings.rollout_config import Setting
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown
from rlaudit.vllm.removed import ADVICE, removed

REQUEST_FIELDS = ("guided_json", "guided_regex", "guided_choice", "guided_grammar")
NEUTRAL = {"best_of": "1", "logits_processors": "None"}
REFUSED_BY_V1 = tuple(NEUTRAL)
# Dialects in which the file itself calls vLLM, so that no framework translates the parameter.
CALLS_VLLM_ITSELF = {"vllm-python"}


def check(audit: Audit) -> Iterator[Finding]:
    """Report parameters of the config that the version after the migration lacks."""
    side = audit.after
    for name, setting in side.config.sampling.items():
        parameter = "guided_decoding" if name in REQUEST_FIELDS else name
        removal = removed("sampling", parameter, side.version)
        if removal is not None:
            # A server drops the field and goes on; only an in-process call stops at it, with any value.
            stops = side.config.offline and name not in REQUEST_FIELDS
            if not (_is_used(name, setting.value) or (stops and _is_passed_as_written(audit, setting))):
                continue
            message = f"{engine_of(side)} has no sampling parameter {name} (the last release with {parameter} is "
            message += f"{removal.last}): {removal.effect}. {removal.instead}"
            yield RULE.finding(audit, Severity.ERROR if stops else Severity.WARNING, name, message.strip())
        elif parameter in REFUSED_BY_V1 and side.is_v1 and _is_used(name, setting.value):
            asks = f"requests with {name}" if setting.known else f"requests with {name}, unless it is {NEUTRAL[name]}"
            message = f"{engine_of(side)} refuses {asks}. {ADVICE['sampling', parameter][0]}"
            yield RULE.finding(audit, Severity.ERROR if setting.known else Severity.WARNING, name, message)


def _is_used(name: str, value: Any) -> bool:
    """Return whether the parameter has an effect, or may have one."""
    if isinstance(value, Unknown):
        return True
    return value is not None and bool(value != 1 if name == "best_of" else value)


def _is_passed_as_written(audit: Audit, setting: Setting) -> bool:
    """Return whether the call names the parameter even with None: only code that calls vLLM itself does."""
    calls_vllm = audit.config.framework in CALLS_VLLM_ITSELF or not audit.config.has_trainer
    return setting.place is not None and calls_vllm


RULE = Rule("sampling-parameter-gone", Layer.SEMANTIC, check, already=Severity.WARNING)
