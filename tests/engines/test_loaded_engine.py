"""What a worker says it loaded, on stand-ins with the shapes that CUDA's workers have in each generation."""

import json
import sys
from collections.abc import Iterator
from enum import Enum, IntEnum
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from rlaudit.engines.inside import __path__ as vllm_folder

EXTENSION = Path(vllm_folder[0]) / "extension"


class GraphMode(Enum):
    NONE = 0
    PIECEWISE = 1
    FULL = 2
    FULL_AND_PIECEWISE = (2, 1)


class CompilationMode(IntEnum):
    NONE = 0
    VLLM_COMPILE = 3


class Dtype:
    def __init__(self, name: str):
        self._name = name

    def __str__(self) -> str:
        return f"torch.{self._name}"


def tensor(dtype: str, numbers: int = 1) -> SimpleNamespace:
    return SimpleNamespace(dtype=Dtype(dtype), numel=lambda: numbers)


@pytest.fixture
def extension(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(EXTENSION))
    torch = ModuleType("torch")
    torch.cuda = SimpleNamespace(  # type: ignore[attr-defined]
        is_available=lambda: True,
        get_device_name=lambda device: "NVIDIA H100 80GB HBM3",
        get_device_capability=lambda device: (9, 0),
    )
    torch.version = SimpleNamespace(cuda="12.8")  # type: ignore[attr-defined]
    nvml = ModuleType("vllm.third_party.pynvml")
    nvml.nvmlInit = nvml.nvmlShutdown = lambda: None  # type: ignore[attr-defined]
    nvml.nvmlSystemGetDriverVersion = lambda: b"570.86.15"  # type: ignore[attr-defined]
    third_party = ModuleType("vllm.third_party")
    third_party.pynvml = nvml  # type: ignore[attr-defined]
    for module in (torch, nvml, third_party, ModuleType("vllm")):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    import rlaudit_loaded_engine

    yield rlaudit_loaded_engine
    sys.modules.pop("rlaudit_loaded_engine", None)


def layer(backend: str, version: int | None = None, kv_cache_dtype: str = "auto") -> SimpleNamespace:
    impl = SimpleNamespace() if version is None else SimpleNamespace(vllm_flash_attn_version=version)
    return SimpleNamespace(
        get_attn_backend=lambda: SimpleNamespace(get_name=lambda: backend),
        impl=impl,
        kv_cache_dtype=kv_cache_dtype,
        kv_cache=tensor("uint8" if kv_cache_dtype == "fp8" else "bfloat16"),
    )


def model(*layers: Any, weights: tuple[Any, ...] = (tensor("bfloat16"),)) -> SimpleNamespace:
    return SimpleNamespace(modules=lambda: list(layers), parameters=lambda: list(weights))


class V1Sampler:
    def __init__(self) -> None:
        self.topk_topp_sampler = SimpleNamespace(forward=self.forward_cuda)

    def forward_cuda(self) -> None:
        """Allowed to use FlashInfer."""

    def sample(self) -> str:
        return "tokens"


class Builder:
    def use_cascade_attention(self, common_prefix_len: int, query_lens: list[int]) -> bool:
        return common_prefix_len >= 256 and len(query_lens) >= 8


class GPUModelRunner:
    """V1 as it is from 0.11 to 0.29 or so."""

    def __init__(self, loaded: Any) -> None:
        self.model = SimpleNamespace()
        self.get_model = lambda: loaded
        self.sampler = V1Sampler()
        self.builder = Builder()
        self.attn_groups = [[SimpleNamespace(get_metadata_builder=lambda: self.builder)]]
        self.cudagraph_dispatcher = SimpleNamespace(dispatch=lambda tokens: (GraphMode.FULL, "descriptor"))
        groups = [SimpleNamespace(kv_cache_spec=SimpleNamespace(block_size=size)) for size in (16, 16)]
        self.kv_cache_config = SimpleNamespace(kv_cache_groups=groups)

    def _compute_cascade_attn_prefix_lens(self, prefix: int, requests: int) -> list[list[int]] | None:
        used = self.builder.use_cascade_attention(common_prefix_len=prefix, query_lens=[1] * requests)
        return [[prefix]] if used else None


GPUModelRunner.__module__ = "vllm.v1.worker.gpu_model_runner"


class V2Runner:
    def __init__(self, loaded: Any) -> None:
        self.get_model = lambda: loaded
        self.sampler = SimpleNamespace(use_flashinfer=True, sample=lambda: "tokens")
        self.cudagraph_manager = SimpleNamespace(dispatch=lambda n: SimpleNamespace(cg_mode=GraphMode.PIECEWISE))


V2Runner.__module__ = "vllm.v1.worker.gpu.model_runner"
V2Runner.__name__ = "GPUModelRunner"


def config(**changes: Any) -> SimpleNamespace:
    parts = {
        "compilation_config": SimpleNamespace(
            cudagraph_mode=GraphMode.FULL_AND_PIECEWISE, mode=CompilationMode.VLLM_COMPILE, backend="inductor"
        ),
        "model_config": SimpleNamespace(quantization=None),
        "cache_config": SimpleNamespace(block_size=16),
        "parallel_config": SimpleNamespace(tensor_parallel_size=1),
    }
    return SimpleNamespace(**{**parts, **changes})


