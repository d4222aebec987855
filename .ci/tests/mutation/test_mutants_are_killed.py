import subprocess
import sys
from pathlib import Path

import pytest
from mutation.mutants import mutants_of, planted

TOY = """
LEAST = 3


def is_far(distance: float) -> bool:
    return distance > LEAST and not distance < 0


def title(words: int) -> str:
    return "=" * (words + 1)
"""
TESTS = """
from toy.limits import is_far, title


def test_what_is_far():
    assert is_far(3.5) and not is_far(3) and title(2)
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    for name, text in {"toy/__init__.py": "", "toy/limits.py": TOY, "tests/test_limits.py": TESTS}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_each_decision_is_turned_once_and_annotations_are_none(toy: Path) -> None:
    changes = [(mutant.before, mutant.after) for mutant in mutants_of(toy / "toy/limits.py")]
    assert ("distance > LEAST", "distance >= LEAST") in changes
    assert ("3", "4") in changes
    assert ("distance < 0", "distance < 1") in changes
    assert len(changes) == len(set(changes)) == 10


def test_a_planted_mutant_decides_otherwise_and_the_file_stays(toy: Path) -> None:
    path = toy / "toy/limits.py"
    (mutant,) = (one for one in mutants_of(path) if one.after == "distance >= LEAST")
    module: dict[str, object] = {}
    exec(compile(planted(mutant), str(path), "exec"), module)
    assert module["is_far"](3)  # type: ignore[operator]
    assert path.read_text(encoding="utf-8") == TOY


def test_a_mutant_that_a_test_sees_is_killed_and_one_in_a_mere_text_survives(toy: Path) -> None:
    words = ["toy", "--root", toy, "--tests", "tests", "--cache", toy / "cache", "--draw", "99"]
    command = [sys.executable, "-m", "mutation", *map(str, words)]
    run = subprocess.run(command, cwd=Path(__file__).parents[2], check=True, stdout=subprocess.PIPE, text=True)
    survivors = run.stdout[run.stdout.index("run under coverage") :]
    assert "toy/limits.py:10  survived, 1 tests\n    words + 1\n    words - 1" in survivors
    assert "distance > LEAST\n    distance >= LEAST" not in survivors
    assert "toy: 6 of 10 killed, 0 not run by a test" in survivors
