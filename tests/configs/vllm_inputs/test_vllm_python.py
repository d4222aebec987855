import pytest
from packaging.version import Version
from reading import read_all, read_one, rewritten, source_of

from rlaudit.configs.readers.python import DIALECT
from rlaudit.report.setting_rows import setting_rows
from rlaudit.rules import known_rules
from rlaudit.rules.audit.audit import audit_of
from rlaudit.settings.rollout_config import Loss
from rlaudit.unknown import Unknown
from rlaudit.vllm.lifetimes import lifetime
from rlaudit.vllm.machine import Machine

TEXT = """\
import os
from vllm import LLM, SamplingParams

os.environ["VLLM_USE_V1"] = "0"
MODEL = "org/model"


def main(args):
    llm = LLM(
        MODEL,
        dtype=torch.bfloat16,
        tensor_parallel_size=args.tp,
        enable_prefix_caching=False,  # stale otherwise
        nonsense=1,
    )
    params = SamplingParams(temperature=0.7, top_p=args.p, logprobs=1)
"""


def test_keywords_sampling_and_environment_are_read() -> None:
    config = read_one(DIALECT, TEXT, "0.18.1", "run.py")
    assert config.offline and config.model is not None and config.model.value == "org/model"
    assert config.engine["dtype"].value == "bfloat16" and config.engine["enable_prefix_caching"].value is False
    unknown = config.engine["tensor_parallel_size"].value
    assert isinstance(unknown, Unknown) and "args.tp" in unknown.reason
    assert config.sampling["temperature"].value == 0.7 and isinstance(config.sampling["top_p"].value, Unknown)
    assert config.environment["VLLM_USE_V1"].value == "0"
    assert [(lost.name, lost.loss) for lost in config.lost] == [("nonsense", Loss.REFUSED)]
    place = config.engine["enable_prefix_caching"].place
    assert place is not None and (place.line, TEXT[place.start : place.end]) == (13, "False")


def test_edits_keep_the_rest_of_the_call() -> None:
    config = read_one(DIALECT, TEXT, "0.18.1", "run.py")
    assert rewritten(config, TEXT, "enable_prefix_caching", True) == TEXT.replace("False,  #", "True,  #")
    edited = rewritten(config, TEXT, "logprobs_mode", "processed_logprobs")
    assert edited == TEXT.replace("nonsense=1,\n", 'nonsense=1,\n        logprobs_mode="processed_logprobs",\n')
    assert config.write("no_such_argument", 1) is None


def test_several_engines_and_an_engine_that_is_served() -> None:
    text = "from vllm import AsyncEngineArgs, LLM\nLLM(model='a', seed=1)\nx = AsyncEngineArgs(model='b', seed=2)\n"
    first, second = read_all(DIALECT, text, "0.18.1", "run.py")
    assert (first.engine["seed"].value, first.offline) == (1, True)
    assert (second.engine["seed"].value, second.offline) == (2, False)
    assert any("SamplingParams" in one for one in first.not_seen)


def test_samplers_that_differ_make_the_value_unknown() -> None:
    text = "from vllm import *\nLLM('m')\nSamplingParams(temperature=1, n=2)\nSamplingParams(temperature=0, n=2)\n"
    config = read_one(DIALECT, text, "0.18.1", "run.py")
    assert isinstance(config.sampling["temperature"].value, Unknown) and config.sampling["n"].value == 2


def test_a_sampler_that_scores_is_not_taken_for_the_rollouts_and_neither_is_hidden() -> None:
    rollout = "SamplingParams(n=8, temperature=0.9)"
    score = "SamplingParams(temperature=0, max_tokens=1, prompt_logprobs=1)"
    config = read_one(DIALECT, f"from vllm import *\nLLM('m')\n{rollout}\n{score}\n", "0.18.1", "run.py")
    for name in ("n", "temperature", "max_tokens", "prompt_logprobs"):
        value = config.sampling[name].value
        assert isinstance(value, Unknown) and value.fact == "SamplingParams in lines 3 and 4 differ", name


def test_of_samplers_the_one_that_asks_for_logprobs_is_the_rollouts_and_the_other_is_said() -> None:
    text = "from vllm import *\nLLM('m')\nSamplingParams(temperature=0.9, logprobs=0)\nSamplingParams(temperature=0)\n"
    config = read_one(DIALECT, text, "0.18.1", "run.py")
    assert config.sampling["temperature"].value == 0.9
    assert "SamplingParams in line 4: it requests no logprobs and is not taken for the rollout's" in config.not_seen


