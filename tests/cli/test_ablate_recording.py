"""A recording asked again: a training over V0 of which every logprob is known, replayed and tried on V1."""

import functools
import importlib.util
import json
import math
import random
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from laboratories import FAKES, V0, V1, Laboratory, Run
from written_recording import WrittenProcess

from rlaudit.laboratory.studies.arms.rollout import MOST_ASKED_AGAIN

KNOWN_MODEL = importlib.util.spec_from_file_location("known_model", FAKES / "known_model.py")
assert KNOWN_MODEL is not None and KNOWN_MODEL.loader is not None
known_model = importlib.util.module_from_spec(KNOWN_MODEL)
KNOWN_MODEL.loader.exec_module(known_model)

TEMPERATURE = 0.7
PROMPTS, SAMPLES, TOKENS = 16, 4, 12


@functools.cache
def sampled_from(token: int, temperature: float) -> tuple[list[float], list[float]]:
    """The logprobs after a token, and the probabilities."""
    logprobs = known_model.log_softmax([logit / temperature for logit in known_model.logits_after(token)])
    return logprobs, [math.exp(logprob) for logprob in logprobs]


def recorded(
    folder: Path,
    model: Path,
    temperature: float = TEMPERATURE,
    updated: bool = False,
    longer: int = 1,
    tokens: int | None = None,
    environment: Mapping[str, str] | None = None,
    lora: str | None = None,
    **written: object,
) -> Path:
    """A recording of V0, whose logprobs are those that it samples with. temperature: of what was really sampled.

    updated: whether every completion meets an update of the weights, so that none is of the first ones. longer: how
    many times as long prompts and completions are. tokens: of a completion, if not so many.
    """
    front, most = WrittenProcess(folder), TOKENS * longer
    front.lines[0].update(versions={"vllm": V0, "torch": "2.6.0"}, environment=environment or {})
    arguments = {"model": str(model), "dtype": "float32", "enforce_eager": True, **written}
    effective = {
        "model_config": {"model": str(model), "dtype": "torch.float32", "enforce_eager": True, "seed": 0},
        "cache_config": {"enable_prefix_caching": False, "block_size": 16},
        "device_config": {"device": "cpu", "device_type": "cpu"},
    }
    front.put("engine", number=1, **{"class": "EngineArgs"}, written=arguments, effective=effective, error=None)
    front.sampling(temperature=TEMPERATURE, max_tokens=most)
    for number in range(PROMPTS):
        prompt = [(number * 7 + place) % known_model.VOCABULARY for place in range(20 * longer)]
        for sample in range(SAMPLES):
            request = front.request(prompt, index=sample, lora=lora)
            source = random.Random(1000 * number + sample)
            last, ids, logprobs = prompt[-1], [], []
            for _ in range(tokens or most):
                own, weights = sampled_from(last, temperature)
                last = source.choices(range(len(own)), weights)[0]
                ids.append(last)
                logprobs.append(own[last])
            steps = []
            for place, _ in enumerate(ids):
                steps.append([front.step(1), 1, 1])
                if updated and place == 0:
                    front.load()
            front.sequence(request, prompt, ids, logprobs, steps)
    return front.write()


def replay(laboratory: Laboratory, recording: Path, *more: str) -> Run:
    return laboratory.ablate(recording, "--to", V1, "--quiet", *more)


@pytest.fixture(scope="module")
def replayed(shared_laboratory: Laboratory) -> Run:
    recording = recorded(shared_laboratory.folder / "today", shared_laboratory.model)
    return replay(shared_laboratory, recording)


