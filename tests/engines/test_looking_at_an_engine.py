"""The scripts that ask an engine what it loaded, and whether its logprobs depend on the batch."""

import importlib.util
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlaudit.engines.inside import __path__ as vllm_folder

SCRIPTS = Path(vllm_folder[0]) / "scripts"


def script(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answer(backend: str | None, batches: int) -> str:
    ran = {"batches": batches, "flashinfer_batches": 0, "cascade": None, "graphs": None}
    because = {} if backend else {"attention_backend": "no attention layer"}
    return json.dumps({"features": {"attention_backend": backend}, "because": because, "failed": {}, "ran": ran})


@pytest.mark.parametrize(
    ("workers", "said", "because", "batches"),
    [
        ((("FLASH_ATTN", 5), ("FLASH_ATTN", 5)), "FLASH_ATTN", {}, 5),
        ((("FLASH_ATTN", 0), ("TRITON_ATTN", 7)), "FLASH_ATTN / TRITON_ATTN", {}, 7),
        (((None, 0),), None, {"attention_backend": "no attention layer"}, 0),
    ],
    ids=["that agree", "that do not", "without one"],
)
def test_workers_give_the_value_of_all_each_of_theirs_or_the_reason_why_there_is_none(
    workers: Any, said: str | None, because: dict[str, str], batches: int
) -> None:
    told = script("loaded_engine").loaded(lambda method: [answer(*one) for one in workers], None)
    assert told["features"] == {"attention_backend": said}
    assert told["because"] == because
    assert told["ran"]["batches"] == batches


def test_an_engine_that_does_not_answer_is_recorded_and_nothing_is_raised() -> None:
    def refuses(method: str) -> list[str]:
        raise AttributeError(f"the worker has no {method}")

    asked = script("loaded_engine")
    unseen = asked.watch(refuses)
    assert unseen == "AttributeError: the worker has no rlaudit_watch"
    told = asked.loaded(refuses, unseen)
    assert (told["features"], told["ran"], told["failed"]) == ({}, None, {"worker": unseen})


def test_a_recipes_own_worker_extension_is_left_in_place_and_said() -> None:
    asked, own = script("loaded_engine"), {"worker_extension_cls": "mine.Extension"}
    assert "mine.Extension" in asked.attach(own, {"worker_extension_cls"})
    assert own == {"worker_extension_cls": "mine.Extension"}
    assert "no worker_extension_cls" in asked.attach({}, {"model"})
    free: dict[str, str] = {}
    assert asked.attach(free, {"worker_extension_cls"}) is None
    assert free == {"worker_extension_cls": "rlaudit_loaded_engine.LoadedEngine"}


def test_extensions_are_offered_to_processes_that_start_with_an_empty_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", "/of/the/recipe")
    script("loaded_engine").offer_extensions()
    script("loaded_engine").offer_extensions()
    folder = str(Path(vllm_folder[0]) / "extension")
    assert os.environ["PYTHONPATH"].split(os.pathsep) == ["/of/the/recipe", folder]
    assert sys.path.count(folder) == 1


class Engine:
    """Returns logprobs that depend on the size of the batch from token `differs_at` on."""

    def __init__(self, differs_at: int | None) -> None:
        self.differs_at, self.asked, self.resets = differs_at, [], 0  # type: ignore[var-annotated]

    def reset_prefix_cache(self) -> None:
        self.resets += 1

    def generate(self, prompts: list[Any], parameters: list[Any], use_tqdm: bool) -> list[list[float]]:
        self.asked.append((prompts, parameters))
        shift = [0.0 if self.differs_at is None or at < self.differs_at else len(prompts) / 1024 for at in range(4)]
        return [[-1.0 - part for part in shift] for _ in prompts]


def row(request: Any, output: list[float], top: int) -> dict[str, Any]:
    return {
        "token_ids": list(range(len(output))),
        "logprobs": output,
        "top_ids": [[0]] * len(output),
        "top_logprobs": [[value] for value in output],
    }


JOB = {
    "prompt_token_ids": [list(range(1000)), [5, 6]],
    "sampling": {"temperature": 0.7, "max_tokens": 512, "min_tokens": 100},
    "top_logprobs": 1,
}


def probed(engine: Any, device: str = "cpu") -> Any:
    return script("batch_probe").probe(device, JOB, engine, SimpleNamespace, row)


def test_logprobs_that_agree_alone_and_in_a_batch_are_identical() -> None:
    engine = Engine(None)
    assert probed(engine) == {"identical": True, "requests": 16, "tokens": 4, "differs_at": None, "by": 0.0}
    (alone, own), (among, others) = engine.asked
    assert (len(alone), len(among), engine.resets) == (1, 16, 2)
    assert alone[0] == among[0] and len(alone[0]["prompt_token_ids"]) == 16
    assert own[0] == others[0] and own[0].max_tokens == 4 and own[0].ignore_eos and not hasattr(own[0], "min_tokens")


def test_the_first_token_that_depends_on_the_batch_is_named_and_a_gpu_is_asked_for_more() -> None:
    differs = {"identical": False, "requests": 16, "tokens": 4, "differs_at": 3, "by": pytest.approx(15 / 1024)}
    assert probed(Engine(3)) == differs
    engine = Engine(None)
    assert probed(engine, "cuda")["requests"] == len(engine.asked[1][0]) == 64
    assert engine.asked[1][1][0].max_tokens == 64


def test_an_engine_that_dies_under_the_question_leaves_its_measurements_alone() -> None:
    engine = Engine(None)
    engine.generate = None  # type: ignore[method-assign,assignment]
    assert probed(engine)["error"].startswith("TypeError: ")


class Scorer:
    """Returns prompt logprobs that hold the temperature, or leave it out."""

    def __init__(self, heats: bool) -> None:
        self.heats, self.asked = heats, []  # type: ignore[var-annotated]

    def generate(self, prompts: list[Any], parameters: list[Any], use_tqdm: bool) -> list[Any]:
        self.asked.append((prompts, parameters))
        logprobs = [-1.0 / own.temperature if self.heats else -1.0 for own in parameters]
        return [
            SimpleNamespace(
                prompt_logprobs=[None]
                + [{token: SimpleNamespace(logprob=logprob)} for token in prompt["prompt_token_ids"][1:]]
            )
            for prompt, logprob in zip(prompts, logprobs, strict=True)
        ]


SAMPLED = [
    {"prompt": 1, "token_ids": [7, 8], "logprobs": [-2.0, -2.0]},
    {"prompt": 0, "token_ids": [9], "logprobs": [-2.0]},
    {"prompt": 0, "token_ids": [4, 4, 4], "logprobs": [-2.0] * 3},
    {"prompt": 2, "token_ids": [], "logprobs": []},
]
SCORED: dict[str, Any] = {
    "prompt_token_ids": [[1, 2], [3], [5]],
    "sampling": {"temperature": 0.5, "top_k": 20, "max_tokens": 64, "min_tokens": 2, "ignore_eos": True},
}


@pytest.mark.parametrize(("heats", "by_temperature", "from_sampled"), [(True, 1.0, 0.0), (False, 0.0, 1.0)])
def test_prompt_logprobs_are_held_against_another_temperature_and_against_sampling(
    heats: bool, by_temperature: float, from_sampled: float
) -> None:
    engine = Scorer(heats)
    probe = script("prompt_probe").probe(SAMPLED, SCORED, engine, SimpleNamespace)
    assert probe["sequences"] == [
        {"tokens": tokens, "by_temperature": tokens * by_temperature, "from_sampled": tokens * from_sampled}
        for tokens in (1, 2)
    ]
    (prompts, at_temperature), (_, at_one) = engine.asked
    assert [prompt["prompt_token_ids"] for prompt in prompts] == [[1, 2, 9], [3, 7, 8]]
    assert (at_temperature[0].temperature, at_one[0].temperature) == (0.5, 1.0)
    assert (at_one[0].top_k, at_one[0].max_tokens) == (20, 1) and not hasattr(at_one[0], "min_tokens")


def test_a_token_that_the_filters_exclude_counts_in_no_sum() -> None:
    minus = float("-inf")
    compared = script("prompt_probe").compared([minus, -2.0], [-3.0, -1.0], [-0.5, -2.0])
    assert compared == {"tokens": 1, "by_temperature": 1.0, "from_sampled": 0.0}


def test_an_engine_that_refuses_prompt_logprobs_is_recorded_in_its_words() -> None:
    def refuses(*_: Any, **__: Any) -> None:
        raise ValueError("prompt logprobs are\nnot supported")

    engine = SimpleNamespace(generate=refuses)
    probe = script("prompt_probe").probe(SAMPLED, SCORED, engine, SimpleNamespace)
    assert probe == {"error": "ValueError: prompt logprobs are not supported"}


def prompt_probed(engine: Any, sampled: Any = SAMPLED, **job: Any) -> Any:
    return script("prompt_probe").probe(sampled, {**SCORED, **job}, engine, SimpleNamespace)


@pytest.mark.parametrize("temperature", [1.0, 0.0])
def test_at_temperature_1_and_for_greedy_tokens_there_is_nothing_to_tell_apart(temperature: float) -> None:
    assert prompt_probed(None, sampling={"temperature": temperature}) == {}


def test_long_sequences_are_not_sent_as_prompts_and_those_without_a_finite_token_are_none() -> None:
    engine = Scorer(True)
    assert len(prompt_probed(engine, prompt_token_ids=[[1] * 600, [3], [5]])["sequences"]) == 1
    assert all(len(prompts) == 1 for prompts, _ in engine.asked)
    infinite = [{"prompt": 0, "token_ids": [9], "logprobs": [float("-inf")]}]
    assert prompt_probed(engine, infinite) == {"sequences": []}
