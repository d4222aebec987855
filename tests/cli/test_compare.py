"""`rlaudit compare` and `rlaudit diagnose` as command lines: exit codes, what is printed where, scoring."""

import importlib.util
import json
import random
from functools import cache

import jsonschema
import numpy as np
import pytest
from laboratories import FAKES
from token_tables import table

from rlaudit.cli.app import run
from rlaudit.report.schema import report_schema

# By path: its folder also holds a stand-in for torch, which no other test may find.
_SPEC = importlib.util.spec_from_file_location("known_model", FAKES / "known_model.py")
known_model = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(known_model)

SCHEMA = report_schema(closed=True)
PROMPTS, SAMPLES, LENGTH = 40, 2, 24


@cache
def logprobs_after(last, temperature):
    """Every distribution that the known model has, of which there are few."""
    return known_model.log_softmax([logit / temperature for logit in known_model.logits_after(last)])


def sampled(temperature=1.0, reported_at=None, trainer_at=None, trainer=True, seed=0, shift=0.0):
    """Completions of the known model: sampled, reported and scored at temperatures of their own."""
    draw = random.Random(seed)
    for prompt in range(PROMPTS):
        for sample in range(SAMPLES):
            last, ids, reported, scored = prompt % known_model.VOCABULARY, [], [], []
            for _ in range(LENGTH):
                at = {
                    when: logprobs_after(last, when)
                    for when in {temperature, reported_at or temperature, trainer_at or temperature}
                }
                weights = [2.718281828459045**logprob for logprob in at[temperature]]
                last = draw.choices(range(known_model.VOCABULARY), weights)[0]
                ids.append(last)
                reported.append(min(0.0, at[reported_at or temperature][last] + draw.gauss(0, 1e-4)) - shift)
                scored.append(at[trainer_at or temperature][last])
            yield {
                "prompt_id": prompt,
                "sample_id": sample,
                "prompt_token_ids": [prompt % known_model.VOCABULARY],
                "token_id": ids,
                "rollout_logprob": reported,
                **({"trainer_logprob": scored} if trainer else {}),
            }


