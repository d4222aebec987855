"""JSON from files is parsed in one place, which knows that nesting can be hostile."""

import re
from pathlib import Path

import pytest

import rlaudit
from rlaudit.files.parse_json import parse_json

PACKAGE = Path(rlaudit.__file__).parent
# Files that run in other interpreters, our own data, what the command itself has just written, and numbers that are
# read in another way.
APART = re.compile(
    r"parse_json\.py|engines/inside/(scripts|extension)/|trainer/|vllm/(builds|facts|measured|review)"
    r"|engines/cells/worker\.py|engines/environments/describe_interpreter\.py|engines/models/(convert_gguf|model_types)\.py"
    r"|cli/(demo|names)\.py|report/read_report\.py|recording/(hook_points\.py|shipped/)|tokens/recorded/(sampling_groups|recording_notes)\.py"
)


def test_what_is_nested_too_deeply_is_no_json() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json("[" * 100_000)
    assert parse_json(b'{"a": [1]}') == {"a": [1]}


def test_nobody_else_parses_json() -> None:
    found = [path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")
             if re.search(r"\bjson\.loads?\(", path.read_text(encoding="utf-8"))]  # fmt: skip
    assert [path for path in found if not APART.search(path)] == []
