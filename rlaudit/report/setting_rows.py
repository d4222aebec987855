"""The settings of one config, side by side: as written, and as each version will run them."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from rlaudit.inspection.inspect import shown_path
from rlaudit.report.parts.inspection import Group, Location
from rlaudit.report.parts.inspection import Setting as ReportedSetting
from rlaudit.rules.audit.audit import Audit, Side, as_json
from rlaudit.settings.rollout_config import NAMED_BY_EVERY_DIALECT, Origin, Setting
from rlaudit.unknown import Unknown
from rlaudit.vllm.moved import WHY
from rlaudit.vllm.removed import removed
from rlaudit.vllm.resolve import resolution_rules


def setting_rows(audit: Audit, number: int) -> Iterator[ReportedSetting]:
    """Yield the rows of the report's `settings` for one config, by its number.

    First what the file or the framework sets, then what vLLM itself decides differently in the two versions.
    """
    settings = {**audit.before.config.engine, **audit.after.config.engine}
    if audit.migrates:
        # What the old release reported of its own choices is compared with those of the new one, below.
        settings = {name: setting for name, setting in settings.items() if not _is_reported(setting)}
    for name, setting in settings.items():
        yield _engine_row(audit, number, name, setting)
    if audit.migrates:
        for name in _decided_by_vllm(audit):
            if name not in settings and not audit.only_reported(name):
                row = _engine_row(audit, number, name, None)
                if row.moves and row.origin == Origin.ENGINE:
                    yield row
    kept: dict[Group, str] = {
        "sampling": "sampling", "environment": "environment", "trainer": "trainer", "framework": "options",
    }  # fmt: skip
    for group, field in kept.items():
        before: Mapping[str, Setting] = getattr(audit.before.config, field)
        after: Mapping[str, Setting] = getattr(audit.after.config, field)
        for name in {**before, **after}:
            row = _row(number, group, name, before.get(name), after.get(name), after.get(name) or before[name])
            yield _as_read(audit, row) if group == "environment" else row
    for model in filter(None, [audit.config.model]):
        yield _row(number, "model", model.name, audit.before.config.model, model, model)


def _is_reported(setting: Setting) -> bool:
    return setting.origin is Origin.ENGINE and setting.written is None


def _decided_by_vllm(audit: Audit) -> list[str]:
    """Return the names of values that vLLM decides and that may move, those that matter most for logprobs first.

    An argument that only the newer release has is listed if a resolution rule decides its value. A config object in
    place of nothing is no move.
    """
    before, after = audit.before.catalogue.engine, audit.after.catalogue.engine
    declared = [name for name in after if name in before and not (after[name].config or before[name].config)]
    names = dict.fromkeys((*resolution_rules(), *declared))
    order = {name: number for number, name in enumerate(WHY)}
    return sorted(
        (name for name in names if name not in NAMED_BY_EVERY_DIALECT), key=lambda name: order.get(name, len(order))
    )


def _engine_row(audit: Audit, number: int, name: str, setting: Setting | None) -> ReportedSetting:
    before, after = _arriving(audit.before, name), _arriving(audit.after, name)
    row = _row(number, "engine", name, before, after, setting or after)
    if _is_absent(audit.before, name):
        row = replace(row, effective_from={"absent": f"vLLM {audit.before.version} has no {name}"})
    if _is_absent(audit.after, name):
        row = replace(row, effective_to={"absent": f"vLLM {audit.after.version} has no {name}"})
    if setting is None:
        return row
    moves = audit.migrates and row.effective_from != row.effective_to
    return replace(row, moves=moves, note=after.note or setting.note)


def _as_read(audit: Audit, row: ReportedSetting) -> ReportedSetting:
    """Return a variable's row, with the releases that do not read it any more."""
    name = row.name
    is_gone_before = removed("variable", name, audit.before.version) is not None
    if is_gone_before:
        row = replace(row, effective_from={"absent": f"vLLM {audit.before.version} does not read {name}"})
    if removed("variable", name, audit.after.version) is not None:
        now = {"absent": f"vLLM {audit.after.version} does not read {name}"}
        row = replace(row, effective_to=now, moves=audit.migrates and not is_gone_before)
    # What vLLM sets in its own process is not a user's setting that could be lost.
    return replace(row, moves=row.moves and row.origin != Origin.ENGINE)


def _is_absent(side: Side, name: str) -> bool:
    return not side.exists(name) and name not in resolution_rules() and name not in side.catalogue.cli.values()


def _arriving(side: Side, name: str) -> Setting:
    """Return a setting as the engine runs it; an option of the API server as it was written."""
    setting = side.config.engine.get(name)
    of_server = name in side.catalogue.cli.values() and name not in side.catalogue.engine
    return setting if setting is not None and of_server else side.engine(name)


def _row(
    number: int, group: Group, name: str, before: Setting | None, after: Setting | None, setting: Setting
) -> ReportedSetting:
    old = before.value if before is not None else None
    new = after.value if after is not None else None
    place = setting.place
    facts = [value.fact for value in (new, old) if isinstance(value, Unknown)]
    is_written = setting.origin in {Origin.FILE, Origin.OVERRIDE} or place is not None
    return ReportedSetting(
        config=number,
        group=group,
        name=name,
        written=as_json(setting.written) if is_written else None,
        effective_from=as_json(old),
        effective_to=as_json(new),
        origin=after.origin if after is not None else setting.origin,
        moves=_moves(old, new),
        note=setting.note,
        location=None
        if place is None
        else Location(path=shown_path(place.path), line=place.line, column=place.column, setting=place.setting),
        open_because=facts[0] if facts else None,
    )


def _moves(old: Any, new: Any) -> bool:
    """Return whether a value moves. Two unknown values do not: neither is seen."""
    if isinstance(old, Unknown) and isinstance(new, Unknown):
        return False
    return bool((as_json(old) or _empty(old)) != (as_json(new) or _empty(new)))


def _empty(value: Any) -> Any:
    """Return false and 0 unchanged, else None: releases write nothing as None, an empty text or an empty mapping."""
    return value if value is False or value == 0 else None
