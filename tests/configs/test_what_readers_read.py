"""Every row of what_readers_read.yaml: what a reader makes of a file.

    SENTENCE:
      - every: {what all rows below have}
      - {reader: serve, file: run.sh, text: ..., vllm: 0.18.1, engine: {seed: 1}, ...}

`reader` is one of plain vLLM, or a framework; the file, and the `files` beside it, lie in a repository. `reads` is how
many configs it holds, one unless it is written, and the rest is said of the `nth`. `engine`, `sampling`, `environment`,
`trainer` and `options` are values: `open` if they are not known, `gone` if they are not there; `only` names those
sections that have nothing else. `origins` is whose a value of the engine is, and `why` words of the reason of an open
one. `lost` are keys without effect. `places` are the line and the words of a value. `says` are words of the sentences
on what was not seen, `never` others. `written` is a value that is written for an argument, and the text after that,
which may be left out; null if it cannot be. With several `vllm` each reads the same.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version
from reading import put
from yaml_tables import table_of

from rlaudit.configs.dialects.declared import declared
from rlaudit.configs.readers import config_file, mapping, python, serve, server_of_a_program, server_report
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.spelling import apply
from rlaudit.settings.rollout_config import RolloutConfig
from rlaudit.unknown import Unknown

Row = dict[str, Any]
OF_VLLM = (config_file, mapping, python, serve, server_of_a_program, server_report)
READERS = {module.__name__.rpartition(".")[2]: module.DIALECT for module in OF_VLLM} | dict(declared())
SECTIONS = ("engine", "sampling", "environment", "trainer", "options")
TABLE = table_of(__file__)
ROWS = [
    pytest.param(rows[0].get("every", {}) | row, id=f"{sentence} {number}")
    for sentence, rows in TABLE.items()
    for number, row in enumerate((one for one in rows if "every" not in one), 1)
]


def read(row: Row, text: str, vllm: str) -> tuple[RolloutConfig, ...]:
    put(Path(), {".git/HEAD": "", **row.get("files", {}), row["file"]: text})
    source, reader = Source(row["file"], text), READERS[row["reader"]]
    return reader.read(source, Version(vllm)) if reader.recognise(source) else ()


def plain(value: object) -> object:
    if isinstance(value, Unknown):
        return "open"
    return {name: plain(one) for name, one in value.items()} if isinstance(value, Mapping) else value


def of_section(config: RolloutConfig, section: str, wanted: Row) -> Row:
    """The values that a row names, and all others if it says that there are none."""
    settings = getattr(config, section)
    found = {name: settings.get(name) for name in [*wanted, *settings]}
    return {name: "gone" if one is None else plain(one.value) for name, one in found.items()}


@pytest.mark.parametrize("row", ROWS)
def test_a_reader_reads_what_the_table_says(row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for vllm in row["vllm"] if isinstance(row["vllm"], list) else [row["vllm"]]:
        configs = read(row, row["text"], vllm)
        assert len(configs) == row.get("reads", 1)
        if configs:
            says(configs[row.get("nth", 1) - 1], row, vllm)


def stands(config: RolloutConfig, row: Row, name: str) -> list[object]:
    """The line and the words of a value of the engine."""
    place = config.engine[name].place
    return [] if place is None else [place.line, row["text"][place.start : place.end]]


def says(config: RolloutConfig, row: Row, vllm: str) -> None:
    for section in SECTIONS:
        if section in row:
            found = of_section(config, section, row[section])
            named = found if section in row.get("only", ()) else {name: found[name] for name in row[section]}
            assert named == row[section], section
    if "lost" in row:
        assert {one.name: str(one.loss) for one in config.lost} == row["lost"]
    if "model" in row:
        assert (None if config.model is None else plain(config.model.value)) == row["model"]
    if "kind" in row:
        assert ("offline" if config.offline else "bare" if config.bare else "server") == row["kind"]
    if "parts" in row:
        assert sorted(map(str, config.parts)) == row["parts"]
    if "line" in row:
        assert config.place is not None and config.place.line == row["line"]
    if "updates" in row:
        assert [f"{one.place.path}:{one.place.line}" for one in config.lost_updates] == row["updates"]
    if "pin" in row:
        assert (config.refused_pin.where if config.refused_pin else None) == row["pin"]
    sentences = "; ".join(config.not_seen)
    assert [words for words in row.get("says", ()) if words not in sentences] == [], sentences
    assert [words for words in row.get("never", ()) if words in sentences] == []
    if "origins" in row:
        origins = {name: config.engine[name].origin for name in row["origins"] if name in config.engine}
        assert {name: str(origins.get(name, "engine")) for name in row["origins"]} == row["origins"]
    assert {name: stands(config, row, name) for name in row.get("places", {})} == row.get("places", {})
    values = {name: one.value for settings in (config.sampling, config.engine) for name, one in settings.items()}
    reasons = {name: str(values.get(name, config.engine.get(name))) for name in row.get("why", {})}
    assert {name: words for name, words in row.get("why", {}).items() if words not in reasons[name]} == {}, reasons
    for name, (value, *wanted) in row.get("written", {}).items():
        edits = config.write(name, value)
        after = None if edits is None else apply(row["text"], edits)
        assert after == (wanted[0] if wanted else after)
        if after is not None and value is not None:
            again = read(row, after, vllm)[row.get("nth", 1) - 1]
            assert again.engine[name].value == value
            assert apply(after, again.write(name, value) or ()) == after