def worker(extension: Any, runner: Any, vllm_config: Any = None) -> Any:
    found = extension.LoadedEngine()
    found.model_runner, found.vllm_config, found.device = runner, vllm_config or config(), "cuda:0"
    return found


def told(found: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(found.rlaudit_loaded())
    assert answer["failed"] == {}
    return answer


def test_a_v1_worker_on_cuda_tells_kernels_graphs_and_device(extension: Any) -> None:
    features = told(worker(extension, GPUModelRunner(model(layer("FLASH_ATTN", 3)))))["features"]
    assert features == {
        "model_runner": "V1 GPUModelRunner",
        "attention_backend": "FLASH_ATTN",
        "attention_version": "FA3",
        "cudagraph_mode": "FULL_AND_PIECEWISE",
        "compilation": "VLLM_COMPILE, inductor",
        "sampler": "FlashInfer allowed",
        "moe_backend": "none (dense)",
        "all_reduce": "none (one worker)",
        "quantization": "none",
        "weight_dtype": "bfloat16",
        "kv_cache_dtype": "bfloat16",
        "kv_block_size": "16",
        "gpu": "NVIDIA H100 80GB HBM3",
        "compute_capability": "9.0",
        "driver": "570.86.15",
        "torch_cuda": "12.8",
    }


def test_model_runner_v2_is_told_from_v1_by_the_module_its_class_descends_from(extension: Any) -> None:
    on_a_cpu = type("CPUModelRunner", (V2Runner,), {"__module__": "vllm.v1.worker.cpu.model_runner"})
    loaded = model(layer("FLASH_ATTN", 3))
    assert told(worker(extension, V2Runner(loaded)))["features"]["model_runner"] == "V2 GPUModelRunner"
    assert told(worker(extension, on_a_cpu(loaded)))["features"]["model_runner"] == "V2 CPUModelRunner"


def test_the_worker_of_0_8_5_is_read_without_a_graph_mode_and_without_backend_classes(
    extension: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels = SimpleNamespace(NO_COMPILATION=0, PIECEWISE=3)
    module = ModuleType("vllm.config")
    module.CompilationLevel = levels  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm.config", module)
    monkeypatch.setattr(sys.modules["vllm"], "config", module, raising=False)
    attention = SimpleNamespace(
        backend=SimpleNamespace(name="FLASH_ATTN_VLLM_V1"),
        impl=SimpleNamespace(vllm_flash_attn_version=2),
        kv_cache_dtype="auto",
        kv_cache=[tensor("float16")],
    )
    kind = type("GPUModelRunner", (), {"__module__": "vllm.v1.worker.gpu_model_runner", "use_cuda_graph": True})
    runner = kind()
    runner.model, runner.sampler = model(attention, weights=(tensor("float16"),)), V1Sampler()
    compiled = SimpleNamespace(level=3, backend="", use_inductor=True)
    features = told(worker(extension, runner, config(compilation_config=compiled)))["features"]
    assert (features["attention_backend"], features["attention_version"]) == ("FLASH_ATTN_VLLM_V1", "FA2")
    assert (features["cudagraph_mode"], features["compilation"]) == ("PIECEWISE", "PIECEWISE, inductor")
    assert (features["kv_cache_dtype"], features["kv_block_size"]) == ("float16", "16")


def test_graphs_of_v0_are_those_its_runner_captured(extension: Any) -> None:
    kind = type("ModelRunner", (), {"__module__": "vllm.worker.model_runner"})
    runner = kind()
    runner.model, runner.sampler = model(layer("XFORMERS")), SimpleNamespace(forward=lambda: None)
    eager = config(compilation_config=SimpleNamespace(mode=CompilationMode.NONE))
    seen = []
    for captured in ([{}], [{8: "graph"}]):
        runner.graph_runners = captured
        seen.append(told(worker(extension, runner, eager))["features"]["cudagraph_mode"])
    assert seen == ["NONE", "FULL_DECODE_ONLY"]
    assert told(worker(extension, runner, eager))["features"]["model_runner"] == "V0 ModelRunner"


def test_layers_with_other_backends_and_a_quantized_cache_are_all_named(extension: Any) -> None:
    hybrid = model(layer("FLASH_ATTN", 3, "fp8"), layer("GDN_ATTN"), weights=(tensor("float32"), tensor("bfloat16", 9)))
    features = told(worker(extension, GPUModelRunner(hybrid)))["features"]
    assert features["attention_backend"] == "FLASH_ATTN + GDN_ATTN"
    assert features["kv_cache_dtype"] == "bfloat16 + fp8"
    assert features["weight_dtype"] == "bfloat16 + float32"


class FusedMoEMethodBase:
    """The name every method of expert layers descends from."""


class UnquantizedFusedMoEMethod(FusedMoEMethodBase):
    def __init__(self, backend: Enum) -> None:
        self.unquantized_backend = backend
        self.experts_cls = type("TritonExperts", (), {})


class FusedMoEModularMethod(FusedMoEMethodBase):
    def __init__(self, old: FusedMoEMethodBase) -> None:
        self.old_quant_method = old


def test_expert_kernels_are_those_the_method_chose_also_behind_a_modular_one(extension: Any) -> None:
    chosen = UnquantizedFusedMoEMethod(Enum("UnquantizedMoeBackend", "TRITON FLASHINFER_CUTLASS").TRITON)
    experts = SimpleNamespace(quant_method=FusedMoEModularMethod(chosen))
    features = told(worker(extension, GPUModelRunner(model(layer("FLASH_ATTN", 3), experts))))["features"]
    assert features["moe_backend"] == "TRITON, TritonExperts"


@pytest.mark.parametrize(
    ("communicators", "fused", "said"),
    [
        ({"ca_comm": False, "pynccl_comm": False}, False, "CUSTOM, PYNCCL"),
        ({"ca_comm": True, "pynccl_comm": False}, True, "PYNCCL (fused with RMSNorm)"),
    ],
)
def test_sums_over_workers_name_every_way_that_is_not_disabled(
    extension: Any, monkeypatch: pytest.MonkeyPatch, communicators: dict[str, bool], fused: bool, said: str
) -> None:
    parts = {name: SimpleNamespace(disabled=disabled) for name, disabled in communicators.items()}
    state = ModuleType("vllm.distributed.parallel_state")
    group = SimpleNamespace(device_communicator=SimpleNamespace(**parts))
    state.get_tp_group = lambda: group  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm.distributed", ModuleType("vllm.distributed"))
    monkeypatch.setitem(sys.modules, "vllm.distributed.parallel_state", state)
    compiled = SimpleNamespace(
        cudagraph_mode=GraphMode.FULL, mode=CompilationMode.NONE, pass_config=SimpleNamespace(fuse_allreduce_rms=fused)
    )
    two = config(parallel_config=SimpleNamespace(tensor_parallel_size=2), compilation_config=compiled)
    features = told(worker(extension, GPUModelRunner(model(layer("FLASH_ATTN", 3))), two))["features"]
    assert features["all_reduce"] == said


def test_batches_are_counted_by_what_they_ran(extension: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = ModuleType("vllm.v1.sample.ops.topk_topp_sampler")
    calls.flashinfer_sample = lambda: "drawn"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, calls.__name__, calls)
    runner = GPUModelRunner(model(layer("FLASH_ATTN", 3)))
    found = worker(extension, runner)
    found.rlaudit_watch()
    assert runner._compute_cascade_attn_prefix_lens(96, 24) is None
    assert runner._compute_cascade_attn_prefix_lens(512, 8) == [[512]]
    assert runner.cudagraph_dispatcher.dispatch(24) == (GraphMode.FULL, "descriptor")
    assert [runner.sampler.sample(), runner.sampler.sample(), calls.flashinfer_sample()] == ["tokens"] * 2 + ["drawn"]
    answer = told(found)
    assert answer["ran"] == {
        "batches": 2,
        "flashinfer_batches": 1,
        "cascade": {"considered": 2, "used": 1, "longest_prefix": 512, "most_requests": 24},
        "graphs": {"FULL": 1},
    }
    assert answer["features"]["sampler"] == "FlashInfer and native"


def test_flashinfer_that_is_allowed_and_never_draws_is_native_with_the_reason(extension: Any) -> None:
    runner = V2Runner(model(layer("FLASH_ATTN", 3)))
    found = worker(extension, runner)
    found.rlaudit_watch()
    runner.sampler.sample()
    assert runner.cudagraph_manager.dispatch(1).cg_mode is GraphMode.PIECEWISE
    answer = told(found)
    assert answer["features"]["sampler"] == "native"
    assert "no request has a seed" in answer["because"]["sampler"]
    assert answer["ran"]["cascade"] is None
    assert answer["ran"]["graphs"] == {"PIECEWISE": 1}


def test_a_look_that_fails_is_recorded_by_name_and_the_others_are_told(extension: Any) -> None:
    runner = GPUModelRunner(model(layer("FLASH_ATTN", 3)))
    del runner.sampler.topk_topp_sampler.forward
    answer = json.loads(worker(extension, runner).rlaudit_loaded())
    assert list(answer["failed"]) == ["sampler"]
    assert answer["failed"]["sampler"].startswith("AttributeError: ")
    assert answer["features"]["sampler"] is None
    assert answer["features"]["attention_backend"] == "FLASH_ATTN"


def test_what_a_release_has_not_got_is_none_with_the_reason(extension: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["torch"].cuda, "is_available", lambda: False)
    answer = told(worker(extension, GPUModelRunner(model(layer("CPU_ATTN")))))
    assert answer["features"]["gpu"] is answer["features"]["driver"] is answer["features"]["attention_version"] is None
    assert answer["because"]["gpu"] == "no CUDA device"
    assert answer["because"]["attention_version"] == "CPU_ATTN has no version"
