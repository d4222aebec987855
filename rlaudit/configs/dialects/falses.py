"""What becomes of a written false on its way to vLLM's command line: leaving a flag out is not the same as `--no-flag`.

    falses:                             # of the entries that hold, the first decides on every written false
      - {if: keywords, arrives: true}
      - {if: release < 0.9.1, because: the serializer skips it, at: {...}}      # vLLM's own default holds
      - {arrives: true, at: {...}}

A false that vLLM takes by itself is lost without harm.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlaudit.settings.rollout_config import Loss, Lost
from rlaudit.unknown import Unknown
from rlaudit.vllm.catalogue import Catalogue

if TYPE_CHECKING:
    from rlaudit.configs.dialects.reading import Reading


def drop_falses(reading: "Reading") -> None:
    """Take the falses that never arrive out of the engine's settings, and leave open those that may not arrive."""
    possible, reason = _possible(reading)
    dropping = next((entry for entry in possible if "arrives" not in entry), None)
    if dropping is None and not reason:
        return
    certain = not reason and len(possible) == 1
    sentence = reading.sentence(dropping) if dropping is not None else "it is not known whether a false arrives"
    sentence = f"{sentence}; {reason}" if reason else sentence
    for name, setting in list(reading.draft.engine.items()):
        if setting.value is not False or setting.written is not False or setting.place is None:
            continue
        declared = Catalogue.at(reading.vllm).engine.get(name)
        if declared is None or declared.default is not False:
            reading.draft.lost.append(Lost(name, False, setting.place, Loss.FALSE_DROPPED, sentence, certain))
            reading.draft.engine[name] = replace(setting, value=None if certain else Unknown(sentence), note=sentence)


def _possible(reading: "Reading") -> tuple[list[Mapping[str, Any]], str]:
    """Return the entries that may decide, and why it is open which of them does."""
    possible, reason = list[Mapping[str, Any]](), ""
    for entry in reading.spec.declared.get("falses", ()):
        truth = reading.holds(entry.get("if"))
        if truth is False:
            continue
        possible.append(entry)
        if truth is True:
            break
        reason = reason or truth.reason
    doubts = [reading.code.is_gone(entry.get("at", {})) for entry in possible]
    arrives = {"arrives" in entry for entry in possible}
    return possible, next(filter(None, doubts), reason if len(arrives) > 1 else "")