def test_the_replay_returns_what_was_recorded_and_raw_logprobs_are_found(replayed: Run) -> None:
    assert replayed.exit_code == 1, replayed.stderr
    (block,) = replayed.report["blocks"]
    again = block["replay"]
    assert again["verdict"] == "match" and again["recorded"]["k3"]["value"] < 1e-10
    assert again["coverage"] == {
        "prompts": [PROMPTS, PROMPTS],
        "completions": [PROMPTS * SAMPLES, PROMPTS * SAMPLES],
        "tokens_of_first_weights": [MOST_ASKED_AGAIN["cpu"], PROMPTS * SAMPLES * TOKENS],
    }
    # The model has more tokens than engines report logprobs of.
    reported = again["recorded"]["k3"]["tokens"] + again["not_reported"].get("reference", 0)
    assert reported == MOST_ASKED_AGAIN["cpu"]
    assert replayed.layer("semantic")["cause"].startswith("raw logprobs")
    assert replayed.effects()["logprobs-mode=processed"] == "removes the mismatch"


def test_arms_are_paired_with_the_reference_on_the_recorded_tokens(replayed: Run) -> None:
    arms = replayed.report["blocks"][0]["replay"]["arms"]
    assert arms["candidate"]["mean_ratio_minus_one"]["low"] > 0.05
    assert abs(arms["candidate + logprobs-mode=processed"]["mean_ratio_minus_one"]["value"]) < 1e-5


def test_what_was_recorded_stands_beside_the_reference(replayed: Run) -> None:
    recorded_arm, reference = replayed.arm("recorded"), replayed.arm("reference")
    assert recorded_arm["semantics"]["verdict"] == reference["semantics"]["verdict"] == "match"
    assert recorded_arm["measurements"]["k3"]["tokens"] == PROMPTS * SAMPLES * TOKENS
    assert replayed.report["arms"][0]["name"] == "recorded"
    assert "recorded tokens, replayed" in replayed.stdout


def test_a_replay_goes_on_from_what_is_there_also_where_it_was_moved_to(
    laboratory: Laboratory, replayed: Run, shared_laboratory: Laboratory
) -> None:
    (ran, kept) = (replayed.report["run"][name] for name in ("cells_run", "cells_kept"))
    assert ran > 5 and kept == 0
    elsewhere = shutil.copytree(replayed.folder, laboratory.folder / "elsewhere")
    shutil.rmtree(next(elsewhere.glob("cells/*/samples.jsonl")).parent)
    recording = shared_laboratory.folder / "today"
    again = replay(shared_laboratory, recording, "--run-dir", str(elsewhere), "--output", f"json:{elsewhere}.json")
    assert again.exit_code == replayed.exit_code, again.stderr
    report = json.loads(Path(f"{elsewhere}.json").read_text())
    assert (report["run"]["cells_run"], report["run"]["cells_kept"]) == (1, ran - 1)
    assert report["blocks"] == replayed.report["blocks"] and report["layers"] == replayed.report["layers"]


def test_with_a_penalty_on_what_was_sampled_no_recorded_token_is_asked_for_and_that_is_said(
    laboratory: Laboratory,
) -> None:
    recording = recorded(laboratory.folder / "today", laboratory.model)
    recipe = laboratory.folder / "recipe.yaml"
    laboratory.command("ablate", str(recording), "--cpu", "--to", V1, "--write-recipe", str(recipe))
    document = yaml.safe_load(recipe.read_text())
    document["sampling"]["presence_penalty"] = 0.01
    (block,) = document["blocks"]
    block.update(factors={}, parity=[], leave_one_out=False, repeats=0)
    recipe.write_text(yaml.safe_dump(document))
    again = laboratory.ablate(recipe, "--quiet").report["blocks"][0]["replay"]
    assert again["verdict"] == "not tested" and again["recorded"] is None
    assert "presence or frequency penalty" in again["because"]


