"""Sections that another file decides: this one says nothing about them, or nothing that counts.

    elsewhere:
      engine: {if: vllm_mode == server, because: the server is started by another command, lost: not passed}
      engine: {..., open: kept}         # if it is not known whether it is elsewhere, what is written is open, not lost
      engine: {..., keeps: [dtype]}     # arguments of the server that the framework's code decides all the same
      sampling: {if: call == server, because: the trainer samples}

Values of the framework's code are not taken then; those that the file writes are, unless they are `lost`.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlaudit.configs.elsewhere import Elsewhere
from rlaudit.dialects.clause import LOSSES, Said
from rlaudit.dialects.condition import Truth
from rlaudit.settings.rollout_config import Lost, RolloutConfig
from rlaudit.unknown import Unknown

if TYPE_CHECKING:
    from rlaudit.dialects.reading import Reading

_NAMES = {"engine": "engine argument", "sampling": "sampling parameter"}


def with_elsewhere(config: RolloutConfig, reading: "Reading") -> RolloutConfig:
    """Leave open every setting of a section that is not known."""
    for kind in reading.spec.said.get("elsewhere", {}):
        said, truth = entry_of(reading, kind)
        if said is None:
            continue
        reason = _reason(said, truth)
        is_kept = "lost" not in said or (isinstance(truth, Unknown) and "open" in said)
        known = {
            name: one for name, one in getattr(config, kind).items()
            if (one.place is not None and is_kept) or name in said.get("keeps", ())
        }  # fmt: skip
        sentence = f"every {_NAMES[kind]}: {reason}"
        section: Any = Elsewhere(reason, known, sentence)
        config = replace(config, **{kind: section}, not_seen=(*config.not_seen, sentence))
    return config


def entry_of(reading: "Reading", kind: str) -> tuple[Said | None, Truth]:
    """Return the entry by which a section is decided elsewhere, or may be; None if this file decides it."""
    entry = reading.spec.said.get("elsewhere", {}).get(kind, ())
    for said in entry if isinstance(entry, list | tuple) else (entry,):
        truth = reading.holds(said.get("if"))
        if truth is not False:
            return said, truth
    return None, False


def _reason(said: Said, truth: Truth) -> str:
    if not isinstance(truth, Unknown):
        return str(said["because"])
    return f"perhaps {said['because']}: {truth.reason}" if "open" in said else truth.reason


def lose_elsewhere(reading: "Reading", kind: str, losses: int) -> None:
    """Mark as lost what is written in a section that is decided elsewhere. losses: how many there were before it."""
    said, truth = entry_of(reading, kind)
    if said is None or "lost" not in said:
        return
    draft, loss, certain = reading.draft, LOSSES[said["lost"]], not isinstance(truth, Unknown)
    if "open" in said and not certain:
        for name, one in getattr(draft, kind).items():
            if one.place is not None and one.known:
                reason = f"{one.value} or without effect: {_reason(said, truth)}"
                getattr(draft, kind)[name] = replace(one, value=Unknown(reason), note=reason)
        return
    reason = f"{_reason(said, truth)}: write it there"
    gone = [(one.name, one.written, one.place) for one in draft.lost[losses:]]
    gone += [(one.name, one.written, one.place) for one in getattr(draft, kind).values() if one.place is not None]
    draft.lost[losses:] = [Lost(name, written, place, loss, reason, certain) for name, written, place in gone]
