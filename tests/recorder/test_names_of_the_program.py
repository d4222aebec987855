"""A program's own modules stay its own, also if they have the names of modules that the recorder needs."""

import subprocess
from pathlib import Path

import pytest
from trainings_with_a_stand_in import SAID, Ended, Place, place, surroundings, words

# Some that the recorder imports, some that those import, and packages.
NAMES = ["queue", "heapq", "base64", "ast", "dis", "json", "csv", "email", "inspect", "hashlib", "copy", "array"]
ENGINE = """
import vllm
from vllm.sampling_params import SamplingParams
print(len(vllm.LLM(model="m", seed=7).generate([[1, 2, 3]], SamplingParams(max_tokens=5, logprobs=0, seed=1))))
"""
THEIRS = "import {name}; print({name}.mine)\n"


def trained(folder: Path, recorded: Place | None, program: str, name: str, package: bool = False) -> Ended:
    """Run a script with a module of its own beside it."""
    script = folder / "script"
    own = script / name / "__init__.py" if package else script / f"{name}.py"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(f"print('{name} of the program runs'); mine = 1\n")
    (script / "train.py").write_text(program)
    done = subprocess.run(
        words(program=script / "train.py"),
        env=surroundings(recorded),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("name", NAMES)
def test_a_script_that_never_imports_vllm_has_its_own(name: str, tmp_path: Path) -> None:
    here = place(tmp_path)
    ended = trained(tmp_path, here, THEIRS.format(name=name), name)
    assert (ended.code, ended.stdout, ended.stderr) == (0, f"{name} of the program runs\n1\n", "")


# What the stand-in for vLLM does not import itself.
@pytest.mark.parametrize(("name", "package"), [("queue", False), ("queue", True), ("traceback", False)])
def test_a_module_that_is_imported_behind_vllm_is_the_programs_own(name: str, package: bool, tmp_path: Path) -> None:
    here = place(tmp_path)
    program = ENGINE + THEIRS.format(name=name)
    assert trained(tmp_path, None, program, name, package) == trained(tmp_path, here, program, name, package)
    assert here.written().of_kind("sequence")


@pytest.mark.parametrize("name", ["queue", "traceback"])
def test_a_module_that_is_imported_before_vllm_keeps_the_recorder_out_which_is_said(name: str, tmp_path: Path) -> None:
    here = place(tmp_path)
    program = THEIRS.format(name=name) + ENGINE
    without, ended = trained(tmp_path, None, program, name), trained(tmp_path, here, program, name)
    assert (ended.code, ended.stdout) == (without.code, without.stdout)
    (line,) = ended.stderr.splitlines()
    assert line.startswith(SAID + "this process is not recorded") and f"{name}.py" in line
    assert not here.out.exists()


def test_a_module_of_another_name_keeps_nothing_out(tmp_path: Path) -> None:
    here = place(tmp_path)
    program = THEIRS.format(name="calendar") + ENGINE
    assert trained(tmp_path, here, program, "calendar") == trained(tmp_path, None, program, "calendar")
    assert here.written().of_kind("sequence")