def test_keywords_from_elsewhere_are_said() -> None:
    text = "from vllm import LLM\ndef f(**kw):\n    return LLM('m', seed=1, **kw)\n"
    config = read_one(DIALECT, text, "0.18.1", "run.py")
    assert config.engine["seed"].value == 1 and any("**kw" in one for one in config.not_seen)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("run.py", "import vllm\n"),
        ("run.py", "from other import LLM\nLLM(api_key=1)  # not vllm\n"),
        ("run.txt", TEXT),
        ("run.py", "from vllm import LLM\nLLM("),
    ],
)
def test_other_files_are_not_recognised(path: str, text: str) -> None:
    assert not DIALECT.recognise(source_of(text, path))


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        ("if args.exact:\n    os.environ['VLLM_USE_V1'] = '0'", Unknown("VLLM_USE_V1 is set under a condition")),
        (
            "if x:\n    pass\nelse:\n    os.environ['VLLM_USE_V1'] = '0'",
            Unknown("VLLM_USE_V1 is set under a condition"),
        ),
        ("if 'VLLM_USE_V1' not in os.environ:\n    os.environ['VLLM_USE_V1'] = '0'", "0"),
        ("if not os.getenv('VLLM_USE_V1'):\n    os.environ['VLLM_USE_V1'] = '0'", "0"),
        ("if __name__ == '__main__':\n    os.environ['VLLM_USE_V1'] = '0'", "0"),
        ("if '__main__' == __name__:\n    os.environ['VLLM_USE_V1'] = '0'", "0"),
        (
            "if __name__ != '__main__':\n    os.environ['VLLM_USE_V1'] = '0'",
            Unknown("VLLM_USE_V1 is set under a condition"),
        ),
    ],
)
def test_a_variable_of_one_branch_is_open_and_a_default_for_the_environment_is_none(lines: str, value: object) -> None:
    text = f"import os\n{lines}\nfrom vllm import LLM\nllm = LLM(model='m')\n"
    assert read_one(DIALECT, text, "0.8.5", "loop.py").environment["VLLM_USE_V1"].value == value


LOOP = """\
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.v1.engine.async_llm import AsyncLLM
engine = AsyncLLM.from_engine_args(AsyncEngineArgs(model="m"))
async def update(engine):
    await engine.pause_generation(PAUSE)
    await engine.collective_rpc("update_weights_from_disk")
    await engine.resume_generation()
async def clean(engine):
    RESET
"""


def facts(pause: str, reset: str = "pass") -> dict[str, object]:
    config = read_one(DIALECT, LOOP.replace("PAUSE", pause).replace("RESET", reset), "0.18.1", "loop.py")
    assert not config.has_trainer
    return {name: setting.value for name, setting in config.trainer.items()}


def test_the_pause_of_a_hand_written_loop_is_read_with_its_defaults() -> None:
    assert facts('mode="keep"') == {
        "pause_mode": "keep", "pause_clears_cache": True, "pause_arguments": ["mode"],
        "weight_updates": "in flight", "resets_prefix_cache": False,
    }  # fmt: skip
    assert facts('mode="keep", clear_cache=False')["pause_clears_cache"] is False
    assert facts("wait_for_inflight_requests=True")["pause_mode"] == "wait"
    assert facts("")["pause_mode"] == "abort"
    assert facts("")["weight_updates"] == "between rollouts"
    assert isinstance(facts("mode=MODE")["pause_mode"], Unknown)


def test_a_reset_counts_where_the_weights_are_updated() -> None:
    assert isinstance(facts("", "await engine.reset_prefix_cache()")["resets_prefix_cache"], Unknown)
    together = 'mode="abort"); await engine.reset_prefix_cache('
    assert facts(together)["resets_prefix_cache"] is True


def test_pauses_that_differ_tell_nothing() -> None:
    assert isinstance(facts("", 'await engine.pause_generation(mode="keep")')["pause_mode"], Unknown)


def test_updates_of_an_engine_in_process_run_between_rollouts_and_salts_are_seen() -> None:
    text = (
        'from vllm import LLM\nllm = LLM(model="m", seed=1)\nllm.collective_rpc("load_weights")\nllm.generate(["x"])\n'
    )
    config = read_one(DIALECT, text, "0.18.1", "loop.py")
    assert config.facts.weight_updates == "between rollouts"
    assert config.facts.salts_prefix_cache is False
    salted = read_one(DIALECT, text + 'EXTRA = {"cache_salt": "1"}\n', "0.18.1", "loop.py")
    assert isinstance(salted.trainer["salts_prefix_cache"].value, Unknown)


