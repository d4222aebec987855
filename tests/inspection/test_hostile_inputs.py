"""Nothing fed to inspect breaks it, hangs it, or is changed by it."""

import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random

import guarded_inspection as hostile
import pytest
from hostile_inputs import Input, mutations, traps

from rlaudit.inspection import hand_over

MUTATED = 150
# Half a second to two each: large, and no other kind of trap than one of the rest.
SLOW = {"inherits-many.yaml", "documents.yaml", "many-commands.sh", "k8s.yaml", "xargs.sh", "the whole folder at once"}


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give up a command that computes or waits, as for a pipe, so long that no machine and no load explains it.

    Where a file without a config leads is searched among all the other traps, which are tried by themselves.
    """
    monkeypatch.setattr(hand_over, "MOST_SECONDS", 0.1)
    monkeypatch.setattr(hostile, "GIVEN_UP", 60.0)
    with hostile.guarded():
        yield


@pytest.mark.usefixtures("patience")
def test_no_trap_breaks_or_holds_up_an_inspection(tmp_path: Path) -> None:
    made = [one for one in traps(tmp_path) if one.kind not in SLOW]
    outcomes = [hostile.measured(one) for one in made]
    assert [(one.kind, one.problem) for one in outcomes if one.problem] == []
    codes = {one.kind: one.code for one in outcomes}
    assert {codes[kind] for kind in ("pipe.yaml", "zero.yaml", "loop.yaml", "socket.yaml", "zeros.yaml")} == {3}
    assert {codes[kind] for kind in ("utf16.yaml", "marks.yaml", "new\\nline.yaml")} <= {0, 1}


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("more", [(), ("--fix=unsafe",)], ids=["read", "fix"])
def test_mutated_configs_are_read_or_refused(tmp_path: Path, more: tuple[str, ...]) -> None:
    problems = []
    codes = set()
    seeds = hostile.seeds(hostile.examples())
    for number, (kind, suffix, data) in enumerate(mutations(seeds, MUTATED // 2, Random(len(more)))):
        path = tmp_path / f"{number}{suffix}"
        path.write_bytes(data)
        outcome = hostile.measured(Input(kind, (str(path),)), *more)
        codes.add(outcome.code)
        if outcome.problem and not (more and outcome.problem.startswith("changed")):
            problems.append((kind, path.name, outcome.problem))
    assert problems == []
    # Of 5,000 such files one in ten exits 0 and one in twenty 1: both among a few dozen would be left to chance.
    assert 3 in codes
    assert codes & {0, 1}


@pytest.mark.usefixtures("patience")
def test_the_watch_sees_a_change_a_crash_and_a_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("a: 1\n")
    one = Input("x", (str(path),))
    monkeypatch.setattr(hostile, "run", lambda _words: path.write_text("a: 2\n") * 0)
    assert "changed" in hostile.measured(one).problem
    monkeypatch.setattr(hostile, "run", lambda _words: 70)
    assert "exit code 70" in hostile.measured(one).problem
    with monkeypatch.context() as waiting:
        waiting.setattr(hostile, "WAITED", 0.01)
        waiting.setattr(hostile, "run", lambda _words: signal.pause())
        assert "given up" in hostile.measured(one).problem
    monkeypatch.setattr(hostile, "GIVEN_UP", 0.01)
    monkeypatch.setattr(hostile, "run", lambda _words: next(number for number in count() if number < 0))
    assert "given up" in hostile.measured(one).problem
