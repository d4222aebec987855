import random
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from packaging.version import Version

from rlaudit.cli.app import run
from rlaudit.configs.dialects.declared import named_dialect
from rlaudit.configs.dialects.front_ends import WAYS
from rlaudit.configs.dialects.page import grammar, page_of
from rlaudit.configs.dialects.schema import SCHEMA, faults
from rlaudit.configs.dialects.spec import shipped, spec_at
from rlaudit.configs.source import Source
from rlaudit.errors import RlauditError

HEAD = "marks: [sampler]\ntitle: Toy\n\nread: r1\nfiles: {yaml: {}}\nlayouts: {only: {root: sampler}}\n"


@pytest.mark.parametrize("name", shipped())
def test_every_dialect_of_the_package_is_valid(name: str) -> None:
    assert faults(shipped()[name]) == []
    assert yaml.safe_load(shipped()[name].read_text())  # without libyaml as well


@pytest.mark.parametrize("name", shipped())
def test_every_hook_that_a_dialect_names_is_there(name: str) -> None:
    spec = spec_at(shipped()[name])
    named = [*spec.declared.get("hooks", ()), *_hooks(spec.declared)]
    assert all(callable(spec.hook(hook)) for hook in named)


def _hooks(said: object) -> list[str]:
    if isinstance(said, list):
        return [hook for one in said for hook in _hooks(one)]
    if not isinstance(said, dict):
        return []
    return [*([said["hook"]] if "hook" in said else []), *(hook for one in said.values() for hook in _hooks(one))]


@pytest.mark.parametrize("name", shipped())
def test_every_dialect_has_a_page(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", name]) == 0
    page = capsys.readouterr().out
    assert page.startswith(spec_at(shipped()[name]).title)
    assert page.startswith(page_of(shipped()[name]))


def test_the_grammar_names_every_way_of_writing_a_config() -> None:
    assert all(f"{way}:" in grammar() for way in WAYS)


def test_the_grammar_names_every_word_of_the_language() -> None:
    words = set(_properties(yaml.safe_load(SCHEMA.read_text())))
    assert sorted(word for word in words if not re.search(rf"(?<!\w){re.escape(word)}(?!\w)", grammar())) == []


def _properties(schema: object) -> Iterator[str]:
    """Yield the keys that a dialect may have, at any depth."""
    if isinstance(schema, dict):
        yield from schema.get("properties", ())
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _properties(part)


@pytest.mark.parametrize(("word", "truth"), [("true", True), ("false", False), ("here", True)])
def test_a_condition_that_always_or_never_holds_is_spelt_as_yaml_spells_it(
    tmp_path: Path, word: str, truth: bool
) -> None:
    path = tmp_path / "toy.yaml"
    path.write_text(
        f"{HEAD}conditions: {{here: true}}\noffline: {word}\nsampling:\n  top_k: {{if: {word}, value: 5}}\n"
    )
    (config,) = named_dialect(path).read(Source("run.yaml", "sampler: {a: 1}\n"), Version("0.18.1"))
    assert config.offline is truth and ("top_k" in config.sampling) is truth


@pytest.mark.parametrize(
    ("said", "line", "what"),
    [
        ("engin: {}\n", 7, "did you mean engine?"),
        ("engine:\n  dtype: {kee: '@a'}\n", 8, "did you mean key?"),
        ("engine:\n  dtype: {key: '@a', if: a >> 3}\n", 8, "no condition"),
        ("engine:\n  dtype: {key: '@a', lost: dropped, because: x}\n", 8, "not passed"),
        ("engine:\n  dtype: 3\n", 8, "3 is not of type 'object'"),
        ("offline: 1\n", 7, "1 is not of type 'string', 'boolean'"),
        ("trainer:\n  dtyp: {value: 1}\n", 8, "'dtyp' is not a 'trainer fact'; known: weight_updates, "),
        (
            "trainer:\n  weight_updates: {value: in fligt}\n",
            8,
            "'in fligt' is not one of ['none', 'between rollouts', 'in flight']",
        ),
        ("trainer:\n  pause_mode:\n  - {key: '@a', default: kept}\n", 9, "'kept' is not one of"),
        ("trainer:\n  dtype: {key: '@a', map: {bf16: bfloat}}\n", 8, "'bfloat' is not one of"),
        ("trainer:\n  replays_filters: {value: 'no'}\n", 8, "'no' is not of type 'boolean'"),
        ("trainer:\n  replicas: {value: many}\n", 8, "'many' is not of type 'integer'"),
        ("engine:\n  dtype: {default: 1, moved: {soon: 2}}\n", 8, "is not a 'release'"),
        ("release:\n  by keys: [{if: a, since: x, because: y}]\n", 8, "is not a 'release'"),
        ("not seen: [{say: x}]\n", 7, "'if' is a required property"),
        ("trainer:\n  replicas: {devices: [a], ranks: [b]}\n", 8, "'because' is a dependency of 'devices'"),
        ("extends: verll\n", 7, "is not a 'dialect'; known: areal, "),
        ("files: {yml: {}}\n", 7, "did you mean yaml?"),
    ],
)
def test_a_fault_is_named_with_line_and_key(tmp_path: Path, said: str, line: int, what: str) -> None:
    path = tmp_path / "toy.yaml"
    path.write_text(HEAD + said)
    found = faults(path)
    assert any(one.startswith(f"{path}:{line}: ") and what in one for one in found), found


def test_a_dialect_that_is_no_yaml_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "toy.yaml"
    path.write_text(f"{HEAD}engine: ]\n")
    with pytest.raises(RlauditError, match=r"toy\.yaml:7: "):
        spec_at(path)


def test_a_dialect_that_is_named_runs_no_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, config = tmp_path / "toy.yaml", tmp_path / "run.yaml"
    path.write_text(f"{HEAD}hooks: [refused_signs]\n")
    config.write_text("sampler: {a: 1}\n")
    assert run(["inspect", "--dialect", str(path), str(config)]) == 2
    assert "no Python" in capsys.readouterr().err


def test_a_dialect_that_is_not_there_is_a_wrong_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["inspect", "--dialect", str(tmp_path / "none.yaml"), str(tmp_path)]) == 2
    assert "none.yaml" in capsys.readouterr().err


WORDS = [
    "@a",
    "a > 3",
    "release >= 1.0",
    "null",
    "{",
    "}",
    "[",
    "]",
    ":",
    "key",
    "if",
    "value",
    "engine",
    "&x",
    "*x",
    "- ",
    "'",
    "🙂",
]


@pytest.mark.parametrize("seed", range(60))
def test_a_damaged_dialect_is_refused_and_never_a_traceback(tmp_path: Path, seed: int) -> None:
    chosen = random.Random(seed)
    names = sorted(shipped())
    text = shipped()[chosen.choice(names)].read_text()
    for _ in range(chosen.randint(1, 6)):
        at, length = chosen.randrange(len(text)), chosen.choice([0, 1, 5, 40])
        text = text[:at] + chosen.choice(WORDS) + text[at + length :]
    path = tmp_path / "damaged.yaml"
    path.write_text(text)
    found = faults(path, has_hooks=False)
    assert all(fault.startswith(str(path)) for fault in found)
    if not found:
        source = Source(
            "run.yaml", "generator: {inference_engine: {max_num_seqs: 3}, sampling_params: {logprobs: null}}\n"
        )
        with suppress(RlauditError):
            dialect = named_dialect(path)
            configs = dialect.read(source, Version("0.18.1")) if dialect.recognise(source) else ()
            assert all(config.framework == "damaged" for config in configs)
