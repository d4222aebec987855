"""What programs can import from a release, and what its objects have."""

import pytest
from extract_catalogue.importable import importable, record_importable
from extract_catalogue.objects import objects
from packaging.version import Version
from vllm_sources import tree_of

from rlaudit.vllm.importable import FILE, Index, gone_attribute, gone_module, gone_name, is_conditional, spans

V0, V1, V2, V3 = (Version(f"0.{minor}.0") for minor in range(4))


def test_names_are_what_a_module_makes_and_what_it_has_from_vllm_and_no_private_ones():
    tree = tree_of(
        __init__="", tools__a="def f(): ...\nimport torch\nfrom vllm.b import g as h\n_private = 1\nX, Y = 1, 2",
        b="g = 1",
    )  # fmt: skip
    assert importable(tree)["vllm.tools.a"] == {".", "f", "X", "Y", "~h"}
    assert importable(tree)["vllm.tools"] == {"."}


def test_what_only_a_type_checker_sees_cannot_be_imported():
    tree = tree_of(a="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from vllm.b import C\nelse:\n    D = 1")
    assert importable(tree)["vllm.a"] == {".", "~D"}


@pytest.mark.parametrize(("body", "names"), [
    ("TABLE = {'A': 1, 'B': 2}\ndef __getattr__(name):\n    return TABLE[name]", {".", "TABLE", "~A", "~B"}),
    ("def __getattr__(name):\n    if name == 'A': return 1\n    raise AttributeError", {".", "~A"}),
    ("def __getattr__(name):\n    return getattr(other, name)", {".", "*"}),
    ("for name in names:\n    pass\nglobals().update(names)", {".", "*"}),
])  # fmt: skip
def test_names_that_a_module_makes_when_they_are_asked_for(body, names):
    assert importable(tree_of(a=body))["vllm.a"] == names


def test_a_star_hands_on_what_the_other_module_has():
    tree = tree_of(a="from .b import *", b="def f(): ...\nfrom vllm.c import g", c="g = 1")
    assert importable(tree)["vllm.a"] == {".", "~f", "~g"}


def test_an_attribute_that_is_set_under_a_condition_is_there_sometimes():
    engine = """
        class Base:
            def step(self): ...
        class LLMEngine(Base):
            kept: int = 1
            def __init__(self, alone):
                self.always = 1
                if alone:
                    self.executor, self.either = 1, 2
                else:
                    self.either = 3
        """
    found = objects(tree_of(engine__llm_engine=engine))["LLMEngine"]
    assert found == {"step", "kept", "always", "?executor", "either"}


def test_a_release_is_added_to_the_index_without_a_change_to_what_others_have(tmp_path):
    for version, text in ((V0, "a = b = 1"), (V1, "a = 1"), (V2, "a = b = 1")):
        record_importable(version, tree_of(x=text), tmp_path)
    text = (tmp_path / FILE).read_text()
    assert '"vllm.x":{"0.0.0..": ". a", "0.0.0..0.0.0,0.2.0..": "b"}' in text


def test_an_index_tells_lifetimes_and_homes():
    stored = spans({V0: {"m": {".", "f"}}, V1: {"m": {"."}, "n": {".", "f"}, "o": {".", "~f"}}, V2: {"n": {".", "f"}}})
    index = Index((V0, V1, V2), stored)
    assert index.lifetime("m", "f") == (V0, V0)
    assert index.lifetime("m", ".") == (V0, V1)
    assert index.lifetime("m", "g") is None
    assert index.homes("f", V1) == ("n",)
    assert index.names("m", V2) == frozenset()


def test_the_worker_of_v0_is_gone_and_there_is_another():
    assert gone_module("vllm.worker.worker", Version("0.10.2")) is None
    gone = gone_module("vllm.worker.worker", Version("0.18.1"))
    assert gone is not None
    assert str(gone.last) == "0.10.2"
    assert gone_name("vllm.worker.worker", "Worker", Version("0.18.1")).homes == ("vllm.v1.worker.gpu_worker",)


def test_a_name_that_is_still_handed_on_is_not_gone():
    assert gone_name("vllm", "LLM", Version("0.18.1")) is None
    assert gone_name("vllm", "envs", Version("0.18.1")) is None
    assert gone_name("vllm.lora.request", "LoRARequest", Version("0.33.0")) is None
    assert gone_name("vllm.utils", "no_release_has_it", Version("0.18.1")) is None


def test_compiled_modules_are_not_in_the_sources_and_never_gone():
    assert gone_module("vllm._C", Version("0.18.1")) is None
    assert gone_module("vllm.vllm_flash_attn.flash_attn_interface", Version("0.18.1")) is None


def test_what_is_said_of_a_release_that_is_not_catalogued_is_nothing():
    assert gone_module("vllm.worker.worker", Version("0.18.2")) is None


def test_objects_know_what_became_of_their_attributes():
    assert gone_attribute("LLM", "set_tokenizer", Version("0.8.5")) is None
    assert gone_attribute("LLM", "set_tokenizer", Version("0.18.1")).name == "LLM.set_tokenizer"
    assert gone_attribute("LLM", "generate", Version("0.33.0")) is None
    assert not is_conditional("LLMEngine", "model_executor", Version("0.8.5"))
    assert is_conditional("LLMEngine", "model_executor", Version("0.18.1"))


def test_the_index_holds_every_catalogued_release():
    from rlaudit.vllm.catalogue import known_versions
    from rlaudit.vllm.importable import _read

    assert _read().modules.releases == known_versions()
