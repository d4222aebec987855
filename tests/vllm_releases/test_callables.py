"""How vLLM's functions and classes are called in each release."""

import pytest
from extract_catalogue.callables import callables, record_callables
from packaging.version import Version
from vllm_sources import tree_of

from rlaudit.vllm.callables import FILE, parameters, refused
from rlaudit.vllm.catalogue import known_versions

STATE = "vllm.entrypoints.openai.api_server.init_app_state"
V1, V2 = Version("0.1.0"), Version("0.2.0")


def test_parameters_are_those_that_a_caller_gives():
    source = """
        def f(a, b=1, *, c, d=2, **more): ...
        def _private(a): ...
        @decorated
        def g(a): ...
        class A:
            def __init__(self, x, *rest): ...
            @classmethod
            def made(cls, y=1): ...
            def method(self): ...
        class B(A):
            pass
        @dataclass
        class C:
            x: int
        """
    assert callables(tree_of(engine__a=source)) == {
        "vllm.engine.a.f": "a,b=,*,c,d=,**", "vllm.engine.a.A": "x,*rest", "vllm.engine.a.A.made": "y=",
        "vllm.engine.a.B": "x,*rest",
    }  # fmt: skip


@pytest.mark.parametrize(("text", "given", "keywords", "why"), [
    ("a,b=", 1, (), ""),
    ("a,b=", 3, (), "takes 2 arguments without a name, and not 3"),
    ("a,*rest", 3, (), ""),
    ("a,b=", 0, ("b",), "needs a"),
    ("a,b=", 1, ("c",), "takes no c"),
    ("a,**", 1, ("c",), ""),
    ("a,*,b", 1, (), "needs b"),
    ("a,*,b", 2, (), "takes 1 arguments without a name, and not 2"),
    (",", 0, (), ""),
])  # fmt: skip
def test_a_call_is_taken_or_not(text, given, keywords, why):
    assert parameters(text).refuses(given, keywords, whole=True) == why


def test_what_is_not_told_is_not_missed():
    assert parameters("a,b").refuses(0, (), whole=False) == ""


def test_a_call_that_only_another_release_takes_is_refused():
    def asked(given, version, *keywords):
        return refused(STATE, given, keywords, Version(version), whole=True)

    old = ("engine", "vllm_config", "", "args")
    assert asked(old, "0.10.2") == ""
    assert asked(old, "0.12.0") == "takes 3 arguments without a name, and not 4"
    assert asked(old, "0.18.1") == "takes state where vllm_config is passed"  # it has four by then, and others
    assert asked(("engine", "", "args"), "0.12.0") == "" != asked(("engine", "", "args"), "0.10.2")
    assert asked(("a",) * 9, "0.18.1") == ""  # no release takes that: it is somebody's own patch
    assert asked(old, "99.0") == "" and refused("vllm.nowhere.f", old, (), Version("0.18.1"), whole=True) == ""


def test_a_release_is_added_without_a_change_to_the_others(tmp_path):
    record_callables(V1, tree_of(engine__a="def f(a): ..."), tmp_path)
    first = (tmp_path / FILE).read_text()
    record_callables(V2, tree_of(engine__a="def f(a, b): ...\ndef g(): ..."), tmp_path)
    second = (tmp_path / FILE).read_text()
    assert '"vllm.engine.a.f":{"0.1.0..": "a"}' in first
    assert '"vllm.engine.a.f":{"0.1.0..0.1.0": "a", "0.2.0..": "a,b"}' in second and '"0.2.0..": ","' in second


def test_every_catalogued_release_is_there():
    import json

    from rlaudit.vllm.catalogue import DATA

    assert [Version(one) for one in json.loads((DATA / FILE).read_text())["releases"]] == list(known_versions())
