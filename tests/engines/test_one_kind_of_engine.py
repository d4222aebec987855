"""What a kind of engine is called is said in one place."""

import ast
from pathlib import Path

import rlaudit
from rlaudit.engines.inside.engine import ENGINE

PACKAGE = Path(rlaudit.__file__).parent
ROOM = PACKAGE / "engines" / "inside"
# It runs in an interpreter without rlaudit, and lists the packages whose versions decide a logprob.
WITHOUT_RLAUDIT = {"engines/environments/describe_interpreter.py"}
# A name of something else: of the setting that `inspect` reports.
OTHERS = {"laboratory/factors/engine_version.py"}


def test_no_other_file_says_the_name_of_the_engine() -> None:
    names = {ENGINE.package.name, *ENGINE.package.distributions.values()}
    found = set()
    for file in [*(PACKAGE / "engines").rglob("*.py"), *(PACKAGE / "laboratory").rglob("*.py")]:
        said = {node.value for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Constant)}
        if said & names and ROOM not in file.parents:
            found.add(str(file.relative_to(PACKAGE)))
    assert found == WITHOUT_RLAUDIT | OTHERS
