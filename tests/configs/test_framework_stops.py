"""Lines of a framework's source that do not go with a vLLM release."""

from pathlib import Path

import pytest
from packaging.version import Version

from rlaudit.configs.framework_source.checkout import Checkout
from rlaudit.configs.framework_source.stops import stops_in, stops_of
from rlaudit.configs.rollout_config import Stop
from rlaudit.configs.source import Source

ENGINE = """
from {home} import LLM
{before}

class Worker:
    def __init__(self, config):
        {inside}
        self.llm = LLM(
            model=config.path,
            dtype=config.dtype,
            seed=config.seed,
            enforce_eager=config.enforce_eager,
            gpu_memory_utilization=config.share,
            {more}
        )
"""


DEFAULTS = {"home": "vllm", "inside": "pass"}


def stops(root: Path, files: dict[str, str] | None = None, to: str = "0.18.1", **parts: str) -> tuple[Stop, ...]:
    """What is found in a package `own` whose `workers/engine.py` builds the engine."""
    text = ENGINE
    for name in ("home", "before", "inside", "more"):
        text = text.replace(f"{{{name}}}", parts.get(name, DEFAULTS.get(name, "")))
    for name, content in {"own/workers/engine.py": text, **(files or {})}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return stops_of(Checkout(str(root), "own"), ("own/workers/engine.py",), Version(to))


CHAIN = """
from importlib.metadata import version

name = 'vllm'
here = version(name)
if here == '{old}':
    from .old import LLM
elif here.startswith('0.9.'):
    from .older import LLM
else:
    raise ValueError(f'{here} is not supported')
"""


ASKED = """
def here(package):
    try:
        return parse(version(package))
    except PackageNotFoundError:
        return None
"""


def test_a_chain_of_releases_that_ends_in_a_raise_stops_the_others(tmp_path: Path) -> None:
    gate = {"own/gate/__init__.py": CHAIN.replace("{old}", "0.8.5")}
    (stop,) = stops(tmp_path / "a", gate, before="from own.gate import LLM")
    assert stop.where.endswith("own/gate/__init__.py:11") and stop.certain
    assert not stops(tmp_path / "b", gate, to="0.8.5", before="from own.gate import LLM")
    assert not stops(tmp_path / "c", gate, to="0.9.2", before="from ..gate import LLM")
    assert not stops(tmp_path / "d", gate)  # nothing loads it


@pytest.mark.parametrize(("test", "stopped"), [
    ('vllm.__version__ >= "0.8.1"', True),  # as texts
    ('"0.8.1" <= vllm.__version__', True),
    ('Version(vllm.__version__) >= Version("0.8.1")', False),
    ('version.parse(vllm.__version__) < version.parse("0.10")', True),
    ('vllm.__version__ in ("0.8.5", "0.9.0")', True),
    ('not vllm.__version__ == "0.8.5"', False),
    ('config.on and vllm.__version__ == "0.8.5"', True),
    ('config.on or vllm.__version__ == "0.8.5"', False),
    ('config.on', False),
    ('re.match(r"(\\d+)\\.(\\d+)", vllm.__version__).group(1) == "1"', True),
    ('version.parse(vllm.__version__).release < (0, 9)', True),
    ('Version(vllm.__version__).minor >= 9', False),
    ('tuple(int(part) for part in vllm.__version__.split(".")[:2]) < (0, 9)', True),
    ('tuple(map(int, vllm.__version__.split("+")[0].split("."))) >= (0, 9)', False),
    ('vllm.__version__.split(".")[1] == "8"', True),
    ('vllm.__version__.split(".")[7] == "8"', False),
    ('here("vllm") is not None and here("vllm") < parse("0.9")', True),
    ('here("vllm") is None', True),
    ('here("torch") is None', False),
])  # fmt: skip
def test_an_assertion_is_worked_out(tmp_path: Path, test: str, stopped: bool) -> None:
    found = stops(tmp_path, inside=f"assert {test}", before=ASKED)
    assert any("asserts" in stop.what and stop.certain for stop in found) is stopped


