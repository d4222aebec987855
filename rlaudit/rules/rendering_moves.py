"""The move brings another major release of transformers, and a chat may become other tokens.

What changed
    vLLM up to 0.19.0 runs with transformers 4, from 0.24.0 on with transformers 5, and between them with either. From
    transformers 5 on, `apply_chat_template` returns a dict in place of token ids, unless return_dict is False. A
    tokenizer of byte-level BPE that is declared as LlamaTokenizerFast in a checkpoint of type llama loses spaces and
    line breaks (transformers 5.19, beside vLLM 0.32.0), unless transformers knows its repository by name.
    Source: METADATA of vLLM's wheels; transformers/tokenization_utils_base.py, 4.57.6:1560 and 5.19.0:3003;
    models/llama/tokenization_llama.py and models/auto/tokenization_auto.py, 5.19.0; transformers#41626, verl#6080.

Why it matters
    The model reads another text than it was trained on, or than the trainer scores, and no setting of vLLM brings the
    old tokens back. The releases that run with both keep the two moves apart: vLLM first with today's transformers
    pinned, or transformers first.

Example
    Reported:

        from: 0.20.0
        to: 0.32.0

    Use instead:

        pins: {transformers: 5.17.0}

Safe to ignore when
    the engine gets token ids that the trainer made, or both sides render with the same transformers and template.

How to confirm
    `rlaudit ablate CONFIG --from A --to B` renders your prompts and fourteen conversations on every side, and names the
    first token that differs. `rlaudit explain inputs`.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit, Side
from rlaudit.rules.audit.finding import Action, ActionKind, Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.severity import Severity
from rlaudit.vllm.transformers import required_transformers

CONFIRM = Trial(look="see what the report says of the inputs, above the layers")


def check(audit: Audit) -> Iterator[Finding]:
    """Report a move between releases of vLLM that do not run with the same major releases of transformers."""
    before, after = _majors(audit.before), _majors(audit.after)
    if not audit.migrates or before == after:
        return
    message = (
        f"The same chat may become other tokens: vLLM {audit.before.version} runs with "
        f"{_words(audit.before, before)}, vLLM {audit.after.version} with {_words(audit.after, after)}."
    )
    line = audit.config.renders
    if line is None:
        message += (
            " Compare the tokens of both releases. To keep today's tokens, send token ids, or call apply_chat_template"
        )
        message += " with return_dict=False."
        yield RULE.finding(audit, Severity.NOTE, "transformers", message, confirm=CONFIRM)
    else:
        message += " From transformers 5 on, this call returns a dict. Pass return_dict=False."
        action = Action(ActionKind.CHANGE, f"the call of apply_chat_template in line {line.line}")
        yield RULE.finding(audit, Severity.WARNING, "transformers", message, confirm=CONFIRM, place=line, action=action)


def _majors(side: Side) -> tuple[int, ...]:
    """Return the major releases of transformers that one side may have: that of a pin, if its vLLM runs with it."""
    required, pin = required_transformers(side.catalogue.version), side.config.transformers
    return (pin.version.major,) if pin is not None and required.runs_with(pin.version) else required.majors


def _words(side: Side, majors: tuple[int, ...]) -> str:
    required, pin = required_transformers(side.catalogue.version), side.config.transformers
    if pin is not None and required.runs_with(pin.version):
        return f"transformers {pin.version} ({pin.because})"
    if len(majors) > 1:
        return f"transformers {' or '.join(map(str, majors))} (nothing here pins it)"
    refused = f", but {pin.because}" if pin is not None else ""
    return f"transformers {majors[0]} ({required.written}{refused})"


RULE = Rule("rendering-moves", Layer.INFERENCE_PATH, check)
