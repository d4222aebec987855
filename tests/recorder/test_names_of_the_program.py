"""A program that never imports vLLM has its own modules, also under names of modules that the recorder needs."""

import subprocess
from pathlib import Path

import pytest
from trainings_with_a_stand_in import place, surroundings, words

# Some that the recorder imports, some that those import, and packages.
NAMES = ["queue", "heapq", "base64", "ast", "dis", "json", "csv", "email", "inspect", "hashlib", "copy", "array"]


@pytest.mark.parametrize("name", NAMES)
def test_a_script_that_never_imports_vllm_has_its_own(name: str, tmp_path: Path) -> None:
    here, script = place(tmp_path), tmp_path / "train.py"
    (tmp_path / f"{name}.py").write_text("print('theirs'); mine = 1\n")
    script.write_text(f"import {name}; print({name}.mine)\n")
    done = subprocess.run(
        words(program=script), env=surroundings(here), capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "theirs\n1\n", "")
