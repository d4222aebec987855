"""No input breaks a command: it ends with 0, 1, 2 or 3, without a traceback, in time, and what it reads stays as it is.

Each command is fed with what was sound once (SEEDS), and one that reads configs with a zoo of traps.
"""

import os
import pkgutil
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from random import Random

import guarded
import numpy as np
import pytest
from breaking import break_file, broken_text
from guarded import measured
from hostile_tables import honest_command
from laboratories import ONE_FACTOR, Laboratory
from traps import traps

from rlaudit.cli.app import run
from rlaudit.engines.cells.seal import SEAL, Damage, read_seal, write_seal
from rlaudit.inspection import hand_over
from rlaudit.laboratory.run_folder import CELL_FOLDERS, CELLS, PLAN, REPORT, TOKENS
from rlaudit.report.rendering import formats

EXAMPLES = Path(__file__).parents[2] / "examples"
CONFIGS = [
    path
    for path in sorted(EXAMPLES.glob("*/*/*"))
    if path.is_file() and path.name not in {"command.txt", "expected.txt", "report.json", "report.md"}
]
LOGS = sorted((EXAMPLES / "case-studies" / "pipelinerl-137-v0-to-v1").glob("*.log"))
SUFFIXES = (".yaml", ".yml", ".json", ".toml", ".py", ".sh", ".log", ".slurm", "")
VERSIONS = ("--from", "0.8.5", "--to", "0.18.1")
FORMATS = sorted(module.name for module in pkgutil.iter_modules(formats.__path__))
SECONDS_OF_A_CONFIG = 2.0
SHARE_SEALED_AGAIN = 0.8
USED = "tokens have scores of the run's own trainer"


