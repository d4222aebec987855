"""A name that a file gives to classes alone stands for them."""

import ast

import pytest

from rlaudit.configs.syntax.class_aliases import class_aliases


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("cls = EngineArgs", ["EngineArgs"]),
        ("cls = AsyncEngineArgs if serves else EngineArgs", ["AsyncEngineArgs", "EngineArgs"]),
        ("if a:\n    cls = vllm.LLM\nelse:\n    cls = Own", ["vllm.LLM", "Own"]),
        ("cls = EngineArgs\ncls = make()", []),
        ("cls = EngineArgs\nfor cls in kinds:\n    pass", []),
        ("cls = EngineArgs\ndef f(cls):\n    pass", []),
        ("cls = LIMIT\ncls = EngineArgs", []),
        ("cls = other", []),
    ],
)
def test_only_classes_count(text: str, meant: list[str]) -> None:
    assert [ast.unparse(one) for one in class_aliases(ast.parse(text)).get("cls", ())] == meant
