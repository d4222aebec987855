"""A recording asked again: a training over V0 of which every logprob is known, replayed and tried on V1."""

import importlib.util
import json
import math
import random
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


def recorded(
    folder: Path, model: Path, temperature: float = TEMPERATURE, updated: bool = False, **written: object
) -> Path:
    """A recording of V0, whose logprobs are those that it samples with. temperature: of what was really sampled.

    updated: whether every completion meets an update of the weights, so that none is of the first ones.
    """
    front = WrittenProcess(folder)
    front.lines[0]["versions"] = {"vllm": V0, "torch": "2.6.0"}
    arguments = {"model": str(model), "dtype": "float32", "enforce_eager": True, **written}
    effective = {
        "model_config": {"model": str(model), "dtype": "torch.float32", "enforce_eager": True, "seed": 0},
        "cache_config": {"enable_prefix_caching": False, "block_size": 16},
        "device_config": {"device": "cpu", "device_type": "cpu"},
    }
    front.put("engine", number=1, **{"class": "EngineArgs"}, written=arguments, effective=effective, error=None)
    front.sampling(temperature=TEMPERATURE, max_tokens=TOKENS)
    for number in range(PROMPTS):
        prompt = [(number * 7 + place) % known_model.VOCABULARY for place in range(20)]
        for sample in range(SAMPLES):
            request = front.request(prompt, index=sample)
            source = random.Random(1000 * number + sample)
            last, ids, logprobs = prompt[-1], [], []
            for _ in range(TOKENS):
                own = known_model.log_softmax([one / temperature for one in known_model.logits_after(last)])
                last = source.choices(range(len(own)), [math.exp(one) for one in own])[0]
                ids.append(last)
                logprobs.append(own[last])
            steps = []
            for place, _ in enumerate(ids):
                steps.append([front.step(1), 1, 1])
                if updated and place == 0:
                    front.load()
            front.sequence(request, prompt, ids, logprobs, steps, index=sample)
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
    assert "Recorded tokens, asked for again" in replayed.stdout


def test_a_recording_of_other_logits_is_not_judged(laboratory: Laboratory) -> None:
    # A processor of logits, an adapter or other weights: the engine sampled from something else than is replayed.
    recording = recorded(laboratory.folder / "today", laboratory.model, temperature=1.3)
    done = replay(laboratory, recording)
    assert done.exit_code == 3
    again = done.report["blocks"][0]["replay"]
    assert again["verdict"] == "mismatch" and again["recorded"]["k3"]["value"] > 1e-3
    assert {layer["verdict"] for layer in done.report["layers"]} == {"inconclusive"}
    assert all("the replay is not the recorded run" in layer["because"] for layer in done.report["layers"])


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


def test_no_model_is_fetched_because_a_recording_names_it(laboratory: Laboratory) -> None:
    recording = recorded(laboratory.folder / "stranger", Path("evil/model"))
    done = replay(laboratory, recording)
    assert done.exit_code == 2
    assert "evil/model is not on this machine" in done.stderr