def test_a_recording_of_other_logits_is_not_judged(laboratory: Laboratory) -> None:
    # A processor of logits, an adapter or other weights: the engine sampled from something else than is replayed.
    recording = recorded(laboratory.folder / "today", laboratory.model, temperature=1.3, lora="mine", enable_lora=True)
    done = replay(laboratory, recording, "--until", "verdict")
    assert done.exit_code == 3
    # No further arm could turn it.
    assert [arm["role"] for arm in done.report["arms"]] == ["recorded", "reference", "candidate", "one at a time"]
    again = done.report["blocks"][0]["replay"]
    assert again["verdict"] == "mismatch" and again["recorded"]["k3"]["value"] > 1e-3
    assert {layer["verdict"] for layer in done.report["layers"]} == {"inconclusive"}
    assert all("the replay is not the recorded run" in layer["because"] for layer in done.report["layers"])
    assert any("64 of 64 recorded completions were sampled with LoRA" in line for line in done.report["not_seen"])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("trust_remote_code", True),
        ("worker_cls", "evil.Worker"),
        ("worker_extension_cls", "evil.Extension"),
        ("logits_processors", ["evil:Processor"]),
        ("speculative_config", {"model": "evil", "num_speculative_tokens": 2}),
        ("hf_overrides", {"auto_map": {"AutoModel": "evil--modeling.Evil"}}),
        ("compilation_config", {"backend": "evil.backend"}),
        ("generation_config", "/tmp/evil"),
        ("load_format", "evil"),
    ],
)
def test_nothing_that_may_be_code_or_a_file_is_taken_over(laboratory: Laboratory, name: str, value: object) -> None:
    recording = recorded(laboratory.folder / "stranger", laboratory.model, **{name: value})
    recipe = laboratory.folder / "recipe.yaml"
    # The release that has the argument, so that nothing else leaves it out.
    done = laboratory.command("ablate", str(recording), "--cpu", "--to", V1, "--write-recipe", str(recipe))
    assert done.exit_code == 0, done.stderr
    assert f"--take-over {name}" in done.stderr
    blocks = yaml.safe_load(recipe.read_text())["blocks"]
    assert "evil" not in str(blocks) and name not in str(blocks)


