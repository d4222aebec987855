"""Sinks of bytes as their writers leave them, and of several logs; those of text stand in logs.yaml."""

import json
import os
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from written_by_others import TENSORBOARD, WANDB

from rlaudit.curves.curve import Run, run_of, step_keys
from rlaudit.curves.open_run import open_run, runs_below
from rlaudit.curves.readers.tensorboard import masked_crc32c
from rlaudit.errors import NotFinished, UsageError

STEPS = [1, 2, 3]
VALUES = [0.25, 0.5, 0.75]


def run_at(text: str | Path, step: str | None = None) -> Run:
    log = open_run(str(text), None)
    return run_of(log, step_keys([log], step)[0])


def lines(*objects: object) -> str:
    return "".join(json.dumps(one) + "\n" for one in objects)


def each(make: Callable[[int, float], object]) -> str:
    return lines(*(make(step, value) for step, value in zip(STEPS, VALUES, strict=True)))


@pytest.mark.parametrize("long", [False, True])
def test_parquet_may_be_wide_or_long(long: bool, tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    table = {"step": STEPS, "metric": ["m"] * 3, "value": VALUES} if long else {"step": STEPS, "m": VALUES}
    pyarrow.parquet.write_table(pyarrow.table(table), tmp_path / "t.parquet")
    assert run_at(tmp_path / "t.parquet").curves["m"].values.tolist() == VALUES


def test_an_offline_run_of_wandb_is_read_across_the_edge_of_a_block(tmp_path: Path) -> None:
    (tmp_path / "run-1.wandb").write_bytes(WANDB)
    run = run_at(tmp_path)
    assert run.curves["rl/reward"].steps.tolist() == [0, 1, 2, 4]
    assert run.curves["rl/reward"].values.tolist() == [0.5, 1.5, 2.5, 9.25]
    assert run.curves["rl/reward"].not_finite_steps[0] == 3
    assert run.curves["nested.a"].values.tolist() == [1.5] * 3


def test_a_broken_record_of_wandb_costs_its_block_and_no_more(tmp_path: Path) -> None:
    broken = bytearray(WANDB)
    broken[200] ^= 0xFF
    (tmp_path / "run-1.wandb").write_bytes(broken)
    run = run_at(tmp_path)
    assert run.curves["rl/reward"].values.tolist()[-1] == 9.25
    assert "wrong checksum" in str(run.problems[0])


def test_a_newer_version_of_wandbs_format_is_named_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "run-1.wandb").write_bytes(WANDB[:6] + b"\x01" + WANDB[7:])
    with pytest.raises(NotFinished, match="version 1"):
        run_at(tmp_path)


def test_tensors_of_one_number_are_scalars_of_tensorboard(tmp_path: Path) -> None:
    (tmp_path / "events.out.tfevents.1.host").write_bytes(TENSORBOARD)
    curves = run_at(tmp_path).curves
    assert curves["loss"].values.tolist() == [0.0, 0.25, 0.5]
    assert curves["acc"].values.tolist() == [0.0, 0.1, 0.2]
    assert curves["count"].values.tolist() == [0.0, -1.0, -2.0]


def test_a_simple_value_is_a_scalar_of_tensorboard(tmp_path: Path) -> None:
    value = b"\x0a\x01m\x15" + struct.pack("<f", 0.5)
    event = b"\x10\x07" + b"\x2a" + bytes([len(value) + 2]) + b"\x0a" + bytes([len(value)]) + value
    start = TENSORBOARD[: 16 + struct.unpack("<Q", TENSORBOARD[:8])[0]]
    (tmp_path / "events.out.tfevents.1").write_bytes(start + _record(event))
    curve = run_at(tmp_path).curves["m"]
    assert (curve.steps.tolist(), curve.values.tolist()) == ([7], [0.5])


def test_a_flipped_bit_in_an_event_is_found_and_costs_that_event(tmp_path: Path) -> None:
    broken = bytearray(TENSORBOARD)
    broken[-6] ^= 1
    (tmp_path / "events.out.tfevents.1").write_bytes(broken)
    run = run_at(tmp_path)
    assert run.curves["loss"].steps.tolist() == [0, 1]
    assert "wrong checksum" in str(run.problems[0])


