"""A fact about a release of vLLM stands in rlaudit/vllm/, a defect in rlaudit/rules/advisories/, and nowhere else."""

import ast
from collections.abc import Iterator
from pathlib import Path

import rlaudit
from rlaudit.vllm import milestones

PACKAGE = Path(rlaudit.__file__).parent
# What looks like a release of vLLM and is none, or is a fact about somebody else. Why, for each.
ELSEWHERE = {
    "__init__.py": "rlaudit's own release",
    "cli/demo.py": "the releases whose tokens the demo has",
    "configs/readers/server_report.py": "what a server reports as its release when it does not know it",
    "configs/recorded_source.py": "what a run reports as its release when it does not know it",
    "engines/environments/resolve.py": "packages beside which a release was tried",
}


def releases_in(path: Path) -> Iterator[str]:
    """Constants of the code that read as a release: `0.10.2`. Words of a sentence do not count."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            numbers = node.value.split(".")
            if len(numbers) in (2, 3) and numbers[0] == "0" and all(number.isdecimal() for number in numbers):
                yield node.value


def test_a_release_of_vllm_is_written_in_one_room() -> None:
    files = {str(path.relative_to(PACKAGE)): path for path in PACKAGE.rglob("*.py")}
    found = {
        name: sorted(set(releases_in(path)))
        for name, path in files.items()
        if not name.startswith(("vllm/", "recipes/", "rules/advisories/"))
    }
    assert {name: said for name, said in found.items() if said and name not in ELSEWHERE} == {}


def test_every_exception_is_still_one() -> None:
    assert [name for name in ELSEWHERE if not any(releases_in(PACKAGE / name))] == []


def test_every_milestone_is_asked_about() -> None:
    files = [path for path in PACKAGE.rglob("*.py") if path.name != "milestones.py"]
    code = "\n".join(path.read_text() for path in (*files, *(PACKAGE / "configs" / "dialects").rglob("*.yaml")))
    assert [name for name in vars(milestones) if name.isupper() and name not in code] == []
