"""Tables of what is read of configs: `readings/FRAMEWORK.yaml`.

    SENTENCE:
      - {as: NAME, file: run.yaml, text: ..., vllm: 0.18.1, engine: {dtype: open, ...}, sampling: {...}, ...}
      - {of: NAME, with: {OLD: NEW}, files: {PATH: TEXT}, engine: {seed: gone}}

The first row says everything that is read of its config; every other row, `of` an earlier one, only what differs: it
replaces each OLD of the text, once, or has a text of its own, adds files, and is read in another way. `open` is a value
that is not known, `gone` a setting that is not there. `lost` are keys without effect, `perhaps` if not every release
passes them over. `fixes` are what is written for an argument; null if nothing can be. `says` are words of the sentences
on what was not seen. With several `vllm` each reads the same. A row that `reads: none` holds no rollout of vLLM. Beside
the few lines of a copy that a row gives, whatever it does not say may be open.
"""

from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from packaging.version import Version
from reading import put, source_of
from yaml_tables import yaml_table

from rlaudit.configs.dialects.declared import declared
from rlaudit.configs.elsewhere import Elsewhere
from rlaudit.configs.source import Source
from rlaudit.settings.rollout_config import RolloutConfig
from rlaudit.unknown import Unknown

READINGS = Path(__file__).with_name("readings")
OPEN, GONE = "open", "gone"
SECTIONS = ("engine", "sampling", "environment", "trainer", "objective", "lost", "fixes")
NOTHING: dict[str, Any] = {"files": {}, "parts": [], **{name: {} for name in SECTIONS}}
FIXES = {
    "enforce_eager": True, "async_scheduling": False, "logprobs_mode": "processed_logprobs",
    "enable_prefix_caching": False, "max_num_seqs": 64, "generation_config": "vllm",
}  # fmt: skip
Table = dict[str, Any]


def tables() -> dict[str, Table]:
    """The tables by framework."""
    return {path.stem: yaml_table(path) for path in sorted(READINGS.glob("*.yaml"))}


def rows(table: Table) -> Iterator[tuple[str, Table]]:
    """Every row with what it takes over from the one that it is `of`, by its sentence and number."""
    named: dict[str, Table] = {}
    for sentence, written in table.items():
        for number, row in enumerate(written, 1):
            whole = over(named.get(row.get("of"), NOTHING), row)
            if "as" in row:
                named[row["as"]] = whole
            yield f"{sentence} {number}", whole


def over(base: Table, row: Table) -> Table:
    """A row over the one that it is `of`."""
    text: str = row.get("text", base.get("text"))
    for old, new in row.get("with", {}).items():
        assert text.count(old) == 1, f"{old!r} is not once in the text"
        text = text.replace(old, new)
    files = {**base["files"], **row.get("files", {})}
    whole = {**base, "reads": "one", "says": [], **row, "text": text, "files": files, "own": row}
    for name in SECTIONS:
        both = {**base[name], **row.get(name, {})}
        whole[name] = {key: value for key, value in both.items() if value != GONE}
    return whole


def expected(row: Table, found: Table) -> Table:
    """What a row says of what is found."""
    says = {name: row.get(name) for name in found}
    if not row["files"]:
        return says
    for name in SECTIONS:
        open_ones = {key for key, value in found[name].items() if value == OPEN} - row["own"].get(name, {}).keys()
        says[name] = {key: OPEN if key in open_ones else value for key, value in says[name].items()}
    return says


def read(framework: str, row: Table, vllm: str, folder: Path) -> tuple[Source, tuple[RolloutConfig, ...]]:
    """What a dialect reads of a row's file, and the file."""
    put(folder, {".git/HEAD": "", **row["files"], row["file"]: row["text"]})
    source = source_of(row["text"], str(folder / row["file"]))
    dialect = declared()[framework]
    return source, dialect.read(source, Version(vllm)) if dialect.recognise(source) else ()


def shown(config: RolloutConfig) -> Table:
    """A config in the words of a table."""
    objective = {name: one for name, one in config.options.items() if one.place is None}
    settings = {name: getattr(config, name) for name in SECTIONS[:4]} | {"objective": objective}
    found: Table = {name: {key: plain(one.value) for key, one in kept.items()} for name, kept in settings.items()}
    for name, kept in settings.items():
        if isinstance(kept, Elsewhere):
            found[name]["others"] = OPEN
    perhaps = {one.name: "" if one.certain else "perhaps " for one in config.lost}
    found["lost"] = {one.name: f"{perhaps[one.name]}{one.loss}" for one in config.lost}
    found["fixes"] = {name: written(config, name, value) for name, value in FIXES.items()}
    span = config.releases
    found["releases"] = None if span is None else f"{span.oldest} to {span.newest or 'now'}"
    found["kind"] = "offline" if config.offline else "bare" if config.bare else "server"
    found["parts"] = sorted({Path(part).name for part in config.parts})
    found["model"] = None if config.model is None else plain(config.model.value)
    return found | ({"pin": "refused"} if config.refused_pin else {"pin": "unused"} if config.unused_pin else {})


def written(config: RolloutConfig, name: str, value: Any) -> str | None:
    """What a fix writes, in short."""
    edits = config.write(name, value)
    if not edits:
        return None
    return " ".join("".join(edit.replacement for edit in edits).replace("\\", " ").split())


def plain(value: Any) -> Any:
    if isinstance(value, Unknown):
        return OPEN
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value.value if isinstance(value, Enum) else value
