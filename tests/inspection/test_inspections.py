"""Every row of inspections.yaml: what `rlaudit inspect` says of a file.

    SENTENCE:
      - every: {what all rows below have}
      - {file: run.sh, text: ..., says: [words], rules: {NAME: SEVERITY}, ...}

A row's `file`, and the `files` beside it, lie in a repository. `words` are what is inspected, if not the file; `from`
and `to` are 0.8.5 and 0.18.1 unless they are written, and null for none. `says` and `never` are words that the report
has, or has not. `rules` find something, of a severity if it is named; `silent` ones find nothing but notes. `engines`
are today's of every config; `settings` are what is written, `open` if it is not known, `gone` if it is not there, and
no others with `all`. `lines` are the value and line of a framework's own switch. `writes` is a file afterwards, or
words that it has then, `writes_not` words that it has not. A row that is `like` another one has `alike` what is said of
both; settings that are not among it differ.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from reading import put
from yaml_tables import table_of

from rlaudit.cli.app import run

Row = dict[str, Any]
TABLE = table_of(__file__)
ROWS = [
    pytest.param(rows[0].get("every", {}) | row, id=f"{sentence} {number}")
    for sentence, rows in TABLE.items()
    for number, row in enumerate((one for one in rows if "every" not in one), 1)
]


class Inspected:
    """One inspection in a new repository: the exit code, what is printed in one line, and the report."""

    def __init__(self, folder: Path, row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
        own = {row["file"]: row["text"]} if "file" in row else {}
        put(folder, {".git/HEAD": "", **row.get("files", {}), **own})
        monkeypatch.chdir(folder)
        words = ["inspect", *row.get("words", own), *row.get("options", ())]
        for side, release in (("from", "0.8.5"), ("to", "0.18.1")):
            words += [f"--{side}", row.get(side, release)] if row.get(side, release) else []
        self.code = run([*words, "--output", f"json:{folder}/out", "--output", f"text:{folder}/text"])
        self.text = (folder / "text").read_text() if (folder / "text").is_file() else ""
        self.report = json.loads((folder / "out").read_text()) if (folder / "out").is_file() else {}

    def of(self, name: str) -> object:
        """What can be compared between two inspections."""
        messages = [one["message"] for one in self.report["findings"]]
        return {"engines": self.engines(), "messages": messages, "settings": self.report["settings"]}[name]

    def findings(self) -> dict[str, str]:
        """The severity of each rule that finds something."""
        return {one["rule"]: one["severity"] for one in self.report["findings"]}

    def engines(self) -> list[str | None]:
        return [config["engine"]["from"] for config in self.report["configs"]]

    def settings(self) -> Row:
        values = {row["name"]: row["effective_to"] for row in self.report["settings"] if row["written"] is not None}
        return {name: "open" if isinstance(value, dict) else value for name, value in values.items()}

    def lines(self) -> Row:
        rows = [row for row in self.report["settings"] if row["group"] == "framework" and row["location"] is not None]
        return {row["name"]: [row["written"], row["location"]["line"]] for row in rows}


def words_of(written: str | list[str], text: str) -> bool:
    return text == written if isinstance(written, str) else all(word in text for word in written)


@pytest.mark.parametrize("row", ROWS)
def test_an_inspection_says_what_the_table_says(
    row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = Inspected(tmp_path / "own", row, monkeypatch)
    said = " ".join(f"{found.text} {capsys.readouterr().err}".split())
    assert "Traceback" not in said and found.code in ({row["code"]} if "code" in row else {0, 1, 2, 3})
    assert [words for words in row.get("says", ()) if " ".join(words.split()) not in said] == [], said
    assert [words for words in row.get("never", ()) if words in said] == [], said
    if "rules" in row or "silent" in row:
        severities = found.findings()
        wanted = row.get("rules", {})
        assert {name: severities[name] if wanted[name] else None for name in wanted} == wanted
        assert [name for name in row.get("silent", ()) if severities.get(name, "note") != "note"] == []
    if "today" in row:
        assert [one.get("so_today") for one in found.report["findings"] if one["rule"] in row["rules"]] == [
            row["today"]
        ]
    if "engines" in row:
        assert found.engines() == row["engines"]
    if "configs" in row:
        paths = [config["path"] for config in found.report["configs"]]
        assert row["configs"] in (len(paths), paths)
    if "platform" in row:
        assert found.report["inspection"]["platform"] == row["platform"]
    if "settings" in row:
        settings = found.settings()
        named = settings if row.get("all") else {name: settings.get(name, "gone") for name in row["settings"]}
        assert named == row["settings"]
    if "lines" in row:
        assert row["lines"].items() <= found.lines().items()
    for name, written in row.get("writes", {}).items():
        assert words_of(written, Path(name).read_text()), Path(name).read_text()
    for name, words in row.get("writes_not", {}).items():
        assert [word for word in words if word in Path(name).read_text()] == []
    if "like" in row:
        other = Inspected(tmp_path / "other", {**row, **row["like"]}, monkeypatch)
        assert [
            name for name in ("engines", "messages") if name in row["alike"] and found.of(name) != other.of(name)
        ] == []
        assert (found.of("settings") == other.of("settings")) is ("settings" in row["alike"])
