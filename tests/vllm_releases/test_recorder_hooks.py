"""What the recorder hooks and reads, held against what the catalogue knows of every release."""

import ast
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest
from extract_catalogue.hook_changes import changes
from extract_catalogue.hooks import hooks, objects_read, record_hooks
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from vllm_sources import tree_of

from rlaudit.recording.hook_points import (
    ASYNC,
    FILE,
    PARTS,
    RECORDER,
    hook_points,
    read_hook_points,
    where_recorded,
)
from rlaudit.vllm.catalogue import known_versions

RELEASES = [pytest.param(release, id=str(release)) for release in known_versions()]
# Releases with V0 beside V1, and its methods among those of PARTS.
HAS_V0 = SpecifierSet("<0.11")
OF_V0 = ("vllm.engine.llm_engine:", "vllm.outputs:")
# What vLLM itself did not have: its engines could not be paused.
NOT_THERE = {"pauses": SpecifierSet("<0.12"), "resumptions": SpecifierSet("<0.12")}
# What the recorder reads of what it is given, by class, with the releases that have it.
EVERY, V0 = SpecifierSet(), HAS_V0
READ = {
    "vllm.v1.engine:EngineCoreRequest": {
        "request_id prompt_token_ids sampling_params lora_request": EVERY,
        "cache_salt": SpecifierSet(">=0.9"),
        # 0.10.1 has neither: its images are `mm_kwargs`.
        "mm_inputs": SpecifierSet("<0.10.1"),
        "mm_features": SpecifierSet(">=0.10.2"),
    },
    "vllm.v1.engine:EngineCoreOutput": {
        "request_id new_token_ids new_logprobs finish_reason": EVERY,
        "num_cached_tokens": SpecifierSet(">=0.9,<0.20"),
        "prefill_stats": SpecifierSet(">=0.20"),
    },
    "vllm.v1.metrics.stats:PrefillStats": {"num_cached_tokens": SpecifierSet(">=0.20")},
    "vllm.v1.outputs:LogprobsLists": {"logprobs": EVERY},
    "vllm.v1.engine.output_processor:OutputProcessor": {"request_states": EVERY},
    "vllm.v1.engine.output_processor:OutputProcessorOutput": {"reqs_to_abort": EVERY},
    "vllm.v1.engine.output_processor:RequestState": {"detokenizer": EVERY},
    "vllm.v1.engine.detokenizer:BaseIncrementalDetokenizer": {"output_token_ids": EVERY},
    "vllm.v1.engine.core:EngineCore": {"scheduler": EVERY},
    "vllm.v1.core.sched.scheduler:Scheduler": {"requests": EVERY},
    "vllm.v1.core.sched.output:SchedulerOutput": {"total_num_scheduled_tokens": EVERY},
    "vllm.v1.worker.gpu_worker:Worker": {"device rank load_model get_model model_runner execute_model": EVERY},
    "vllm.engine.llm_engine:LLMEngine": {"get_num_unfinished_requests": V0},
    "vllm.sequence:SequenceGroup": {"sampling_params seqs request_id lora_request is_finished multi_modal_data": V0},
    "vllm.sequence:Sequence": {"prompt_token_ids get_output_len get_output_token_ids output_logprobs data status": V0},
    "vllm.sequence:SequenceData": {"get_num_cached_tokens": V0},
    # It moved within V0's last releases; no class is imported, so that its place is all the same to the recorder.
    "vllm.sequence:Logprob": {"logprob": SpecifierSet("<0.10.2")},
    "vllm.logprobs:Logprob": {"logprob": SpecifierSet(">=0.10.2")},
}


@pytest.mark.parametrize("release", RELEASES)
def test_every_part_is_recorded_in_each_engine_of_a_release_that_has_it(release: Version) -> None:
    points = hook_points()
    for engine in ("V0", "V1") if release in HAS_V0 else ("V1",):
        missing = {part for part in PARTS if not any(_serves(one, engine) for one in points.found(part, release))}
        assert missing == {part for part, releases in NOT_THERE.items() if release in releases}


def _serves(target: str, engine: str) -> bool:
    """Return whether a method is of an engine. The configuration and the wrapper of workers are of both."""
    if target.startswith(("vllm.engine.arg_utils:", "vllm.worker.worker_base:")):
        return True
    return target.startswith(OF_V0) == (engine == "V0")


@pytest.mark.parametrize("release", RELEASES)
def test_arguments_stand_where_the_recorder_reads_them(release: Version) -> None:
    points, read, seen = hook_points(), _arguments_read(), set()
    for target in {target for targets in PARTS.values() for target in targets}:
        taken = points.hooks.names(target, release) - {ASYNC}
        for place, name in read.get(target.rpartition(".")[2], ()) if taken else ():
            assert _positional(next(iter(taken)))[place : place + 1] == [name], target
            seen.add(name)
    v1 = {"request", "parent_req", "request_index", "engine_core_outputs", "engine_core_timestamp"}
    assert seen == v1 | ({"seq_group", "request_id"} if release in HAS_V0 else set())


