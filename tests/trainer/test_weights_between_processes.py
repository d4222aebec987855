"""Both ends of a broadcast, each in a process of its own, and what is told of experts whose elements moved.

Needs torch and safetensors in the interpreter that runs the tests, as a trainer's environment has them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="weights need torch: run these tests in a trainer's environment")
pytest.importorskip("safetensors", reason="as above")

VLLM = Path(__file__).parents[2] / "rlaudit" / "engines" / "vllm"
SENDER = VLLM / "scripts" / "weight_sender.py"
sys.path.append(str(VLLM / "extension"))

TENSORS = {"a.weight": (3, 4), "b.weight": (5,), "c.scale": ()}


def checkpoint(folder, version):
    from safetensors.torch import save_file

    folder.mkdir()
    tensors = {name: torch.full(shape, float(version)) for name, shape in TENSORS.items()}
    save_file({**tensors, "d.weight": torch.full((2, 2), version, dtype=torch.bfloat16)}, folder / "model.safetensors")
    return str(folder)


@pytest.fixture
def received(tmp_path):
    """What a worker receives of one update: [(name, dtype, the value that fills it)]."""
    from rlaudit_broadcast import Group, find_store
    from rlaudit_weight_sources import join, tensors_of

    process = subprocess.Popen(
        [sys.executable, str(SENDER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env={"PYTHONPATH": str(VLLM / "extension")},
    )

    def say(message):
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()

    def hear():
        return json.loads(process.stdout.readline())

    folders = {str(version): checkpoint(tmp_path / str(version), version) for version in (0, 1)}
    say({"checkpoints": {**folders, "none": "no/folder"}, "workers": 1, "seconds": 600})
    end = hear()
    assert end["place"]["gpu"] is None or torch.cuda.is_available()
    say({"backend": "gloo", "size": 2})
    cpu = torch.device("cpu")
    join(Group("gloo", find_store(end["port"], 600), 1, 2, cpu, 600))
    assert hear() == {"ready": True}

    def update(version="1", skip=()):
        say({"send": version, "skip": list(skip)})
        told = hear()
        if "error" in told:
            return told["error"]
        found = [
            (name, str(tensor.dtype).replace("torch.", ""), float(tensor.float().mean()))
            for name, tensor in tensors_of(told["source"], cpu)
        ]
        assert hear() == {"sent": len(found)}
        return found

    with process:
        yield update
        process.stdin.close()
        assert process.wait() == 0


WHOLE = [
    ("a.weight", "float32", 1.0),
    ("b.weight", "float32", 1.0),
    ("c.scale", "float32", 1.0),
    ("d.weight", "bfloat16", 1.0),
]


def test_every_tensor_arrives_in_its_dtype_update_after_update(received):
    assert sorted(received()) == WHOLE
    assert [value for _, _, value in received("0")] == [0.0] * 4


def test_what_is_left_out_does_not_come(received):
    assert sorted(received(skip=["b."])) == [one for one in WHOLE if one[0] != "b.weight"]


def test_a_checkpoint_that_cannot_be_read_is_an_answer_and_the_next_update_goes_on(received):
    assert "no/folder" in received("none")
    assert sorted(received()) == WHOLE


def test_nccl_is_taken_only_where_every_end_has_a_gpu_of_its_own_and_one_nccl():
    from rlaudit_broadcast import backend_between

    ends = [{"gpu": "GPU-a", "nccl": "2.27.5"}, {"gpu": "GPU-b", "nccl": "2.27.5"}]
    assert backend_between(ends) == ("nccl", None)
    for broken, said in (
        ({"gpu": None, "nccl": None}, "the engine is on a CPU"),
        ({"gpu": "GPU-a", "nccl": "2.27.5"}, "one process for each GPU"),
        ({"gpu": "GPU-b", "nccl": "2.28.9"}, "2.27.5 and 2.28.9"),
    ):
        backend, because = backend_between([ends[0], broken])
        assert backend == "gloo" and said in because
    assert backend_between([{"gpu": None, "nccl": None}, ends[1]]) == ("gloo", "the sender has no GPU")


def test_a_group_is_made_under_the_senders_nccl_variables_and_the_workers_own_come_back(monkeypatch):
    from rlaudit_broadcast import nccl_variables

    monkeypatch.setenv("NCCL_ALGO", "allreduce:tree")
    monkeypatch.setenv("NCCL_PROTO", "Simple")
    with nccl_variables({"NCCL_PROTO": "LL", "NCCL_IB_HCA": "mlx5"}):
        seen = {name: value for name, value in os.environ.items() if name.startswith("NCCL_")}
    assert seen == {"NCCL_PROTO": "LL", "NCCL_IB_HCA": "mlx5"}
    assert (os.environ["NCCL_ALGO"], os.environ["NCCL_PROTO"]) == ("allreduce:tree", "Simple")
    assert "NCCL_IB_HCA" not in os.environ


def experts(version):
    generator = torch.Generator().manual_seed(version)
    shapes = {"gate_proj": (8, 4), "up_proj": (8, 4), "down_proj": (4, 8)}
    return {
        f"m.0.mlp.experts.{expert}.{word}.weight": torch.randn(shape, generator=generator)
        for expert in range(3)
        for word, shape in shapes.items()
    }


def test_a_fused_layer_is_read_whatever_order_its_kernel_keeps_and_the_old_half_of_an_expert_is_named():
    from rlaudit_expert_weights import expert_tensors, versions_held

    versions = [experts(0), experts(1)]
    named = expert_tensors("m.0.mlp.experts.routed.w13_weight", versions[0])
    assert [len(names) for names in named] == [2, 2, 2]
    assert expert_tensors("m.0.mlp.gate.weight", versions[0]) is None
    mixed = {**versions[1], named[2][1]: versions[0][named[2][1]]}
    # Halves swapped, rows in another order, and padding between them.
    fused = torch.stack([torch.cat([mixed[up], torch.zeros(2, 4), mixed[gate]]).flip(0) for gate, up in named])
    held = versions_held(fused, named, versions)
    assert [name for name, version in held.items() if version == 0] == [named[2][1]]
    assert sorted(held.values()) == [0, 1, 1, 1, 1, 1]
    fused[0, 0, 0] += 1
    assert [name for name, version in versions_held(fused, named, versions).items() if version is None] == named[0]