def test_versions_compared_as_texts_are_named_where_the_two_orders_differ(tmp_path: Path) -> None:
    package = "import os\nfrom importlib.metadata import version\nhere = version('vllm')\n" + (
        "if 'ROCM' in os.environ:\n    import re\n    here = re.match(r'(\\d+\\.\\d+\\.?\\d*)', here).group(1)\n"
        "if here <= '0.6.3':\n    mode = 'old'\n"
    )
    (stop,) = stops(tmp_path / "a", {"own/workers/__init__.py": package})
    assert stop.where.endswith("own/workers/__init__.py:7") and "is true for vLLM 0.18.1" in stop.what
    assert not stops(tmp_path / "b", {"own/workers/__init__.py": package}, to="0.9.2")


@pytest.mark.parametrize(("inside", "certain"), [
    ('if config.x:\n            assert vllm.__version__ == "0.8.5"', None),
    ('if TYPE_CHECKING:\n            raise ValueError', None),
    ('raise_it()', None),
    ('if version("vllm") == "0.8.5":\n            return\n        old = version("vllm") < "0.8"', True),
    ('try:\n            old = version("vllm") < "0.8"\n        except ImportError:\n            pass', False),
])  # fmt: skip
def test_only_what_is_reached_for_certain_is_certain(tmp_path: Path, inside: str, certain: bool | None) -> None:
    found = [stop.certain for stop in stops(tmp_path, inside=inside)]
    assert found == ([] if certain is None else [certain])


def test_a_version_that_is_kept_is_the_version(tmp_path: Path) -> None:
    inside = 'self.here = vllm.__version__\n        assert self.here >= "0.4.2"'
    (stop,) = stops(tmp_path, inside=inside)
    assert stop.certain and "versions compared as texts" in stop.what


def test_another_function_may_never_be_called(tmp_path: Path) -> None:
    (stop,) = stops(tmp_path, before='def other():\n    assert vllm.__version__ == "0.8.5"')
    assert not stop.certain


def test_an_argument_that_is_gone_is_named_in_the_release_that_lost_it(tmp_path: Path) -> None:
    more = "disable_mm_preprocessor_cache=True,"
    (stop,) = stops(tmp_path / "a", more=more)
    assert "disable_mm_preprocessor_cache" in stop.what and stop.certain
    assert not stops(tmp_path / "b", to="0.8.5", more=more)
    assert not stops(tmp_path / "c", more="an_own_argument=True,")
    assert not stops(tmp_path / "d", more=more, home="own.engines")  # another program's LLM


def test_a_class_that_is_called_by_another_name_is_asked_too(tmp_path: Path) -> None:
    text = ENGINE.replace("from {home} import LLM", "from vllm import LLM\nmake = LLM")
    text = text.replace("self.llm = LLM(", "self.llm = make(")
    for part in ("before", "more", "inside"):
        text = text.replace(f"{{{part}}}", {"more": "task='generate',", "inside": "pass"}.get(part, ""))
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "engine.py").write_text(text)
    (stop,) = stops_of(Checkout(str(tmp_path), "own"), ("own/engine.py",), Version("0.18.1"))
    assert stop.certain and "gives LLM task" in stop.what


def test_a_sampling_parameter_that_is_gone_stops_where_a_request_s_parameters_are_made(tmp_path: Path) -> None:
    made = """
from vllm import SamplingParams

def parameters(request):
    kwargs = {}
    for key in ("n", "best_of"):
        kwargs[key] = request[key]
    return SamplingParams(**kwargs)

def own(request):
    self.kept = SamplingParams(best_of=1)
"""
    found = stops(tmp_path, before=made)
    assert [(stop.certain, "best_of" in stop.what) for stop in found] == [(True, True), (False, True)]
    assert not stops(tmp_path / "before", before=made, to="0.8.5")


def test_a_branch_for_older_releases_is_not_read(tmp_path: Path) -> None:
    inside = (
        'if Version(vllm.__version__) < Version("0.9"):\n'
        "            LLM(model=1, disable_mm_preprocessor_cache=True)\n            raise ValueError"
    )
    assert not stops(tmp_path, inside=inside)


def test_a_file_that_builds_an_engine_itself_is_asked_too() -> None:
    text = 'import vllm\nassert vllm.__version__ == "0.8.5"\nllm = vllm.LLM("a/b", device="cuda")\n'
    (stop,) = stops_in(Source("run.py", text), Version("0.18.1"))
    assert stop.certain and stop.where == "run.py:2"


def test_what_is_no_python_says_nothing(tmp_path: Path) -> None:
    assert not stops(tmp_path, {"own/__init__.py": "vllm ((("})


