import io
import time

import pytest
from rich.console import Console

from rlaudit.engines.cells.launch import Outcome
from rlaudit.laboratory.runner import tokens_per_second
from rlaudit.text.progress import Progress, Steps, last_line


def test_piped_progress_is_plain_lines_with_the_time(capsys):
    progress = Progress()
    with progress.step("1/3 arms"):
        progress.update("generate")
    progress.note("  ok  1/3 [arms]\x1b[2J")
    said = capsys.readouterr().err
    assert "generate" not in said
    time.strptime(said[:8], "%H:%M:%S")
    assert said[8:] == "   ok  1/3 [arms]\\x1b[2J\n"


def test_quiet_says_nothing(capsys):
    progress = Progress(quiet=True)
    with progress.step("1/3 arms"):
        progress.note("ok")
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_the_step_its_place_and_the_last_line_of_its_log(tmp_path, monkeypatch):
    log = tmp_path / "log.txt"
    log.write_text("first\nINFO loading \x1b[31mweights\n\n")
    out = io.StringIO()
    progress = Progress()
    monkeypatch.setattr(progress, "_console", Console(file=out, force_terminal=True, width=60))
    progress.expect(4)
    progress.done(30.0, 120.0)
    with progress.step("2/4 migration: candidate", log):
        pass
    said = out.getvalue()
    assert "2/4 migration: candidate" in said
    assert "1 of 4 done" in said
    assert "log: INFO loading \\x1b[31mweights" in said


def test_no_line_of_a_terminal_is_wider_than_it(tmp_path, monkeypatch):
    log = tmp_path / "log.txt"
    log.write_text("x" * 5000)
    out = io.StringIO()
    progress = Progress()
    monkeypatch.setattr(progress, "_console", Console(file=out, force_terminal=True, width=40, color_system=None))
    with progress.step("a title that is far too long for this terminal of forty columns", log):
        pass
    assert all(len(line) <= 48 for line in out.getvalue().replace("\r", "\n").split("\n") if "log:" in line)
    assert "…" in out.getvalue()


def test_time_left_is_that_of_steps_that_had_to_be_run():
    steps = Steps(10)
    steps.done(None, None)
    steps.done(30.0, 100.0)
    steps.done(50.0, None)
    assert "3 of 10 done" in steps.status()
    assert "about 4.7 min left" in steps.status()
    assert "100 tokens/s in the last arm" in steps.status()
    assert Steps(0).status() == ""


def test_the_last_line_of_a_log_is_the_last_that_says_something(tmp_path):
    log = tmp_path / "log.txt"
    assert last_line(log) == ""
    log.write_bytes(b"y" * 10_000 + b"\nloading 10%\rloading 90%\r\n \n")
    assert last_line(log) == "loading 90%"


@pytest.mark.parametrize("result, rate", [({"generated_tokens": 100, "generate_seconds": 4.0}, 25.0), ({}, None)])
def test_the_rate_is_what_the_engine_generated_in_its_time(result, rate):
    assert tokens_per_second(Outcome("ok", result, None, {})) == rate
