"""Imports of a program, and what it asks of its engine, that a release does not have."""

import pytest
from packaging.version import Version

from rlaudit.configs.framework_source.stops import stops_in
from rlaudit.configs.rollout_config import StopKind
from rlaudit.configs.source import Source

GONE = "from vllm.worker.worker import Worker"


def stops(text: str, path: str = "train.py", to: str = "0.18.1"):
    return [(stop.place.line, stop.kind, stop.certain) for stop in stops_in(Source(path, text), Version(to))]


def test_an_import_at_the_top_stops_the_program():
    assert stops(GONE) == [(1, StopKind.IMPORT, True)]
    assert stops(GONE, to="0.10.2") == []
    assert stops("import vllm.worker.worker as w") == [(1, StopKind.IMPORT, True)]


def test_every_name_that_is_gone_is_said_and_others_are_not():
    (stop,) = stops_in(Source("train.py", "from vllm.utils import get_ip, cdiv_of_mine"), Version("0.18.1"))
    assert "imports get_ip from vllm.utils" in stop.what
    assert "vllm.utils.network_utils" in stop.what


@pytest.mark.parametrize(("call", "stopped"), [
    ("mock.patch('vllm.worker.worker.Worker.profile', return_value=None)", True),
    ("importlib.import_module('vllm.worker.worker')", True),
    ("patch('vllm.utils.get_ip')", True),
    ("patch('vllm.v1.worker.gpu_worker.Worker.of_mine')", False),
    ("patch('vllm.LLM.generate')", False),
    ("patch('torch.distributed.get_rank')", False),
    ("patch(target)", False),
    ("print('vllm.worker.worker')", False),
])  # fmt: skip
def test_a_text_that_is_imported_counts_as_an_import(call, stopped):
    assert stops(call) == ([(1, StopKind.IMPORT, True)] if stopped else [])
    assert stops(call, to="0.8.5") == []
    assert stops(f"try:\n    {call}\nexcept ImportError:\n    pass") == []


@pytest.mark.parametrize("text", [
    f"try:\n    {GONE}\nexcept ImportError:\n    Worker = None",
    f"try:\n    {GONE}\nexcept (AttributeError, ModuleNotFoundError):\n    Worker = None",
    f"try:\n    {GONE}\nexcept Exception:\n    Worker = None",
    f"from contextlib import suppress\nwith suppress(ImportError):\n    {GONE}",
    f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    {GONE}",
    f"import importlib.util\nif importlib.util.find_spec('vllm.worker'):\n    {GONE}",
    f"import vllm\nif vllm.__version__ == '0.8.5':\n    {GONE}",
    f"try:\n    from vllm.v1.worker.gpu_worker import Worker\nexcept ImportError:\n    {GONE}",
])  # fmt: skip
def test_a_program_that_is_ready_for_it_is_not_stopped(text):
    assert stops(text) == []


def test_a_way_out_that_is_gone_as_well_is_none():
    text = f"try:\n    from vllm.spec_decode.metrics import Metrics\nexcept ImportError:\n    {GONE}"
    assert stops(text) == [(4, StopKind.IMPORT, True)]


def test_an_error_of_another_kind_does_not_catch_it():
    assert stops(f"try:\n    {GONE}\nexcept KeyError:\n    pass") == [(2, StopKind.IMPORT, False)]


def test_in_a_function_that_builds_no_engine_it_is_not_certain():
    assert stops(f"def later():\n    {GONE}") == [(2, StopKind.IMPORT, False)]
    assert stops(f"if __name__ == '__main__':\n    {GONE}") == [(2, StopKind.IMPORT, True)]


def test_beside_a_copy_of_vllm_itself_nothing_is_said(tmp_path):
    (tmp_path / "vllm/engine").mkdir(parents=True)
    (tmp_path / "vllm/engine/arg_utils.py").write_text("")
    assert stops(GONE, str(tmp_path / "train.py")) == []


ENGINE = "from vllm import LLM, LLMEngine, SamplingParams\nllm = LLM(model='m')\n"


@pytest.mark.parametrize(("use", "found"), [
    ("llm.set_tokenizer(t)", 1), ("for x in llm.set_tokenizer(t):\n    pass", 1),
    ("llm.llm_engine.model_executor.driver_worker.load()", 1),
    ("llm.generate(p)", 0), ("llm.no_release_has_it()", 0), ("other.set_tokenizer(t)", 0),
    ("llm.set_tokenizer = mine", 0),
    ("if hasattr(llm, 'set_tokenizer'):\n    llm.set_tokenizer(t)", 0),
    ("try:\n    llm.set_tokenizer(t)\nexcept AttributeError:\n    pass", 0),
    ("llm = Other()\nllm.set_tokenizer(t)", 0),
    ("import os\nos.environ['VLLM_ENABLE_V1_MULTIPROCESSING'] = '0'\nllm.llm_engine.model_executor.load()", 0),
])  # fmt: skip
def test_what_is_asked_of_an_engine(use, found):
    assert len(stops(ENGINE + use)) == found
    assert stops(ENGINE + use, to="0.8.5") == []


def test_an_engine_that_a_class_keeps_or_a_function_is_given_is_known_too():
    kept = "from vllm import LLM\nclass A:\n    def __init__(self):\n        self.llm = LLM(model='m')\n"
    assert stops(kept + "        self.llm.set_tokenizer(1)") == [(5, StopKind.ATTRIBUTE, True)]
    assert stops("from vllm import LLM\ndef f(llm: LLM):\n    llm.set_tokenizer(1)") == [(3, StopKind.ATTRIBUTE, False)]


def test_a_class_of_that_name_from_elsewhere_is_not_vllm_s():
    assert stops("from mine import LLM\nllm = LLM(model='m')\nllm.set_tokenizer(t)") == []


def test_in_a_function_of_a_framework_s_source_it_is_a_note():
    from simulated_audit import findings

    from rlaudit.inspection.finding import Severity
    from rlaudit.rules.import_gone import RULE

    stop = {"where": "own/patches.py:3", "what": "imports from vllm.worker.worker", "kind": "import"}
    told = {
        certain: findings(RULE, {"to": "0.18.1", "stops": [stop | {"certain": certain}]}) for certain in (True, False)
    }
    assert [one.severity for one in told[True]] == [Severity.ERROR]
    assert [one.severity for one in told[False]] == [Severity.NOTE]


@pytest.mark.parametrize(("handler", "said"), [
    ("except:\n        return", True),
    ("except Exception as error:\n        print(error)", True),
    ("except AttributeError:\n        pass", False),
    ("except Exception:\n        reload_from_disk()", False),
    ("except KeyError:\n        pass\n    except Exception:\n        raise", False),
])  # fmt: skip
def test_an_update_whose_error_is_passed_over_without_a_word_is_said(handler, said):
    text = (
        "from vllm import LLM\nllm = LLM('m')\ndef update(weights):\n    try:\n"
        f"        llm.llm_engine.model_executor.driver_worker.load_weights(weights)\n    {handler}\n"
    )
    found = stops_in(Source("train.py", text), Version("0.18.1"))
    assert [stop.what.count("`except` in line 6") for stop in found] == [1] * said
    assert not any(stop.certain for stop in found)
