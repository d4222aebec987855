import pytest
from packaging.version import Version
from reading import read_one

from rlaudit.configs.readers.python import DIALECT
from rlaudit.report.setting_rows import setting_rows
from rlaudit.rules import known_rules
from rlaudit.rules.audit.audit import audit_of
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
    assert "are not known" in told and "`rlaudit record` shows them" in told


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


def test_one_of_two_literals_is_either_of_them() -> None:
    text = "from vllm import LLM\nllm = LLM('m', dtype='float16' if small else {}, seed=x if small else 1)\n"
    engine = read_one(DIALECT, text.format("'bfloat16'"), "0.18.1", "run.py").engine
    assert isinstance(engine["dtype"].value, Unknown) and engine["dtype"].value.among == ("float16", "bfloat16")
    assert isinstance(engine["seed"].value, Unknown) and engine["seed"].value.among == ()


def test_a_variable_that_the_new_release_does_not_read_has_no_value_there() -> None:
    before, after = (read_one(DIALECT, TEXT, vllm, "run.py") for vllm in ("0.8.5", "0.18.1"))
    audit = audit_of(before, after, (Version("0.8.5"), Version("0.18.1")), Machine())
    (row,) = [one for one in setting_rows(audit, 0) if one.name == "VLLM_USE_V1"]
    assert row.effective_from == "0" and row.moves
    assert row.effective_to == {"absent": "vLLM 0.18.1 does not read VLLM_USE_V1"}
