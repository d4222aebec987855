from typing import Any

import pytest
from extract_catalogue.modules import Tree
from extract_catalogue.reduce import REQUIRED, Expression, Instance, as_json, default_of
from vllm_sources import module_of, tree_of

CONFIG = """
    import enum
    from dataclasses import field
    from pydantic import Field
    from vllm.sizes import DEFAULT as SIZE
    GIB = 1 << 30

    class Mode(enum.Enum):
        FAST = "fast"
        SLOW = 2

    class Overrides(dict):
        pass

    class CompilationConfig:
        level: int = 0

    class Parent:
        seed: int | None = None

    class ModelConfig(Parent):
        kind: ClassVar[str] = "model"
        plain: bool = True
        none: str | None = None
        negative: int = -1
        constant: int = 4 * GIB
        imported: int = SIZE
        member: Mode = Mode.FAST
        value: str = Mode.FAST.value
        words: list[str] = field(default_factory=lambda: ["a", "b"])
        empty: dict = field(default_factory=dict)
        overrides: Overrides = field(default_factory=Overrides)
        nested: CompilationConfig = field(default_factory=CompilationConfig)
        called: CompilationConfig = CompilationConfig()
        bounded: float = Field(default=0.9, gt=0)
        required: int = Field(...)
        bare: int
        running: str = current_platform.name()
        chosen: str = "a" if envs.VLLM_USE_V1 else "b"
"""
ARGUMENTS = """
    from vllm.config import ModelConfig, get_field

    class EngineArgs:
        plain: bool = ModelConfig.plain
        seed: int | None = ModelConfig.seed
        words: list[str] = get_field(ModelConfig, "words")
        unknown: int = ModelConfig.nowhere
"""


def reduced_of(tree: Tree, path: str, cls: str) -> dict[str, Any]:
    module = module_of(tree, path)
    found = tree.find_class(cls, module)
    assert found is not None
    return {name: default_of(tree, field) for name, field in tree.fields(*found).items()}


@pytest.fixture(scope="module")
def tree() -> Tree:
    return tree_of(config=CONFIG, sizes="DEFAULT = 16", engine__arg_utils=ARGUMENTS)


def test_plain_data_comes_out_as_data(tree: Tree) -> None:
    found = reduced_of(tree, "config", "ModelConfig")
    assert {name: found[name] for name in ("plain", "none", "negative", "constant", "imported", "bounded")} == {
        "plain": True, "none": None, "negative": -1, "constant": 4 << 30, "imported": 16, "bounded": 0.9,
    }  # fmt: skip


def test_members_of_an_enumeration_are_their_values(tree: Tree) -> None:
    found = reduced_of(tree, "config", "ModelConfig")
    assert (found["member"], found["value"]) == ("fast", "fast")


def test_factories_are_what_they_make(tree: Tree) -> None:
    found = reduced_of(tree, "config", "ModelConfig")
    assert (found["words"], found["empty"], found["overrides"]) == (["a", "b"], {}, {})
    assert (found["nested"], found["called"]) == (Instance("CompilationConfig"), Instance("CompilationConfig"))


def test_a_field_without_default_is_required_and_a_class_variable_is_no_field(tree: Tree) -> None:
    found = reduced_of(tree, "config", "ModelConfig")
    assert (found["required"], found["bare"]) == (REQUIRED, REQUIRED)
    assert "kind" not in found


def test_what_only_running_code_can_tell_stays_an_expression(tree: Tree) -> None:
    found = reduced_of(tree, "config", "ModelConfig")
    assert found["running"] == Expression("current_platform.name()")
    assert found["chosen"] == Expression("'a' if envs.VLLM_USE_V1 else 'b'")


def test_defaults_of_another_class_are_followed_into_its_bases(tree: Tree) -> None:
    found = reduced_of(tree, "engine/arg_utils", "EngineArgs")
    assert (found["plain"], found["seed"], found["words"]) == (True, None, ["a", "b"])
    assert found["unknown"] == Expression("ModelConfig.nowhere")


def test_stored_defaults_tell_objects_expressions_and_missing_ones_apart() -> None:
    assert as_json(Instance("LoadConfig")) == {"object": "LoadConfig"}
    assert as_json(Expression("f()")) == {"expression": "f()"}
    assert as_json(REQUIRED) == {"required": True}
    assert as_json({"a": 1}) == {"a": 1}


def test_names_that_define_each_other_end_in_an_expression() -> None:
    tree = tree_of(config="A = B\nB = A\nclass C:\n    x: int = A\n")
    assert isinstance(reduced_of(tree, "config", "C")["x"], Expression)