HOSTILE = {
    "LD_PRELOAD": "/tmp/evil.so",
    "PYTHONPATH": "/tmp/evil",
    "VLLM_PLUGINS": "evil",
    "VLLM_CONFIG_ROOT": "evil",
    "VLLM_ASSETS_CACHE": "evil",
    "VLLM_LOGGING_CONFIG_PATH": "evil",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_variable_that_loads_code_is_taken_over(laboratory: Laboratory, name: str) -> None:
    recording = recorded(
        laboratory.folder / "stranger",
        laboratory.model,
        environment={name: HOSTILE[name], "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "all"},
    )
    recipe = laboratory.folder / "recipe.yaml"
    done = laboratory.command("ablate", str(recording), "--cpu", "--to", V1, "--write-recipe", str(recipe))
    assert done.exit_code == 0, done.stderr
    assert f"--take-over {name}" in done.stderr
    (block,) = yaml.safe_load(recipe.read_text())["blocks"]
    assert "evil" not in str(block)
    # A number in a name that a folder could be in is none.
    assert block["candidate"]["environment_variables"]["VLLM_CPU_KVCACHE_SPACE"] == "1"
    assert "VLLM_CPU_OMP_THREADS_BIND" not in block["candidate"]["environment_variables"]
    assert "VLLM_CPU_OMP_THREADS_BIND: left out" in done.stderr


def test_nothing_of_a_hostile_recording_reaches_an_engine_and_the_report_names_it(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrived = laboratory.folder / "arrived.json"
    monkeypatch.setenv("FAKE_VLLM_TELL", str(arrived))
    written = {"trust_remote_code": True, "worker_cls": "evil.Worker", "logits_processors": ["evil:Processor"]}
    recording = recorded(laboratory.folder / "stranger", laboratory.model, environment=HOSTILE, **written)
    done = replay(laboratory, recording)
    assert done.exit_code == 1, done.stderr
    assert "evil" not in arrived.read_text() and "trust_remote_code" not in arrived.read_text()
    said = [line for line in done.report["not_seen"] if line.startswith("in the replay: ")]
    assert all(any(f"--take-over {name})" in line for line in said) for name in {**HOSTILE, **written})


def test_a_long_recording_is_cut_to_what_the_machine_holds_and_that_is_said_first(laboratory: Laboratory) -> None:
    recording = recorded(laboratory.folder / "long", laboratory.model, longer=80, tokens=40)
    recipe = laboratory.folder / "recipe.yaml"
    done = laboratory.command("ablate", str(recording), "--cpu", "--to", V1, "--write-recipe", str(recipe))
    assert done.exit_code == 0, done.stderr
    assert "the first 32 tokens of completions of up to 40" in done.stderr
    assert "6 of 16 recorded prompts, 24 completions (4 each; 64 recorded)" in done.stderr
    document = yaml.safe_load(recipe.read_text())
    assert (document["prompts_used"], document["max_tokens"]) == (6, 32)
    assert document["blocks"][0]["candidate"]["engine_args"]["max_model_len"] == 1632


def test_a_prompt_that_a_cpu_cannot_hold_is_refused_before_anything_starts(laboratory: Laboratory) -> None:
    done = replay(laboratory, recorded(laboratory.folder / "long", laboratory.model, longer=450, tokens=1), "--dry-run")
    assert done.exit_code == 3
    assert "a recorded prompt has 9000 tokens" in done.stderr


def test_a_recording_without_a_completion_of_the_first_weights_is_judged_and_not_held_against_itself(
    laboratory: Laboratory,
) -> None:
    done = replay(laboratory, recorded(laboratory.folder / "today", laboratory.model, updated=True))
    assert done.exit_code == 1, done.stderr
    assert done.report["blocks"][0]["replay"]["verdict"] == "not tested"
    assert any("no recorded token of the first weights" in line for line in done.report["not_seen"])


@pytest.mark.parametrize("option", [["--updates"], ["--take-over", "worker_cls"]])
def test_what_is_about_a_recording_is_refused_for_a_recipe(laboratory: Laboratory, option: list[str]) -> None:
    done = laboratory.command("ablate", "quick", "--cpu", *option, "--dry-run")
    assert done.exit_code == 2
    assert f"{option[0]} is for a recording" in done.stderr


def test_a_name_to_take_over_that_the_recording_has_not_is_an_error(laboratory: Laboratory) -> None:
    recording = recorded(laboratory.folder / "today", laboratory.model, worker_cls="mine.Worker")
    for name, code in (("worker_class", 2), ("worker_cls", 0)):
        done = replay(laboratory, recording, "--take-over", name, "--dry-run")
        assert done.exit_code == code, done.stderr


def test_a_redacted_recording_is_not_asked_again(laboratory: Laboratory) -> None:
    recording = recorded(laboratory.folder / "redacted", laboratory.model)
    file = next(recording.glob("*.jsonl"))
    first, _, rest = file.read_text().partition("\n")
    file.write_text(json.dumps({**json.loads(first), "key": "0f"}) + "\n" + rest)
    done = replay(laboratory, recording)
    assert done.exit_code == 3
    assert "is redacted" in done.stderr


def test_a_model_of_another_tokenizer_is_refused_before_anything_starts(laboratory: Laboratory) -> None:
    recording = recorded(laboratory.folder / "today", laboratory.model)
    other = laboratory.folder / "other"
    other.mkdir()
    (other / "config.json").write_text('{"vocab_size": 7}')
    done = replay(laboratory, recording, "--model", str(other))
    assert done.exit_code == 2
    assert "those below 7: it is another tokenizer's" in done.stderr


def test_no_model_is_fetched_because_a_recording_names_it(laboratory: Laboratory) -> None:
    recording = recorded(laboratory.folder / "stranger", Path("evil/model"))
    done = replay(laboratory, recording)
    assert done.exit_code == 2
    assert "evil/model is not on this machine" in done.stderr
