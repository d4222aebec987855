"""Weights that two ranks share, and experts that share a tensor, held against what updates sent; one layer is planted.

The tiny model has one head of keys, which both ranks hold: its queries, keys and values are said not to compare.
"""

from pathlib import Path

import pytest
from recorded_run import ran
from recorder_folder import write_recorder
from tiny_checkpoint import write_tiny
from tiny_updates import built

from rlaudit.recording.recording import open_recording
from rlaudit.recording.weight_readings import WeightReadings, weight_readings

pytestmark = pytest.mark.engine

VERSION = "0.32.0"
PROGRAM = Path(__file__).with_name("sharded_weights.py")


def readings(folder: Path, kind: str, ranks: int, layer: str) -> list[WeightReadings]:
    """Those of each rank, in their order."""
    environment, model = built(VERSION), write_tiny(folder / "model", kind)
    # Bound by hand: a machine with one NUMA node has no second one for the second worker.
    bound = {"VLLM_CPU_OMP_THREADS_BIND": "|".join(["0"] * ranks)}
    recorder, out = write_recorder(folder / "recorder"), folder / "recording"
    ran(
        environment,
        PROGRAM,
        model,
        folder,
        ranks,
        layer,
        recorder=recorder,
        out=out,
        paths=[PROGRAM.parent],
        more=bound,
    )
    recording = open_recording(folder / "recording")
    workers = [one for one in recording.processes if one.workers]
    assert len(workers) == ranks and not any(one.failed for one in workers)
    found = [weight_readings(one, recording.processes, is_tied=False) for one in workers]
    assert all(one is not None and len(one.updates) == 3 for one in found)
    return sorted((one for one in found if one is not None), key=lambda one: len(list(one.faults())))


def test_each_rank_holds_its_share_and_the_one_that_took_nothing_is_named(tmp_path: Path) -> None:
    first, second = readings(tmp_path, "llama", 2, "layers.1.self_attn.o_proj")
    for one in (first, second):
        assert {name.split(".")[-2] for name in one.incomparable} == {"q_proj", "k_proj", "v_proj"}
        assert len(one.incomparable) == 6 and one.known == one.compared and len(one.compared) == 15
        assert not one.otherwise and any(update.changed for update in one.updates)
    assert list(first.faults()) == []
    (fault,) = second.faults()
    assert "layers.1.self_attn.o_proj.weight, of 15 tensors" in fault and "in up to 1 of 3 updates" in fault


def test_experts_of_one_tensor_are_told_apart(tmp_path: Path) -> None:
    (found,) = readings(tmp_path, "mixtral", 1, "layers.1.block_sparse_moe.experts.routed_experts.w2")
    assert not found.incomparable and found.known == found.compared and not found.otherwise
    assert len([name for name in found.compared if "experts" in name]) == 2 * 4 * 3
    assert set(found.stayed) == {f"model.layers.1.block_sparse_moe.experts.{expert}.w2.weight" for expert in range(4)}