def _positional(parameters: str) -> list[str]:
    """The parameters that may be passed without a name, of `self,request,parent_req=,*,queue=`."""
    before_star = takewhile(lambda word: not word.startswith("*"), parameters.split(","))
    return [word.removesuffix("=") for word in before_star]


def _arguments_read() -> dict[str, set[tuple[int, str]]]:
    """Return places and names that the recorder reads, by the name of the method: call.argument(1, "x")."""
    read: dict[str, set[tuple[int, str]]] = {}
    for file in (RECORDER, RECORDER.with_name("rlaudit_v0.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        for method, handlers in _handlers(tree):
            for handler in ast.walk(handlers):
                if isinstance(handler, ast.Name):
                    read.setdefault(method, set()).update(_read_by(functions[handler.id]))
    return read


def _handlers(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield the methods that have handlers of their own, with these."""
    for node in tree.body:
        match node:
            case ast.Assign([ast.Name("HANDLERS" | "_HANDLERS")], ast.Dict() as pairs):
                for method, handlers in zip(pairs.keys, pairs.values, strict=True):
                    assert isinstance(method, ast.Constant)
                    yield method.value, handlers


def _read_by(handler: ast.FunctionDef) -> Iterator[tuple[int, str]]:
    """Yield what a handler asks of a call, or takes by name where it is the method's wrapper itself."""
    for node in ast.walk(handler):
        match node:
            case ast.Call(ast.Attribute(attr="argument"), [ast.Constant(place), ast.Constant(name), *_]):
                yield place, name
            case ast.FunctionDef(name="recorded", args=arguments):
                yield from list(enumerate(one.arg for one in arguments.args))[1:]


@pytest.mark.parametrize("release", RELEASES)
def test_objects_have_what_the_recorder_reads_of_them(release: Version) -> None:
    points = hook_points()
    for owner, lists in READ.items():
        read = {name: release in releases for names, releases in lists.items() for name in names.split()}
        has = points.objects.names(owner, release)
        assert {name: name in has for name in read} == read, owner


def test_the_hooks_of_every_catalogued_release_are_recorded() -> None:
    assert hook_points().releases == known_versions()


def test_only_what_pauses_and_resumes_an_async_llm_is_a_coroutine() -> None:
    coroutines = {
        target
        for target, lists in hook_points().hooks.spans.items()
        if any(ASYNC in names.split() for names in lists.values())
    }
    assert {target.rpartition(".")[2] for target in coroutines} == {"pause_generation", "resume_generation"}


OLD = """
class OutputProcessor:
    def add_request(self, request, prompt, parent_req=None, request_index=0): ...
    def process_outputs(self, engine_core_outputs): ...
"""
NEW = """
class OutputProcessor:
    async def add_request(self, prompt, request, *, parent_req=None): ...
    def __init__(self): self.request_states = {}
"""


def test_a_new_release_names_what_has_moved(tmp_path: Path) -> None:
    record_hooks(Version("1.0"), tree_of(v1__engine__output_processor=OLD), tmp_path)
    record_hooks(Version("1.1"), tree_of(v1__engine__output_processor=NEW), tmp_path)
    points, processor = read_hook_points(tmp_path), "vllm.v1.engine.output_processor:OutputProcessor"
    assert list(changes(Version("1.0"), points)) == []
    assert list(changes(Version("1.1"), points)) == [
        "not recorded any more: tokens",
        f"{processor}.add_request: (self, request, prompt, parent_req=, request_index=) in 1.0, "
        "async (self, prompt, request, *, parent_req=) in 1.1",
        f"{processor}.process_outputs: (self, engine_core_outputs) in 1.0, missing in 1.1",
        f"{processor} lost process_outputs",
        f"{processor} has got request_states",
    ]
    assert "  tokens" + " " * 34 + "1.0 to 1.0" in where_recorded(points).splitlines()
    assert (tmp_path / FILE).read_text(encoding="utf-8").count("\n") < 12


def test_an_inherited_method_and_another_class_under_the_name_are_no_hooks() -> None:
    inherited = "class Base:\n    def sleep(self): ...\nclass EngineCore(Base):\n    pass"
    assert hooks(tree_of(v1__engine__core=inherited)) == {}
    alias = "from vllm.v1.engine.llm_engine import LLMEngine as V1LLMEngine\nLLMEngine = V1LLMEngine"
    tree = tree_of(engine__llm_engine=alias, v1__engine__llm_engine="class LLMEngine:\n    def sleep(self): ...")
    assert hooks(tree) == {}


def test_attributes_that_the_recorder_does_not_mention_are_left_out() -> None:
    tree = tree_of(v1__outputs="class LogprobsLists:\n    logprobs: list\n    of_no_interest: int")
    assert objects_read(tree) == {"vllm.v1.outputs:LogprobsLists": {"logprobs"}}


def test_the_table_says_since_when_a_part_is_recorded() -> None:
    table = {line[2:42].strip(): line[42:].strip() for line in where_recorded().splitlines()[1:]}
    assert table["tokens"] == "all"
    assert table["pauses"] == "0.12.0 and later"
    assert table["a worker's update_weights"].endswith("and later")