def written(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def compared(path, *more):
    out = path.parent / "report.json"
    code = run(["compare", str(path), "--quiet", "--output", f"json:{out}", *more])
    return code, json.loads(out.read_text()) if out.exists() else None


@pytest.fixture
def scored(laboratory):
    """A command line that scores with the laboratory's model."""
    return ["--score", str(laboratory.model), "--score-dtype", "float32", "--cpu", "--score-tokens", "4000"]


def test_without_scores_nothing_is_shown_and_nothing_is_ruled_out(tmp_path):
    code, report = compared(written(tmp_path / "t.jsonl", sampled()))
    assert (code, report["exit_code"]) == (3, 3)
    assert [layer["verdict"] for layer in report["layers"]] == ["inconclusive", "match", "not tested"]
    assert report["comparisons"][0]["compared_tokens"] == PROMPTS * SAMPLES * LENGTH


def test_nothing_found_ends_with_0_unless_a_match_is_required_and_its_limits_stand_in_every_report(tmp_path, capsys):
    records = [{name: value for name, value in one.items() if name != "token_id"} for one in sampled()]
    path = written(tmp_path / "t.jsonl", records)
    code, report = compared(path, "--output", "concise")
    assert (code, [layer["verdict"] for layer in report["layers"]]) == (0, ["nothing found", "match", "match"])
    jsonschema.validate(report, SCHEMA)
    assert 0.01 <= report["comparisons"][0]["limits"]["mean_ratio"] < 0.02
    assert "note semantic-layer Nothing found. " in capsys.readouterr().out
    assert compared(path, "--require", "match")[0] == 3


def test_a_trainer_at_another_temperature_is_identified_and_not_the_engine(tmp_path, scored):
    path = written(tmp_path / "t.jsonl", sampled(0.6, trainer_at=1.0))
    code, report = compared(path, "--temperature", "0.6", "--trainer-temperature", "1", *scored)
    assert code == 1
    semantics = report["comparisons"][0]["semantics"]
    assert (semantics["trainer"], semantics["reported"], semantics["sampled"]) == ("T=1", "T=0.6", "T=0.6")


def test_a_mismatch_exits_with_1_unless_told_never_to(tmp_path):
    path = written(tmp_path / "t.jsonl", sampled(shift=0.2))
    assert compared(path)[0] == 1
    assert compared(path, "--fail-on", "never")[0] == 0


def test_faults_end_with_3_until_they_are_allowed(tmp_path, capsys):
    path = written(tmp_path / "t.jsonl", sampled(shift=0.2))
    path.write_text(path.read_text() + '{"prompt_id": 9, "sam')
    code, report = compared(path)
    said = capsys.readouterr().err
    assert code == 3
    assert f"{path}:81: the last line is cut off after 21 bytes" in said
    assert report["comparisons"][0]["faults"]["shown"][0]["line"] == 81
    assert compared(path, "--allow-partial")[0] == 1


def test_trainer_logprobs_may_be_a_table_of_their_own(tmp_path):
    records = list(sampled(shift=0.2))
    rollouts = written(tmp_path / "r.jsonl", [{**one, "trainer_logprob": None} for one in records])
    own = [{name: one[name] for name in ("prompt_id", "sample_id", "trainer_logprob", "token_id")} for one in records]
    trainer = written(tmp_path / "t.jsonl", [{**one, "rollout_logprob": one["trainer_logprob"]} for one in own])
    both = tmp_path / "both"
    both.mkdir()
    _, whole = compared(written(both / "w.jsonl", records))
    code, report = compared(rollouts, str(trainer))
    assert code == 1
    figures = [one["comparisons"][0]["measurements"]["k1"]["value"] for one in (whole, report)]
    assert figures[0] == pytest.approx(figures[1])


def test_sampling_parameters_come_from_the_command_line_before_the_sidecar(tmp_path):
    path = written(tmp_path / "t.jsonl", sampled())
    (tmp_path / "rollout.yaml").write_text("temperature: 0.7\ntop_p: 0.9\ntrainer_temperature: 1.0\n")
    _, report = compared(path)
    assert (report["comparisons"][0]["sampling"]["temperature"], report["comparisons"][0]["sampling"]["top_p"]) == (
        0.7,
        0.9,
    )
    assert report["comparisons"][0]["trainer"]["temperature"] == 1.0
    _, report = compared(path, "--temperature", "0.5", "--top-k", "-1", "--trainer-replays-filters")
    assert report["comparisons"][0]["sampling"]["temperature"] == 0.5
    assert report["comparisons"][0]["trainer"]["top_p"] == 0.9


def test_a_rollout_config_tells_how_tokens_were_sampled(tmp_path):
    config = tmp_path / "base.yaml"
    config.write_text(
        "world: {replicas: 1}\nvllm_config:\n  vllm_kwargs: {enforce-eager: ''}\n"
        "llm:\n  parameters: {temperature: 0.8, max_tokens: 100}\nfinetune:\n  rl: {policy_loss: ppo}\n"
    )
    code, report = compared(written(tmp_path / "t.jsonl", sampled()), "--config", str(config))
    assert code == 3
    assert report["comparisons"][0]["sampling"]["temperature"] == 0.8


def noisy(noise, seed=0, first=0, prompts=PROMPTS):
    """Completions of an engine whose logprobs are `noise` off, of prompts numbered from `first` on."""
    draw = random.Random(seed)
    for record in sampled(seed=seed):
        if record["prompt_id"] >= prompts:
            return
        scored = [min(0.0, logprob + draw.gauss(-(noise**2) / 2, noise)) for logprob in record["rollout_logprob"]]
        yield {**record, "prompt_id": record["prompt_id"] + first, "trainer_logprob": scored}


@pytest.mark.parametrize(
    ("new", "more", "verdict"),
    [
        (0.02, [], "match"),
        (0.08, [], "mismatch"),
        (0.02, ["--margin", "1e-5"], "mismatch"),
        (0.08, ["--margin", "1"], "match"),
    ],
)
def test_a_migration_is_judged_from_two_logs(tmp_path, new, more, verdict):
    today = written(tmp_path / "today.jsonl", noisy(0.02))
    code, report = compared(written(tmp_path / "new.jsonl", noisy(new, seed=1)), "--before", str(today), *more)
    jsonschema.validate(report, SCHEMA)
    assert report["layers"][1]["verdict"] == verdict
    assert [one["is_before"] for one in report["comparisons"]] == [True, False]
    distance = report["comparisons"][1]["distance"]
    assert distance["yardstick"] == ("margin" if more else "reference")
    if not more:
        assert (distance["against"]["paired"], distance["against"]["clusters"]) == (True, PROMPTS)
        assert any("before (" in line for line in report["layers"][1]["evidence"])
    # Sampled logprobs alone prove no match: the semantic layer stays open, and so does the audit.
    assert code == 3


def rounded(noise, seed=0):
    """Completions of an engine that rounds: noise on logits moves a logprob in proportion to 1 - p."""
    batch = table(seed, prompts=PROMPTS, noise=noise)
    for sequence in range(batch.sequences):
        tokens = slice(batch.offsets[sequence], batch.offsets[sequence + 1])
        yield {
            "prompt_id": int(batch.prompt_S[sequence]),
            "sample_id": sequence % SAMPLES,
            "token_id": batch.token_id_T[tokens].tolist(),
            "rollout_logprob": batch.rollout_logprobs_T[tokens].tolist(),
            "trainer_logprob": batch.trainer_logprobs_T[tokens].tolist(),
        }


def test_todays_log_is_the_floor_above_which_rounding_has_a_name(tmp_path):
    today = written(tmp_path / "today.jsonl", rounded(0.02))
    path = written(tmp_path / "new.jsonl", rounded(0.2, seed=1))
    alone, against = (compared(path, *more)[1]["comparisons"][-1] for more in ([], ["--before", str(today)]))
    assert {one["name"] for one in alone["attribution"]["named"]} == set()
    assert {one["name"] for one in against["attribution"]["named"]} == {"body-precision"}


def test_a_log_that_is_off_itself_is_no_floor(tmp_path):
    today = written(tmp_path / "today.jsonl", rounded(0.4))
    path = written(tmp_path / "new.jsonl", rounded(0.4, seed=1))
    assert compared(path, "--before", str(today))[1]["comparisons"][-1]["attribution"]["floor_k2"] is None


def test_logs_of_other_prompts_are_compared_without_pairing(tmp_path):
    today = written(tmp_path / "today.jsonl", noisy(0.02))
    path = written(tmp_path / "new.jsonl", noisy(0.08, seed=1, first=1000))
    _, report = compared(path, "--before", str(today))
    against = report["comparisons"][1]["distance"]["against"]
    assert (against["paired"], against["verdict"]) == (False, "mismatch")


def test_todays_log_with_another_meaning_is_shown_and_does_not_serve(tmp_path, capsys):
    today = written(tmp_path / "today.jsonl", sampled(0.6, reported_at=1.0))
    path = written(tmp_path / "new.jsonl", noisy(0.02, seed=1))
    _, report = compared(path, "--before", str(today), "--temperature", "0.6")
    distance = report["comparisons"][1]["distance"]
    assert (distance["yardstick"], distance["against"]) == ("consequence", None)


def test_a_report_shows_the_figures_of_both_logs(tmp_path, capsys):
    today = written(tmp_path / "today.jsonl", noisy(0.02))
    path = written(tmp_path / "new.jsonl", noisy(0.02, seed=1))
    for form in ("text", "markdown"):
        run(["compare", str(path), "--before", str(today), "--quiet", "--output", form])
        printed = capsys.readouterr().out
        assert f"{today} (today)" in printed
        assert "times the reference's" in printed


def test_the_clip_range_given_decides_alone(tmp_path):
    path = written(tmp_path / "new.jsonl", noisy(0.02))
    verdicts = {
        name: compared(path, *more)[1]["layers"][1]["verdict"]
        for name, more in {
            "ppo": ["--ppo-epsilon", "0.5", "0.5"],
            "gspo": ["--gspo-epsilon", "0.0003", "0.0004"],
        }.items()
    }
    assert verdicts == {"ppo": "match", "gspo": "mismatch"}


def test_todays_trainer_may_be_a_table_of_its_own(tmp_path, capsys):
    records = list(noisy(0.02))
    today = written(tmp_path / "today.jsonl", [{**one, "trainer_logprob": None} for one in records])
    own = [
        {name: one[name] for name in ("prompt_id", "sample_id", "trainer_logprob", "token_id")}
        | {"rollout_logprob": one["trainer_logprob"]}
        for one in records
    ]
    trainer = written(tmp_path / "trainer.jsonl", own)
    path = written(tmp_path / "new.jsonl", noisy(0.02, seed=1))
    _, report = compared(path, "--before", str(today), "--before-trainer", str(trainer))
    assert report["comparisons"][1]["distance"]["against"]["verdict"] == "match"
    assert run(["compare", str(path), "--before-trainer", str(trainer), "--quiet"]) == 2
    assert "--before-trainer without --before" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--before", "nowhere.jsonl"], "nowhere.jsonl: no such file"),
        (["--temperature", "0"], "a greedy choice has no distribution"),
        (["--ppo-epsilon", "0", "0.2"], "ppo_epsilon_low"),
        (["--arm", "candidate"], "no arm 'candidate'"),
        (["--score", "m", "--score-dtype", "int4"], "--score-dtype is int4"),
    ],
)
def test_what_cannot_be_is_a_bad_command_line(tmp_path, capsys, more, said):
    assert run(["compare", str(written(tmp_path / "t.jsonl", sampled())), "--quiet", *more]) == 2
    assert said in capsys.readouterr().err


