"""Every sink, from bytes as its writer leaves them to steps and values."""

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from written_by_others import TENSORBOARD, WANDB

from rlaudit.curves.curve import Run, run_of, step_keys
from rlaudit.curves.open_run import known_readers, open_run
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


FILES: dict[str, tuple[str, str, str]] = {
    "wandb-history": ("h.jsonl", each(lambda step, value: {"_step": step, "_runtime": 1.0, "m": value}), "m"),
    "jsonl": ("metrics.jsonl", each(lambda step, value: {"step": step, "time": 1.0, "m": value}), "m"),
    "trainer-state": (
        "trainer_state.json",
        json.dumps({"log_history": [{"step": s, "m": v} for s, v in zip(STEPS, VALUES, strict=True)]}),
        "m",
    ),
    "pipelinerl-stdout": (
        "info_0.log",
        "05/01/2026 10:00:00.1 - INFO - x - starting\n"
        + "".join(
            f"05/01/2026 - INFO - x - Completed steps {s}: { ({'m': f'{v:.3f}', 'x': '1.2e-04'})!r}\n"
            for s, v in zip(STEPS, VALUES, strict=True)
        ),
        "m",
    ),
    "verl-console": (
        "console.txt",
        "(TaskRunner pid=1) hello\n"
        + "".join(
            f"\x1b[36m(TaskRunner pid=1)\x1b[0m step:{s} - m:{v} - actor/entropy:np.float64(0.5)\n"
            for s, v in zip(STEPS, VALUES, strict=True)
        ),
        "m",
    ),
    "metrics-json": ("metrics.json", json.dumps({"m": {str(s): v for s, v in zip(STEPS, VALUES, strict=True)}}), "m"),
    "csv": ("t.csv", "step,m,other\n1,0.25,\n2,0.5,7\n3,0.75,8\n", "m"),
}


# Dialects of one sink.
MS_SWIFT = each(lambda step, value: {"global_step/max_steps": f"{step}/9", "m": value})
DIALECTS = {
    "verl": ("run.jsonl", each(lambda step, value: {"step": step, "data": {"m": value}})),
    "ms-swift": ("logging.jsonl", MS_SWIFT),
    "panel of W&B": (
        "p.csv",
        '"Step","base - m","base - m__MIN","base - m__MAX"\n1,0.25,0,1\n2,0.5,0,1\n3,0.75,0,1\n',
    ),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_dialect_is_read_by_the_reader_of_its_format(dialect: str, tmp_path: Path) -> None:
    name, text = DIALECTS[dialect]
    (tmp_path / name).write_text(text, encoding="utf-8")
    curves = run_at(tmp_path / name).curves
    assert {key: (curve.steps.tolist(), curve.values.tolist()) for key, curve in curves.items()} == {
        "m": (STEPS, VALUES)
    }


@pytest.mark.parametrize("sink", FILES)
def test_a_sink_is_recognised_by_its_content_and_read(sink: str, tmp_path: Path) -> None:
    name, text, key = FILES[sink]
    (tmp_path / name).write_text(text, encoding="utf-8")
    log = open_run(str(tmp_path / name), None)
    assert log.reader.name == sink
    curve = run_of(log, None).curves[key]
    assert curve.steps.tolist() == STEPS
    assert curve.values.tolist() == VALUES


def test_the_summary_that_ends_a_log_of_ms_swift_is_no_trainer_state(tmp_path: Path) -> None:
    text = MS_SWIFT + lines({"global_step": 3, "log_history": [{"m": 1.0}], "best_metric": None})
    (tmp_path / "logging.jsonl").write_text(text)
    log = open_run(str(tmp_path / "logging.jsonl"), None)
    assert log.reader.name == "jsonl"
    assert run_of(log, None).curves["m"].values.tolist() == VALUES


def test_every_reader_is_tried_here() -> None:
    assert set(known_readers()) == {*FILES, "parquet", "tensorboard", "wandb-offline"}


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


def test_one_of_several_runs_in_a_file_is_named_after_a_hash(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("Step,old - m,new - m\n1,0,0.25\n2,0,0.5\n3,0,0.75\n")
    assert run_at(f"{path}#new").curves["m"].values.tolist() == VALUES
    with pytest.raises(UsageError, match="new, old"):
        run_at(path)
    with pytest.raises(UsageError, match="no run is called 'other'"):
        run_at(f"{path}#other")


def test_panels_exported_into_one_folder_are_read_together(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("Step,old - a,new - a\n1,0,1\n2,0,2\n")
    (tmp_path / "b.csv").write_text("Step,old - b,new - b\n1,0,3\n2,0,4\n")
    run = run_at(f"{tmp_path}#new")
    assert {key: curve.values.tolist() for key, curve in run.curves.items()} == {"a": [1.0, 2.0], "b": [3.0, 4.0]}


def test_an_output_folder_of_a_trainer_gives_the_newest_checkpoints_history(tmp_path: Path) -> None:
    for number in (90, 100):
        folder = tmp_path / f"checkpoint-{number}"
        folder.mkdir()
        (folder / "trainer_state.json").write_text(json.dumps({"log_history": [{"step": 1, "m": number}]}))
    assert run_at(tmp_path).curves["m"].values.tolist() == [100.0]


def test_a_folder_with_several_runs_asks_for_one(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.wandb").write_bytes(WANDB)
    with pytest.raises(UsageError, match=r"several runs: a/run\.wandb, b/run\.wandb"):
        run_at(tmp_path)


def test_training_steps_are_preferred_to_wandbs_count_of_logging_calls(tmp_path: Path) -> None:
    rows = each(lambda step, value: {"_step": 10 * step, "train/global_step": step, "m": value})
    (tmp_path / "h.jsonl").write_text(rows)
    run = run_at(tmp_path / "h.jsonl")
    assert (run.step_name, run.curves["m"].steps.tolist()) == ("train/global_step", STEPS)


def test_what_is_no_log_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"\0\1\2")
    with pytest.raises(NotFinished, match="no log that is known"):
        run_at(tmp_path / "x.bin")
    with pytest.raises(NotFinished, match="no log found"):
        run_at(tmp_path)
    with pytest.raises(UsageError, match="no such file"):
        run_at(tmp_path / "absent")


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


def test_a_trainer_state_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "trainer_state.json"
    path.write_text(FILES["trainer-state"][1], encoding="utf-8-sig")
    assert run_at(path).curves["m"].values.tolist() == VALUES


def test_columns_of_one_name_are_told_and_not_used(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("step,m,x,m\n" + "".join(f"{s},{v},1,9\n" for s, v in zip(STEPS, VALUES, strict=True)))
    run = run_at(path)
    assert set(run.curves) == {"x"}
    assert "line 1: several columns are called 'm'" in str(run.problems[0])


def test_a_binary_file_with_a_carriage_return_in_its_first_line_is_no_csv(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl.gz"
    path.write_bytes(b"\x1f\x8b\x08\rabc\rdef" + bytes(50))
    with pytest.raises(NotFinished, match="packed with gzip"):
        open_run(str(path), None)


def test_a_log_without_a_usable_line_says_what_is_wrong_with_the_first(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("step,m\n1,0,25\n2,0,5\n")
    with pytest.raises(NotFinished, match="line 2: 3 cells where the header has 2"):
        open_run(str(path), None)
