"""Two rlaudits are the same if their programs are: a version says too little, and data files say too much."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def digest_in(folder: Path) -> str:
    command = [sys.executable, "-c", "from rlaudit.files.own_sources import sources_digest; print(sources_digest())"]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def test_checkouts_of_one_version_differ_by_a_line_and_by_a_name_and_by_nothing_else(tmp_path: Path) -> None:
    package = tmp_path / "one" / "rlaudit"
    (package / "files").mkdir(parents=True)
    for name in ("__init__.py", "files/__init__.py", "files/own_sources.py", "files/home.py"):
        shutil.copy(ROOT / "rlaudit" / name, package / name)
    first = digest_in(package.parent)
    shutil.copytree(package.parent, tmp_path / "two")
    # A wheel's data, and what Python leaves behind.
    (tmp_path / "two" / "rlaudit" / "recipes").mkdir()
    (tmp_path / "two" / "rlaudit" / "recipes" / "quick.yaml").write_text("a: 1\n")
    assert digest_in(tmp_path / "two") == first
    (package / "files" / "home.py").rename(package / "house.py")
    renamed = digest_in(package.parent)
    (package / "house.py").write_text("# one line more\n" + (package / "house.py").read_text())
    assert len({first, renamed, digest_in(package.parent)}) == 3
