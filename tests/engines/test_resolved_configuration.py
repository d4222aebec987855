"""What the generation script tells of a loaded engine's configuration, whatever the release calls its parts."""

import importlib.util
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from rlaudit.engines.inside.engine import ENGINE
from rlaudit.laboratory.studies.arms.plan import known_factors


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ENGINE.generate)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def engine(**parts: Any) -> SimpleNamespace:
    parts = {"model_config": SimpleNamespace(get_diff_sampling_param=dict)} | parts
    return SimpleNamespace(llm_engine=SimpleNamespace(vllm_config=SimpleNamespace(**parts)))


def test_a_factor_reads_what_no_report_has(generate: ModuleType) -> None:
    scheduler = SimpleNamespace(policy="fcfs", max_num_seqs=8)
    told = generate.resolve(engine(scheduler_config=scheduler), {"policy": ["scheduler_config.policy"]})
    assert (told["policy"], told["max_num_seqs"]) == ("fcfs", 8)


def test_what_a_release_calls_otherwise_is_found_and_what_it_lacks_is_null(generate: ModuleType) -> None:
    older = engine(scheduler_config=SimpleNamespace(chunked_prefill_enabled=True))
    told = generate.resolve(older, {"gone": ["attention_config.backend", "model_config.nowhere"]})
    assert (told["enable_chunked_prefill"], told["gone"], told["attention_backend"]) == (True, None, None)


def test_completions_of_one_request_are_samples_of_their_own(generate: ModuleType) -> None:
    completions = [SimpleNamespace(token_ids=[], logprobs=[], finish_reason="stop") for _ in range(2)]
    llm = SimpleNamespace(
        generate=lambda prompts, *_, **__: [SimpleNamespace(outputs=completions, num_cached_tokens=0)]
    )
    job = {
        "requests": [{"prompt": 0, "sample": 2, "round": 1, "seed": 9}],
        "prompt_token_ids": [[1, 2]],
        "sampling": {"temperature": 0.7, "n": 2},
        "top_logprobs": 5,
        "concurrency": "batch",
    }
    events: list[dict[str, int]] = []
    channel = SimpleNamespace(emit=lambda _, **fields: events.append(fields))
    rows = generate.generate(job, llm, SimpleNamespace, channel)
    assert [(row["prompt"], row["sample"], row["round"]) for row in rows] == [(0, 2, 1), (0, 3, 1)]
    assert events == [{"done": 1, "total": 1}]


def test_no_two_factors_and_no_report_mean_different_things_by_one_name(generate: ModuleType) -> None:
    known = {name: tuple(paths) for name, paths in generate.RESOLVED.items()}
    for factor in known_factors().values():
        for name, paths in factor.reads.items():
            assert known.setdefault(name, paths) == paths, factor.name