def test_a_name_that_a_module_of_vllm_lost_is_named_also_where_the_package_hands_the_module_on(tmp_path: Path) -> None:
    inside = "self.group = ps.get_tensor_model_parallel_group()"
    (stop,) = stops(tmp_path / "a", before="from vllm.distributed import parallel_state as ps", inside=inside)
    assert stop.certain and "of vllm.distributed.parallel_state" in stop.what and "0.11.2 was the last" in stop.what
    handed = {"own/third/__init__.py": "from vllm.distributed import parallel_state\n"}
    (stop,) = stops(tmp_path / "b", handed, before="from own.third import parallel_state as ps", inside=inside)
    assert stop.certain and "get_tensor_model_parallel_group" in stop.what
    for before in ("from own.third import other as ps", "from vllm.distributed import parallel_state as ps\nps = 3"):
        assert not stops(tmp_path / before[:9] / before[-1], handed, before=before, inside=inside)
    assert not stops(
        tmp_path / "c", to="0.8.5", before="from vllm.distributed import parallel_state as ps", inside=inside
    )


@pytest.mark.parametrize(("filled", "found"), [
    ("kwargs = {}\n        kwargs['disable_mm_preprocessor_cache'] = True", [True]),
    ("kwargs = {'disable_mm_preprocessor_cache': True}", [True]),
    ("kwargs = dict(disable_mm_preprocessor_cache=True)", [True]),
    ("kwargs = {}\n        if config.x:\n            kwargs['disable_mm_preprocessor_cache'] = True", [False]),
    ("kwargs = {}\n        other = {'disable_mm_preprocessor_cache': True}", []),
    ("kwargs = {'seed': 1}", []),
])  # fmt: skip
def test_an_argument_in_a_dictionary_that_the_call_gets_is_one(tmp_path: Path, filled: str, found: list[bool]) -> None:
    assert [stop.certain for stop in stops(tmp_path, inside=filled, more="**kwargs,")] == found


def test_a_keyword_that_a_method_of_the_engine_lost_is_named_in_the_class_that_holds_one(tmp_path: Path) -> None:
    run = "\n    def run(self, ids):\n        return self.llm.generate(prompts=None, prompt_token_ids=ids)\n"
    other = "class Other:\n    def __init__(self):\n        self.llm = open('x')\n" + run
    text = ENGINE.replace("{home}", "vllm").replace("{before}", other).replace("{inside}", "pass").replace("{more}", "")
    path = tmp_path / "own/workers/engine.py"
    path.parent.mkdir(parents=True)
    path.write_text(text + run)
    (stop,) = stops_of(Checkout(str(tmp_path), "own"), ("own/workers/engine.py",), Version("0.18.1"))
    assert "gives LLM.generate prompt_token_ids" in stop.what and not stop.certain
    assert not stops_of(Checkout(str(tmp_path), "own"), ("own/workers/engine.py",), Version("0.8.5"))


def test_a_class_that_is_made_with_the_engine_is_reached_by_its_constructor(tmp_path: Path) -> None:
    manager = "from vllm.distributed import parallel_state as ps\nclass Manager:\n    def __init__(self):\n" + (
        "        self.group = ps.get_tensor_model_parallel_group()\n"
    )
    files = {"own/manager.py": manager, "own/workers/main.py": "from own.manager import Manager\n"}
    stops(tmp_path, files)
    for loaded, certain in (((("own/workers/main.py", "own/manager.py"),), [True]), ((), [])):
        found = stops_of(Checkout(str(tmp_path), "own"), ("own/workers/engine.py",), Version("0.18.1"), loaded)
        assert [stop.certain for stop in found] == certain


def test_a_call_whose_parameters_have_moved_is_named(tmp_path: Path) -> None:
    before = "from vllm.entrypoints.openai.api_server import init_app_state"
    inside = "init_app_state(engine, vllm_config, app.state, args)"
    (stop,) = stops(tmp_path / "a", before=before, inside=inside)
    assert not stop.certain and "takes state where vllm_config is passed in vLLM 0.18.1" in stop.what
    assert not stops(tmp_path / "b", to="0.8.5", before=before, inside=inside)
    assert not stops(tmp_path / "c", before="from own.app import init_app_state", inside=inside)
    assert not stops(tmp_path / "d", before=before, inside="init_app_state(engine, app.state, args, tasks)")
    assert not stops(tmp_path / "e", before=before, inside="init_app_state(*everything)")
