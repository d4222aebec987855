"""Any encoding of standard output takes any text: what it lacks is written as its number, as each format spells it."""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from rlaudit.report.rendering import formats

METRIC = "奖励é"
FORMATS = sorted(file.stem for file in Path(formats.__path__[0]).glob("[a-z]*.py"))
NUMBERS = {"html": "&#22870;", "text": "\\u5956"}


def curves(folder: Path, report_format: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    rows = "".join(f"{step},{step}.{5 + step % 3},0.01\n" for step in range(30))
    for name in ("a.csv", "b.csv"):
        (folder / name).write_text(f"step,{METRIC},k3\n{rows}", encoding="utf-8")
    words = ["curves", "a.csv", "b.csv", "--metric", METRIC, "--output", report_format]
    return subprocess.run(
        [sys.executable, "-m", "rlaudit", *words],
        check=False,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
    )


@pytest.mark.parametrize("report_format", FORMATS)
def test_every_format_goes_to_an_output_in_latin_1(tmp_path: Path, report_format: str) -> None:
    done = curves(tmp_path, report_format, PYTHONIOENCODING="latin-1")
    assert done.returncode == 0, done.stderr
    written = done.stdout.decode("latin-1")
    if report_format in ("json", "sarif"):
        assert json.loads(written)
    elif report_format == "junit":
        assert ET.fromstring(done.stdout).tag == "testsuites"
    elif report_format in ("text", "html"):
        assert NUMBERS[report_format] in written


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "cp1252:strict"},
        {"PYTHONIOENCODING": "utf-16"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=lambda environment: next(iter(environment.values())),
)
def test_every_encoding_takes_a_report(tmp_path: Path, environment: dict[str, str]) -> None:
    done = curves(tmp_path, "text", **environment)
    # An argument in another encoding than the locale's is no metric of the log: not finished.
    assert done.returncode == (3 if "LC_ALL" in environment else 0), done.stderr
    assert done.stdout


def test_a_report_in_a_file_is_utf_8_whatever_the_output_is(tmp_path: Path) -> None:
    assert curves(tmp_path, "text:report.txt", PYTHONIOENCODING="ascii").returncode == 0
    assert METRIC in (tmp_path / "report.txt").read_text(encoding="utf-8")