@pytest.mark.parametrize(
    "home", ["verl.third_party.vllm", "verl.third_party.vllm.arg_utils", ".vllm", "langchain.llms"]
)
def test_a_class_of_that_name_from_elsewhere_is_not_vllms(home: str) -> None:
    text = f"from {home} import LLM  # made like vllm's\nllm = LLM(model=None, swap_space=4, hf_config=cfg)\n"
    assert not DIALECT.recognise(source_of(text, "engine.py"))
    assert DIALECT.recognise(source_of(text.replace(home, "vllm"), "engine.py"))


def test_an_argument_of_a_subclass_is_its_own() -> None:
    text = "from vllm import LLM\nclass Mine(LLM):\n    def __init__(self, *a, bundle_indices, **k):\n        pass\n"
    config = read_one(DIALECT, text + "Mine(model='m', bundle_indices=[0], wrong=1)\n", "0.18.1", "engine.py")
    assert {lost.name for lost in config.lost} == {"wrong"}
    assert any("bundle_indices, which a subclass" in one for one in config.not_seen)


# What opens a call is written in many ways; what it may name is unknown, and nobody's default.
@pytest.mark.parametrize("engine", ["LLM", "EngineArgs", "AsyncEngineArgs"])
@pytest.mark.parametrize("rest", ["**kw", "**load(path)", "**(BASE | kw)", "**asdict(given)"])
def test_what_an_open_call_does_not_name_is_not_left_to_vllm(engine: str, rest: str) -> None:
    text = f"from vllm import {engine}, SamplingParams\nBASE = {{}}\ndef f(kw, given, path):\n"
    text += f"    return {engine}(model='m', dtype='bfloat16', {rest})\n"
    text += "SamplingParams(temperature=1.0, top_p=1.0, top_k=-1, min_p=0.0)\n"
    config = read_one(DIALECT, text, "0.18.1", "run.py")
    assert config.engine["dtype"].value == "bfloat16" and list(config.engine) == ["dtype"]
    assert isinstance(config.engine["seed"].value, Unknown)
    versions = Version("0.8.5"), Version("0.18.1")
    audit = audit_of(read_one(DIALECT, text, "0.8.5", "run.py"), config, versions, Machine())
    moved = {row.name for row in setting_rows(audit, 0) if row.group == "engine" and row.moves}
    assert not any(lifetime("engine", name) for name in moved)
    for rule in known_rules().values():
        said = [found.message for found in rule.check(audit)]
        assert not any("Nothing sets" in one or "No seed" in one or "whose default changed" in one for one in said), (
            rule.name
        )
    (told,) = [one for one in config.not_seen if one.startswith("further arguments")]
    assert "what the call does not name is open" in told


def test_a_closed_call_leaves_the_rest_to_vllm() -> None:
    text = "from vllm import LLM\nREST = {'dtype': 'bfloat16'}\nLLM(model='m', **REST)\n"
    config = read_one(DIALECT, text, "0.18.1", "run.py")
    assert config.engine["dtype"].value == "bfloat16" and config.engine.get("seed") is None


PLACED = "import ray\nfrom vllm import LLM\nstrategy = PlacementGroupSchedulingStrategy(placement_group=group)\n"


@pytest.mark.parametrize(("built", "placed"), [
    ("ray.remote(scheduling_strategy=strategy)(LLM).remote(model='m')", True),
    ("@ray.remote\nclass A:\n    def __init__(self):\n        self.llm = LLM(model='m')", True),
    ("class A:\n    def __init__(self):\n        self.llm = LLM(model='m')\nA_ = ray.remote(num_gpus=1)(A)", True),
    ("llm = LLM(model='m')", False),
])  # fmt: skip
def test_an_engine_of_an_actor_in_a_placement_group_is_told_from_one_of_the_program(built: str, placed: bool) -> None:
    assert read_one(DIALECT, PLACED + built, "0.18.1", "run.py").placed_by_ray is placed
    assert not read_one(DIALECT, PLACED.replace("PlacementGroup", "Node") + built, "0.18.1", "run.py").placed_by_ray


def test_of_a_server_of_one_s_own_the_command_line_decides() -> None:
    text = (
        "from vllm import AsyncEngineArgs\nfrom vllm.utils import FlexibleArgumentParser\n"
        "args = AsyncEngineArgs.add_cli_args(FlexibleArgumentParser()).parse_args()\n"
        "engine_args = AsyncEngineArgs.from_cli_args(args)\n"
    )
    config = read_one(DIALECT, text, "0.18.1", "server.py")
    assert isinstance(config.engine.get("enable_prefix_caching").value, Unknown)
    assert config.model is None and not config.lost
    assert any("the command line of the program decides" in one for one in config.not_seen)
    mine = text.replace("from vllm import", "from mine import")
    assert not DIALECT.recognise(source_of(mine, "server.py"))