def test_an_unknown_key_in_the_sidecar_names_the_known_ones(tmp_path, capsys):
    (tmp_path / "rollout.yaml").write_text("temprature: 0.7\n")
    assert run(["compare", str(written(tmp_path / "t.jsonl", sampled())), "--quiet"]) == 2
    assert "unknown keys temprature" in capsys.readouterr().err


@pytest.mark.parametrize("report_format", ["text", "markdown"])
def test_reports_name_layers_figures_and_what_was_not_seen(tmp_path, capsys, report_format):
    run(["compare", str(written(tmp_path / "t.jsonl", sampled(shift=0.2))), "--quiet", "--output", report_format])
    printed = capsys.readouterr().out
    for part in (
        "semantic",
        "MISMATCH",
        "inference path",
        "NOT TESTED",
        "objective",
        "k3 (nats)",
        "80 sequences",
        "Not seen",
    ):
        assert part in printed


def test_a_diagnosis_of_a_comparison_says_what_an_intervention_would_add(tmp_path):
    path = written(tmp_path / "t.jsonl", sampled(shift=0.2))
    _, report = compared(path)
    out = tmp_path / "diagnosis.json"
    assert run(["diagnose", str(tmp_path / "report.json"), "--output", f"json:{out}"]) == 1
    found = json.loads(out.read_text())
    jsonschema.validate(found, SCHEMA)
    assert found["layers"][0]["cause"] == report["layers"][0]["cause"]
    assert any("none of these reports is an ablation" in line for line in found["not_seen"])


@pytest.mark.parametrize("lag", [0, 1])
def test_bytes_are_not_compared_under_lag(lag, tmp_path):
    rng = np.random.default_rng(0)
    rollout = -rng.exponential(1.0, (20, 40))
    trainer = rollout - 1e-4 * (np.arange(40) % 5 == 0)
    versions = {"rollout_version": [3] * 40, "trainer_version": [3 + lag] * 40}
    rows = [
        {"prompt_id": n, "sample_id": 0, "rollout_logprob": ours, "trainer_logprob": theirs, **versions}
        for n, (ours, theirs) in enumerate(zip(rollout.tolist(), trainer.tolist(), strict=True))
    ]
    table, out = tmp_path / "t.jsonl", tmp_path / "report.json"
    table.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    run(["compare", str(table), "--temperature", "1", "--output", f"json:{out}"])
    (compared,) = json.loads(out.read_text())["comparisons"]
    bitwise = compared["measurements"]["bitwise"]
    assert bitwise["value"] == (None if lag else 0.2)
    assert (bitwise["reason"] or "").startswith("not comparable") == bool(lag)