@pytest.fixture(scope="module")
def whole(shared_laboratory: Laboratory) -> Path:
    """A finished run of one factor."""
    done = shared_laboratory.ablate(shared_laboratory.recipe(ONE_FACTOR))
    assert done.exit_code == 1, done.stderr
    return done.folder


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give up what computes or waits, as for a pipe, so long that no machine and no load explains it.

    Where a file without a config leads is searched among all the other traps, which are tried by themselves.
    """
    monkeypatch.setattr(hand_over, "MOST_SECONDS", 0.1)
    with guarded.guarded():
        yield


def a_config(folder: Path, random: Random, _whole: Path, *more: str) -> list[str]:
    seed = random.choice(CONFIGS)
    path = folder / f"mutated{seed.suffix if random.random() < 0.9 else random.choice(SUFFIXES)}"
    path.write_bytes(broken_text(seed.read_bytes(), random, [one.read_bytes() for one in CONFIGS])[1])
    return ["inspect", *VERSIONS, *more, "--", str(path)]


def a_config_to_fix(folder: Path, random: Random, whole: Path) -> list[str]:
    return a_config(folder, random, whole, "--fix=unsafe")


def a_table(folder: Path, random: Random, _whole: Path) -> list[str]:
    words, paths = honest_command(folder, random)
    for _ in range(random.choice((0, 1, 1, 1, 2, 3, 6))):
        break_file(random.choice(paths), random)
    return words


def a_run(folder: Path, random: Random, whole: Path) -> list[str]:
    """A finished run of which one to six files are broken, most often under seals that are whole again."""
    run_dir = folder / "run"
    shutil.copytree(whole, run_dir, copy_function=os.link)
    for _ in range(random.choice((1, 1, 1, 2, 3, 6))):
        files = sorted(path for path in run_dir.rglob("*") if path.is_file())
        break_file(random.choice([*(run_dir / name for name in (REPORT, REPORT, PLAN, TOKENS)), *files]), random)
    if random.random() < SHARE_SEALED_AGAIN:
        seal_all_again(run_dir)
    looks = (("report", run_dir), ("report", run_dir / REPORT), ("diagnose", run_dir), ("compare", run_dir))
    command, place = random.choice(looks)
    arm = ("--arm", "candidate", "--quiet") if command == "compare" else ()
    outputs = (word for name in random.sample(FORMATS, 3) for word in ("--output", f"{name}:{folder / name}"))
    return [command, str(place), *arm, *outputs]


def seal_all_again(run_dir: Path) -> None:
    for cell in sorted((run_dir / CELL_FOLDERS).iterdir()):
        seal_again(cell)
    if (run_dir / CELLS).is_file():
        (run_dir / CELLS).unlink()
    seal_again(run_dir)


def seal_again(folder: Path) -> None:
    """A whole seal over what lies there now, as far as it can be sealed."""
    seal = read_seal(folder)
    if not isinstance(seal, Damage):
        (folder / SEAL).unlink()
        names = [name for name in seal.files if (folder / name).is_file() and not (folder / name).is_symlink()]
        write_seal(folder, seal.of, names)


def two_logs(folder: Path, random: Random, _whole: Path) -> list[str]:
    table = "step,k3,reward\n" + "".join(f"{step},0.0{step % 7},{step / 9}\n" for step in range(40))
    rows = "".join(f'{{"step": {step}, "k3": 0.0{step % 7}, "reward": {step / 9}}}\n' for step in range(40))
    texts = {".csv": table.encode(), ".jsonl": rows.encode(), ".log": random.choice(LOGS).read_bytes()}
    paths = []
    for name in ("reference", "candidate"):
        suffix = random.choice(list(texts))
        paths.append(folder / f"{name}{suffix}")
        paths[-1].write_bytes(texts[suffix])
    # A pipe is waited for: `curves <(gunzip -c a.gz) b.csv` reads one.
    broken = random.choice(paths)
    broken.write_bytes(broken_text(broken.read_bytes(), random, list(texts.values()))[1])
    return ["curves", *map(str, paths), *random.choice(((), ("--gate", "k3 < 1"), ("--metric", "k3")))]


# By command: what makes its files in a folder and gives its words, and how many times it is tried.
SEEDS: Mapping[str, tuple[Callable[[Path, Random, Path], list[str]], int]] = {
    "inspect": (a_config, 75),
    "inspect --fix": (a_config_to_fix, 75),
    "compare": (a_table, 16),
    # Its files have other names and bytes in each run, so a few tries may all be of no matter.
    "report, diagnose, compare of a run": (a_run, 24),
    "curves": (two_logs, 24),
}


@pytest.mark.parametrize("command", SEEDS)
def test_what_was_sound_once_is_used_or_refused(command: str, tmp_path: Path, whole: Path) -> None:
    make, times = SEEDS[command]
    outcomes = []
    for number in range(times):
        folder = tmp_path / str(number)
        folder.mkdir()
        words = make(folder, Random(number), whole)
        untouched = words[-1:] if command == "inspect" else []
        outcomes.append(measured(words, untouched, SECONDS_OF_A_CONFIG if "inspect" in command else guarded.GIVEN_UP))
        reports = [folder / name for name in FORMATS if f"{name}:{folder / name}" in words]
        assert outcomes[-1].code in {2, 3} or all(path.stat().st_size for path in reports), words
    assert [one for one in outcomes if one.problem] == []
    # Some are judged all the same, and some are not finished.
    codes = {one.code for one in outcomes}
    assert codes & {2, 3} and codes & {0, 1, 3}


def test_scores_without_a_number_for_every_token_are_not_used(
    tmp_path: Path, whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_dir = tmp_path / "run"
    shutil.copytree(whole, run_dir)
    words = ["compare", str(run_dir), "--arm", "candidate", "--quiet", "--output", "markdown"]
    assert run(words) == 1
    assert USED in capsys.readouterr().out
    for path in run_dir.glob("cells/*/scores.npz"):
        with np.load(path) as arrays:
            held = dict(arrays)
        np.savez(path, allow_pickle=False, **{**held, "offsets": held["offsets"][:-1]})
    seal_all_again(run_dir)
    assert run(words) == 1
    assert USED not in capsys.readouterr().out


def test_no_trap_breaks_or_holds_up_an_inspection(tmp_path: Path) -> None:
    made = traps(tmp_path)
    outcomes = {
        kind: measured(["inspect", *VERSIONS, "--", *paths], paths, SECONDS_OF_A_CONFIG) for kind, paths in made.items()
    }
    assert [(kind, one.problem) for kind, one in outcomes.items() if one.problem] == []
    codes = {kind: one.code for kind, one in outcomes.items()}
    assert {codes[kind] for kind in ("pipe.yaml", "zero.yaml", "loop.yaml", "socket.yaml", "zeros.yaml")} == {3}
    assert {codes[kind] for kind in ("utf16.yaml", "marks.yaml", "new\\nline.yaml")} <= {0, 1}


@pytest.mark.parametrize(
    ("does", "problem"),
    [
        (lambda path: path.write_text("a: 2\n") * 0, "changed"),
        (lambda _path: 70, "exit code 70"),
        (lambda _path: signal.pause(), "given up"),
        (lambda _path: next(number for number in count() if number < 0), "given up"),
    ],
    ids=["a change", "a crash", "a wait", "a hang"],
)
def test_the_watch_sees(
    does: Callable[[Path], int], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("a: 1\n")
    monkeypatch.setattr(guarded, "run", lambda _words: does(path))
    monkeypatch.setattr(guarded, "WAITED", 0.3)
    monkeypatch.setattr(guarded, "GIVEN_UP", 0.1)
    assert problem in measured([], [str(path)]).problem