def test_vllms_server_inside_a_program_is_an_engine_whose_arguments_are_open() -> None:
    text = (
        "from vllm.entrypoints.openai.api_server import run_server\n"
        "from vllm.entrypoints.openai.cli_args import make_arg_parser\n"
        "from vllm.utils import FlexibleArgumentParser\n\n\ndef serve(more):\n"
        "    args = make_arg_parser(FlexibleArgumentParser()).parse_args([])\n    args.__dict__.update(more)\n"
        "    asyncio.run(run_server(args))\n"
    )
    config = read_one(DIALECT, text, "0.18.1", "server.py")
    assert isinstance(config.engine.get("enable_prefix_caching").value, Unknown)
    assert any("what the program hands to vLLM's server decides them" in one for one in config.not_seen)
    assert config.write("async_scheduling", False) is None
    assert not DIALECT.recognise(source_of(text.replace("from vllm.", "from mine."), "server.py"))
    own = text + "    return AsyncEngineArgs(model='m')\n"
    assert read_one(DIALECT, f"from vllm import AsyncEngineArgs\n{own}", "0.18.1", "server.py").model is not None


def test_one_of_two_literals_is_either_of_them() -> None:
    text = "from vllm import LLM\nllm = LLM('m', dtype='float16' if small else {}, seed=x if small else 1)\n"
    engine = read_one(DIALECT, text.format("'bfloat16'"), "0.18.1", "run.py").engine
    assert isinstance(engine["dtype"].value, Unknown) and engine["dtype"].value.among == ("float16", "bfloat16")
    assert isinstance(engine["seed"].value, Unknown) and engine["seed"].value.among == ()


def test_a_dictionary_that_is_changed_after_it_was_made_is_open() -> None:
    text = (
        "from vllm import LLM\n\n\ndef build(more, eager):\n    given = {'model': 'm', 'seed': 1}\n"
        "    if eager:\n        given['enforce_eager'] = True\n    given.update(more)\n"
        "    return LLM(**given)\n"
    )
    engine = read_one(DIALECT, text, "0.18.1", "run.py").engine
    assert set(engine) == {"seed"} and "line 7 changes given" in engine["seed"].value.reason
    assert isinstance(engine["enforce_eager"].value, Unknown)


def test_an_argument_of_a_function_is_open_whatever_its_default_and_its_calls() -> None:
    text = "from vllm import LLM\n\n\ndef build(seed=3):\n    return LLM('m', seed=seed)\n\n\nbuild(4)\n"
    assert read_one(DIALECT, text, "0.18.1", "run.py").engine["seed"].value.reason == "seed is an argument of build()"


def test_a_variable_that_the_new_release_does_not_read_has_no_value_there() -> None:
    before, after = (read_one(DIALECT, TEXT, vllm, "run.py") for vllm in ("0.8.5", "0.18.1"))
    audit = audit_of(before, after, (Version("0.8.5"), Version("0.18.1")), Machine())
    (row,) = [one for one in setting_rows(audit, 0) if one.name == "VLLM_USE_V1"]
    assert row.effective_from == "0" and row.moves
    assert row.effective_to == {"absent": "vLLM 0.18.1 does not read VLLM_USE_V1"}


UNDER = "import inspect, vllm\nfrom packaging import version\nfrom vllm import EngineArgs\n{}\n"
GONE = "a = EngineArgs(model='m', disable_log_requests=True)"


@pytest.mark.parametrize(("around", "is_open"), [
    (f"if version.parse(vllm.__version__) < version.parse('0.10.0'): {GONE}", True),
    (f"OLD = vllm.__version__ < '0.10'\nif OLD: {GONE}", True),
    (f"if 'enable_log_requests' in names: pass\nelif 'disable_log_requests' in names: {GONE}", True),
    (f"takes = inspect.signature(EngineArgs).parameters\nif name in takes: {GONE}", True),
    (f"if hasattr(EngineArgs, 'disable_log_requests'): {GONE}", True),
    (f"try: {GONE}\nexcept TypeError: a = None", True),
    (f"if quiet: {GONE}", False), (f"try: load()\nexcept TypeError: {GONE}", False),
])  # fmt: skip
def test_an_argument_under_a_test_of_what_vllm_takes_is_open_in_a_release_without_it(
    around: str, is_open: bool
) -> None:
    before, after = (read_one(DIALECT, UNDER.format(around), vllm, "run.py") for vllm in ("0.8.5", "0.18.1"))
    assert before.engine["disable_log_requests"].value is True
    assert ("disable_log_requests" not in after.engine) is is_open
    assert any("disable_log_requests in line" in sentence for sentence in after.not_seen) is is_open
