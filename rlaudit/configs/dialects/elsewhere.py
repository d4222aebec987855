"""Sections that another file decides: this one says nothing about them, or nothing that counts.

    elsewhere:
      engine: {if: vllm_mode == server, because: the server is started by another command, lost: not passed}
      sampling: {if: call == server, because: the trainer samples}

Values of the framework's code are not taken then; those that the file writes are, unless they are `lost`, and open if
it is not known whether the section is elsewhere.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlaudit.configs.dialects.clause import LOSSES, Clause, clauses
from rlaudit.configs.dialects.condition import Truth
from rlaudit.configs.elsewhere import Elsewhere
from rlaudit.settings.rollout_config import Lost, RolloutConfig
from rlaudit.unknown import Unknown

if TYPE_CHECKING:
    from rlaudit.configs.dialects.reading import Reading

_NAMES = {"engine": "engine argument", "sampling": "sampling parameter"}


def with_elsewhere(config: RolloutConfig, reading: "Reading") -> RolloutConfig:
    """Return a config with every section that another file decides left open."""
    for kind in reading.spec.declared.get("elsewhere", {}):
        entry, truth = entry_of(reading, kind)
        if entry is None or isinstance(getattr(config, kind), Elsewhere):
            continue
        reason = _reason(entry, truth)
        is_kept = "lost" not in entry or isinstance(truth, Unknown)
        kept = {
            name: setting for name, setting in getattr(config, kind).items()
            if setting.place is not None and is_kept
        }  # fmt: skip
        sentence = f"no {_NAMES[kind]} was seen, because {reason}"
        section: Any = Elsewhere(reason, kept, sentence, truth.hangs_on if isinstance(truth, Unknown) else "")
        config = replace(config, **{kind: section}, not_seen=(*config.not_seen, sentence))
    return config


def entry_of(reading: "Reading", kind: str) -> tuple[Clause | None, Truth]:
    """Return the entry by which another file decides a section, or may; None if this file decides it."""
    for entry in clauses(reading.spec.declared.get("elsewhere", {}).get(kind, [])):
        truth = reading.holds(entry.get("if"))
        if truth is not False:
            return entry, truth
    return None, False


def _reason(entry: Clause, truth: Truth) -> str:
    if not isinstance(truth, Unknown):
        return str(entry["because"])
    return f"perhaps {entry['because']}; {truth.reason}"


def lose_elsewhere(reading: "Reading", kind: str, losses: int) -> None:
    """Mark as lost what is written in a section that another file decides. losses: how many the draft had before."""
    entry, truth = entry_of(reading, kind)
    if entry is None or "lost" not in entry:
        return
    draft, loss = reading.draft, LOSSES[entry["lost"]]
    if isinstance(truth, Unknown):
        for name, setting in getattr(draft, kind).items():
            if setting.place is not None and setting.known:
                reason = f"the value {setting.value} may have no effect; {_reason(entry, truth)}"
                getattr(draft, kind)[name] = replace(
                    setting, value=Unknown(reason, hangs_on=truth.hangs_on), note=reason
                )
        return
    reason = f"{_reason(entry, truth)}; write it there"
    lost = [*draft.lost[losses:], *(setting for setting in getattr(draft, kind).values() if setting.place is not None)]
    draft.lost[losses:] = [Lost(key.name, key.written, key.place, loss, reason) for key in lost]
