"""Writes model_types.json: `cd .ci && python -m extract_catalogue.model_types VERSION...`.

A release keeps its model types in CONFIG_MAPPING_NAMES, as a literal: transformers 4 in configuration_auto.py,
transformers 5 in auto_mappings.py, with additions in configuration_auto.py. They are read, never imported.
"""

import ast
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from rlaudit.engines.models.model_types import DATA

FILES = ("transformers/models/auto/configuration_auto.py", "transformers/models/auto/auto_mappings.py")
NAME = "CONFIG_MAPPING_NAMES"


def main(versions: list[str]) -> int:
    """Replace model_types.json by what these releases know."""
    found = {}
    for version in versions:
        with tempfile.TemporaryDirectory() as folder:
            command = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", folder]
            subprocess.run([sys.executable, *command, f"transformers=={version}"], check=True)
            found[version] = sorted(types_in(next(Path(folder).glob("*.whl"))))
        print(f"transformers {version}: {len(found[version])} model types")
    DATA.write_text(written(found), encoding="utf-8")
    return 0


def types_in(wheel: Path) -> set[str]:
    """The model types of a wheel. Raises ValueError for one that keeps none where they are looked for."""
    with zipfile.ZipFile(wheel) as archive:
        held = [name for name in FILES if name in archive.namelist()]
        types = {key for name in held for key in _keys(ast.parse(archive.read(name)))}
    if not types:
        raise ValueError(f"{wheel.name}: no {NAME} in {' or '.join(FILES)}")
    return types


def _keys(module: ast.Module) -> Iterator[str]:
    for statement in module.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == NAME:
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if name == NAME:
                pass
            case _:
                continue
        for node in ast.walk(value):
            match node:
                case ast.Tuple(elts=[ast.Constant(value=str(key)), ast.Constant()]):
                    yield key
                case ast.Dict(keys=keys):
                    named = (key.value for key in keys if isinstance(key, ast.Constant))
                    yield from (name for name in named if isinstance(name, str))


def written(types: dict[str, list[str]]) -> str:
    """As JSON, one release a line: what a release brought shows in a diff by word."""
    lines = [f"{json.dumps(version)}: {json.dumps(names)}" for version, names in types.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