def test_event_files_of_one_folder_are_one_run(tmp_path: Path) -> None:
    (tmp_path / "events.out.tfevents.1.a").write_bytes(TENSORBOARD)
    (tmp_path / "events.out.tfevents.2.b").write_bytes(TENSORBOARD)
    assert run_at(tmp_path).curves["loss"].steps.tolist() == [0, 1, 2]


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc32c(length)) + data + struct.pack("<I", masked_crc32c(data))


def test_a_folder_with_several_runs_asks_for_one(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.wandb").write_bytes(WANDB)
    with pytest.raises(UsageError, match=r"several runs: a/run\.wandb, b/run\.wandb"):
        run_at(tmp_path)


def test_wandbs_count_of_calls_is_not_taken_for_the_training_step_of_another_sink(tmp_path: Path) -> None:
    state, history = tmp_path / "trainer_state.json", tmp_path / "h.jsonl"
    state.write_text(json.dumps({"log_history": [{"step": s, "m": v} for s, v in zip(STEPS, VALUES, strict=True)]}))
    history.write_text(each(lambda step, value: {"_step": 5 * step, "train/global_step": step, "train/m": value}))
    logs = [open_run(str(path), None) for path in (state, history)]
    assert step_keys(logs, None) == [None, "train/global_step"]
    assert [run_of(log, key).step_name for log, key in zip(logs, step_keys(logs, None), strict=True)] == [
        "step",
        "train/global_step",
    ]


def test_wandb_runs_of_two_frameworks_each_have_their_own_training_step(tmp_path: Path) -> None:
    paths = {"train/global_step": tmp_path / "a.jsonl", "training/global_step": tmp_path / "b.jsonl"}
    for key, path in paths.items():
        path.write_text(each(lambda step, value, key=key: {"_step": 5 * step, key: step, "m": value}))  # type: ignore[misc]
    logs = [open_run(str(path), None) for path in paths.values()]
    assert step_keys(logs, None) == list(paths)
    silent = tmp_path / "c.jsonl"
    silent.write_text(each(lambda step, value: {"_step": step, "m": value}))
    assert step_keys([*logs, open_run(str(silent), None)], None) == [None, None, None]


def test_a_binary_file_with_a_carriage_return_in_its_first_line_is_no_csv(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl.gz"
    path.write_bytes(b"\x1f\x8b\x08\rabc\rdef" + bytes(50))
    with pytest.raises(NotFinished, match="packed with gzip"):
        open_run(str(path), None)


def test_a_file_of_wandb_that_holds_nothing_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "run.wandb").write_bytes(b":W&B\xe1\xbe\x00")
    with pytest.raises(NotFinished):
        open_run(str(tmp_path / "run.wandb"), None)


def test_a_dict_of_pipelinerl_is_never_evaluated(tmp_path: Path) -> None:
    path, trap = tmp_path / "info_0.log", tmp_path / "trap"
    path.write_text(f"Completed steps 1: {{'m': open({str(trap)!r}, 'w')}}\nCompleted steps 2: {{'m': '1.0'}}\n")
    assert run_at(path).curves["m"].steps.tolist() == [2]
    assert not trap.exists()


def test_mlflow_reads_its_own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written by the real library: a run's folder, the same run of the store, and a folder of runs."""
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    store = (tmp_path / "mlruns").as_uri()
    client = mlflow.MlflowClient(tracking_uri=store)
    runs = []
    for _ in range(2):
        runs.append(client.create_run(client.create_experiment(f"e{len(runs)}")).info)
        for step, value in zip(STEPS, VALUES, strict=True):
            client.log_metric(runs[-1].run_id, "sampling/reward", value, step=step)
    folder = tmp_path / "mlruns" / runs[0].experiment_id / runs[0].run_id
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
    for name in (str(folder), f"runs:/{runs[0].run_id}"):
        curve = run_at(name).curves["sampling/reward"]
        assert (curve.steps.tolist(), curve.values.tolist()) == (STEPS, VALUES)
    assert sorted(runs_below(str(tmp_path / "mlruns"), None)) == sorted(
        str(tmp_path / "mlruns" / run.experiment_id / run.run_id) for run in runs
    )
    with pytest.raises(NotFinished, match="cannot read the run"):
        run_at(f"runs:/{'0' * 32}")


def test_without_mlflow_the_command_that_installs_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(NotFinished, match="needs the package mlflow") as raised:
        run_at("runs:/abc")
    assert "mlflow-skinny" in str(raised.value)


class ErrorOfWandb(Exception):
    """What wandb.errors has as the base of its errors."""


def wandb_of(history: dict[str, list[dict[str, object]]]) -> ModuleType:
    """A stand-in for W&B's package, as its documentation has it, with these runs on its server."""

    def run_named(path: str) -> SimpleNamespace:
        if path not in history:
            raise ErrorOfWandb(f"Could not find run {path}")
        return SimpleNamespace(scan_history=lambda: iter(history[path]))

    wandb = ModuleType("wandb")
    wandb.Api = lambda: SimpleNamespace(run=run_named)  # type: ignore[attr-defined]
    wandb.errors = SimpleNamespace(Error=ErrorOfWandb)  # type: ignore[attr-defined]
    return wandb


def test_a_run_of_a_wandb_server_is_read_through_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[dict[str, object]] = [{"_step": step, "_runtime": 1.5 * step, "kl": step / 10} for step in range(4)]
    monkeypatch.setitem(sys.modules, "wandb", wandb_of({"lab/grpo/x1": rows}))
    run = run_at("wandb://lab/grpo/x1")
    assert list(run.curves) == ["kl"]
    assert run.curves["kl"].values.tolist() == [0, 0.1, 0.2, 0.3]
    with pytest.raises(NotFinished, match="W&B cannot read the run lab/grpo/none: Could not find run"):
        run_at("wandb://lab/grpo/none")
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(NotFinished, match="wandb://lab/grpo/x1 needs the package wandb"):
        run_at("wandb://lab/grpo/x1")


def test_trackio_reads_what_trackio_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("trackio")
    program = (
        "import trackio\n"
        "for run in ('a', 'b'):\n"
        "    trackio.init(project='p', name=run, embed=False)\n"
        f"    for step, value in zip({STEPS}, {VALUES}):\n"
        "        trackio.log({'m': value, 'broken': float('nan')}, step=step)\n"
        "    trackio.finish()\n"
    )
    environment = {**os.environ, "TRACKIO_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True, timeout=120)
    for name in (f"{tmp_path}/p.db#b", f"{tmp_path}#b"):
        run = run_at(name)
        assert run.curves["m"].values.tolist() == VALUES and run.sink == "Trackio database"
        assert run.curves["broken"].not_finite_steps == tuple(STEPS)
    assert runs_below(f"{tmp_path}/p.db", None) == [f"{tmp_path}/p.db#a", f"{tmp_path}/p.db#b"]


def test_a_trackio_database_is_known_by_its_table(tmp_path: Path) -> None:
    """As trackio 0.43 makes it; another database is no log, and a broken row is said."""
    for name, columns in (("p", "id INTEGER, run_name TEXT, step INTEGER, metrics TEXT"), ("other", "key TEXT")):
        with closing(sqlite3.connect(tmp_path / f"{name}.db")) as database:
            database.execute(f"CREATE TABLE metrics ({columns})")
            if name == "p":
                rows = [
                    (n, "a", step, json.dumps({"m": value}))
                    for n, (step, value) in enumerate(zip(STEPS, VALUES, strict=True))
                ]
                database.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?)", [*rows, (9, "a", 9, "{")])
            database.commit()
    run = run_at(tmp_path / "p.db")
    assert run.curves["m"].values.tolist() == VALUES and "not JSON" in str(run.problems[0])
    with pytest.raises(NotFinished, match="no log that is known"):
        run_at(tmp_path / "other.db")
