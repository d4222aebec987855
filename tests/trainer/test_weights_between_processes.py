"""Both ends of a broadcast of weights.

Needs torch and safetensors in the interpreter that runs the tests, as a trainer's environment has them.
"""

import asyncio
import json
import os
import sys
import typing
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="weights need torch: run these tests in a trainer's environment")
pytest.importorskip("safetensors", reason="as above")

VLLM = Path(__file__).parents[2] / "rlaudit" / "engines" / "inside"
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
    """What a worker receives of one update: [(name, dtype, the value that fills it)]. The sender is another thread."""
    from rlaudit_weight_transport import Checkpoint, Group, Sender, join, place, store_at, tensors_of

    folders = {str(version): checkpoint(tmp_path / str(version), version) for version in (0, 1)}
    cpu = torch.device("cpu")
    assert place(cpu) == {"gpu": None, "nccl": None}
    sender = Sender(cpu, 600)
    with ThreadPoolExecutor() as threads:
        met = threads.submit(sender.meet, {"backend": "gloo", "size": 2})
        join(Group("gloo", store_at(sender.port, 600), 1, 2, cpu, 600))
        met.result()

        def update(version="1"):
            pairs = Checkpoint(folders[version]).items()
            source = sender.source(pairs)
            sent = threads.submit(sender.send, pairs)
            found = [
                (name, str(tensor.dtype).replace("torch.", ""), float(tensor.float().mean()))
                for name, tensor in tensors_of(source, cpu)
            ]
            sent.result()
            return found

        yield update


WHOLE = [
    ("a.weight", "float32", 1.0),
    ("b.weight", "float32", 1.0),
    ("c.scale", "float32", 1.0),
    ("d.weight", "bfloat16", 1.0),
]


def test_every_tensor_arrives_in_its_dtype_update_after_update(received):
    assert sorted(received()) == WHOLE
    assert [value for _, _, value in received("0")] == [0.0] * 4


class Engine:
    """Workers that take what is broadcast, in a thread of this process."""

    def __init__(self):
        self.taken, self.dies = [], False

    async def call(self, method, *arguments):
        from rlaudit_weight_transport import Group, join, place, store_at

        cpu = torch.device("cpu")
        if method == "rlaudit_place":
            return [json.dumps(place(cpu))]
        backend, port, size, seconds, _ = arguments
        group = lambda: join(Group(backend, store_at(port, seconds), 1, size, cpu, seconds))  # noqa: E731
        return await asyncio.get_running_loop().run_in_executor(None, group)

    async def load(self, source):
        from rlaudit_weight_transport import tensors_of

        take = lambda: {name: float(tensor.float().mean()) for name, tensor in tensors_of(source, "cpu")}  # noqa: E731
        self.taken.append(await asyncio.get_running_loop().run_in_executor(None, take))
        if self.dies:
            raise RuntimeError("the worker has died")


def test_an_audits_broadcast_sends_what_the_engine_loads_and_leaves_its_sender_after_a_failure(tmp_path):
    from rlaudit_weight_transport import Broadcast

    folders = {str(version): checkpoint(tmp_path / str(version), version) for version in (0, 1)}
    transport = Broadcast(600)

    async def play():
        engine = Engine()
        ran = await transport.open(engine)
        await transport.load(engine, folders["1"])
        engine.dies = True
        with pytest.raises(RuntimeError, match="has died"):
            await transport.load(engine, folders["0"])
        return ran, engine.taken[0], transport.sender

    ran, taken, sender = asyncio.run(play())
    assert ran == {"name": "broadcast", "backend": "gloo", "because": "the engine is on a CPU"}
    assert taken == dict.fromkeys([*TENSORS, "d.weight"], 1.0) and sender is None


def test_nccl_is_taken_only_where_every_end_has_a_gpu_of_its_own_and_one_nccl():
    from rlaudit_weight_transport import backend_between

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
    from rlaudit_weight_transport import nccl_variables

    monkeypatch.setenv("NCCL_ALGO", "allreduce:tree")
    monkeypatch.setenv("NCCL_PROTO", "Simple")
    with nccl_variables({"NCCL_PROTO": "LL", "NCCL_IB_HCA": "mlx5"}):
        seen = {name: value for name, value in os.environ.items() if name.startswith("NCCL_")}
    assert seen == {"NCCL_PROTO": "LL", "NCCL_IB_HCA": "mlx5"}
    assert (os.environ["NCCL_ALGO"], os.environ["NCCL_PROTO"]) == ("allreduce:tree", "Simple")
    assert "NCCL_IB_HCA" not in os.environ


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv_proj = torch.nn.Linear(4, 8, bias=False)


class Model(torch.nn.Module):
    """One layer as vLLM holds it: q, k and v in one tensor, and a vocabulary that is padded."""

    packed_modules_mapping: typing.ClassVar = {"qkv_proj": ["q_proj", "k_proj", "v_proj"]}

    def __init__(self, tensors, head):
        super().__init__()
        self.embed_tokens, self.attn, self.norm = torch.nn.Embedding(10, 4), Attention(), torch.nn.LayerNorm(4)
        self.empty = torch.nn.Linear(4, 4, bias=False)
        qkv = torch.cat([tensors[f"attn.{part}_proj.weight"] for part in "qkv"])
        self.attn.qkv_proj.weight.data = qkv.to(torch.bfloat16)
        self.norm.weight.data = tensors["norm.weight"]
        self.embed_tokens.weight.data[:7] = tensors["embed_tokens.weight"]
        # A kernel has packed it.
        self.empty.weight.data = torch.empty(0)
        self.head = head

    def compute_logits(self, hidden):
        return hidden @ self.head.t()


def test_what_a_model_holds_is_read_back_tensor_by_tensor_and_its_head_by_its_answer(tmp_path):
    from rlaudit_weight_update import read_back
    from safetensors.torch import save_file

    shapes = {"attn.q_proj": (4, 4), "attn.k_proj": (2, 4), "attn.v_proj": (2, 4), "norm": (4,), "embed_tokens": (7, 4)}
    versions = []
    for version in range(2):
        random = torch.Generator().manual_seed(version)
        tensors = {f"{name}.weight": torch.randn(shape, generator=random) for name, shape in shapes.items()}
        versions.append({**tensors, "empty.weight": torch.randn((4, 4), generator=random)})
        versions[-1]["model.embed_tokens.weight"] = versions[-1]["embed_tokens.weight"].clone()
        (tmp_path / str(version)).mkdir()
        save_file(versions[-1], tmp_path / str(version) / "model.safetensors")
    held = {**versions[1], "attn.k_proj.weight": versions[0]["attn.k_proj.weight"], "norm.weight": torch.zeros(4)}
    model = Model(held, versions[0]["embed_tokens.weight"])
    config = SimpleNamespace(
        parallel_config=SimpleNamespace(world_size=1), model_config=SimpleNamespace(dtype=torch.float32)
    )
    read = read_back(model, config, [str(tmp_path / "0"), str(tmp_path / "1")])
    assert read["tensors"] == {
        "attn.q_proj.weight": 1,
        "attn.k_proj.weight": 0,
        "attn.v_proj.weight": 1,
        "norm.weight": None,
        "embed_tokens.weight": 1,
    }
    assert sorted(read["unread"]) == ["empty.weight", "model.embed_tokens.weight"]
    assert read["logits"] == 0
