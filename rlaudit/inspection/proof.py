"""The proof that a fix keeps what runs today: the fixed file, read and resolved again, against the file as it was.

Everything that the fix writes, or that vLLM decides otherwise because of it, must be what the release before the
migration runs with; all else, of every engine in the file, must be as it was. An unknown value proves nothing.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rlaudit.inspection.inspect_file import InspectedFile
from rlaudit.rules.audit.audit import Side
from rlaudit.unknown import Unknown
from rlaudit.vllm.renamed import COMPILATION, predecessors, renamed_keys, renamed_value, translated
from rlaudit.vllm.resolve import object_of, resolution_rules

# Arguments whose meaning depends on the release -> the resolved value that is compared in their place.
JUDGED_BY = {"logprobs_mode": "logprobs_semantics"}
_MISSING: Any = object()


def broken_promise(now: InspectedFile, later: InspectedFile) -> str | None:
    """Return a clause with the first thing that would not be as it runs today; None if the fix keeps everything.

    now, later: the file before and after the fix. The configs of `later` carry what runs today as their `before`.
    """
    for old, new in zip(now.configs, later.configs, strict=True):
        if old.framework.name != new.framework.name:
            return f"the file would be read as {new.framework.title}"
        broken = next(_broken(old.audit.after, new.audit.after, new.audit.before), None)
        if broken is not None:
            return broken
    return None


def _broken(old: Side, new: Side, today: Side) -> Iterator[str]:
    for kind in ("sampling", "environment", "trainer"):
        was, would_be = getattr(old.config, kind), getattr(new.config, kind)
        for name in dict.fromkeys([*was, *would_be]):
            if name not in was or name not in would_be or not _stays(was[name].value, would_be[name].value):
                yield f"{name} would change with it"
    losses = {(lost.name, lost.loss) for lost in old.config.lost}
    yield from (f"{lost.name} would have no effect" for lost in new.config.lost if (lost.name, lost.loss) not in losses)
    for name in dict.fromkeys([*resolution_rules(), *new.catalogue.engine]):
        touched = old.resolution.given(name) != new.resolution.given(name)
        if (touched or old.value(name) != new.value(name)) and name not in JUDGED_BY:
            yield from _moved(name, old, new, today)


def _moved(name: str, old: Side, new: Side, today: Side) -> Iterator[str]:
    """Yield why a value that the fix moves breaks the promise."""
    value = new.value(name)
    if name == COMPILATION:
        yield from _moved_keys(old, new, today)
        return
    runs = _runs_today(name, today)
    if isinstance(runs, Unknown):
        yield f"what {name} is today is not known: {runs.reason}"
    elif isinstance(value, Unknown):
        yield f"what {name} would be is not known: {value.reason}"
    elif not _have_same_effect(runs, value):
        yield f"{name} is {_in_words(runs)} today and would be {_in_words(value)}"


def _runs_today(name: str, today: Side) -> Any:
    """Return today's value in the words of the release after the migration; None if there was none."""
    if today.exists(name) or name in resolution_rules():
        return renamed_value(name, today.value(name))
    for old in predecessors(name):
        if today.resolution.given(old) is not None:
            return translated(old, today.value(old))
    return None


def _moved_keys(old: Side, new: Side, today: Side) -> Iterator[str]:
    """Yield why a key of the compilation config breaks the promise: it must keep its written value, or vLLM's own."""
    was, would_be, written = (object_of(side.resolution.given(COMPILATION)) for side in (old, new, today))
    was, would_be = _leaves(was), _leaves(would_be)
    gone = [key for key in _leaves(written) if f"{COMPILATION}.{key}" not in new.catalogue.nested]
    runs = _leaves(renamed_keys(written, gone, new.catalogue.nested) or {})
    for key in dict.fromkeys([*was, *would_be]):
        if was.get(key, _MISSING) == would_be.get(key, _MISSING) or (key not in would_be and key in gone):
            continue
        name = key.rpartition(".")[2]
        value = runs[key] if key in runs else today.value(name) if name in resolution_rules() else None
        if isinstance(value, Unknown) or not _have_same_effect(value, would_be.get(key)):
            yield f"{COMPILATION}.{key} is {_in_words(value)} today and would be {_in_words(would_be.get(key))}"


def _leaves(written: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    leaves: dict[str, Any] = {}
    for key, value in written.items():
        leaves |= _leaves(value, f"{prefix}{key}.") if isinstance(value, dict) and value else {f"{prefix}{key}": value}
    return leaves


def _have_same_effect(today: Any, value: Any) -> bool:
    """Return whether two values have the same effect: a missing one behaves as a switch that is off."""
    return bool(today == value) or (today is None and value is False) or (today is False and value is None)


def _stays(was: Any, would_be: Any) -> bool:
    """Return whether a value stays. Lines in the reason of an unknown one do not count: an edit moves them."""
    if isinstance(was, Unknown) and isinstance(would_be, Unknown):
        return re.sub(r"\d+", "", was.reason) == re.sub(r"\d+", "", would_be.reason)
    return bool(was == would_be)


def _in_words(value: Any) -> str:
    return "not there" if value is None else value.reason if isinstance(value, Unknown) else str(value)
