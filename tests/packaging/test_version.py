"""Which version the build gives the package: the tag's, and where there is none, one that says so."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.version import Version

ROOT = Path(__file__).parents[2]
COMMITTED = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """What the version is made from."""
    for name in ("pyproject.toml", "README.md", "LICENSE", ".git_archival.txt", ".gitattributes"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "rlaudit").mkdir()
    return tmp_path


def git(tree: Path, *words: str) -> None:
    subprocess.run(["git", *COMMITTED, *words], cwd=tree, check=True, capture_output=True)


def version(tree: Path) -> str:
    words = [sys.executable, "-m", "hatchling", "version"]
    return subprocess.run(words, cwd=tree, check=True, capture_output=True, text=True).stdout.strip()


def committed(tree: Path) -> None:
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "one")


def test_a_tag_is_the_version(tree: Path) -> None:
    committed(tree)
    git(tree, "tag", "v1.2.3")
    assert version(tree) == "1.2.3"
    git(tree, "commit", "-q", "--allow-empty", "-m", "two")
    assert Version("1.2.3") < Version(version(tree)) < Version("1.2.4")


def test_a_clone_without_tags_and_a_tree_without_git_are_built_too(tree: Path) -> None:
    assert version(tree) == "0.0.0"
    committed(tree)
    assert Version(version(tree)).is_devrelease


def test_a_download_of_a_tag_is_that_version(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    committed(tree)
    git(tree, "tag", "v1.2.3")
    place = tmp_path_factory.mktemp("download")
    git(tree, "archive", "-o", str(place / "tree.tar"), "HEAD")
    shutil.unpack_archive(place / "tree.tar", place / "tree", filter="data")
    (place / "tree" / "rlaudit").mkdir(exist_ok=True)
    assert version(place / "tree") == "1.2.3"


def test_a_source_distribution_keeps_its_version(tree: Path) -> None:
    (tree / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: rlaudit\nVersion: 1.2.3\n")
    assert version(tree) == "1.2.3"


def test_a_repository_around_the_tree_has_no_say(tree: Path) -> None:
    committed(tree)
    git(tree, "tag", "v9.9.9")
    inner = tree / "third_party" / "rlaudit"
    (inner / "rlaudit").mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, inner / name)
    assert version(inner) == "0.0.0"


def test_what_an_index_shows_is_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {"name", "description", "readme", "license", "requires-python", "authors", "keywords", "classifiers"} <= set(
        project
    )
    assert "version" in project["dynamic"]
    assert (ROOT / ".github" / "SECURITY.md").is_file()
