"""Recordings of small trainings as TRL's colocated ones are: releases, written and resolved configuration, updates."""

import json
from pathlib import Path
from typing import Any

from recorded_worlds import World
from written_recording import WrittenProcess

RESET = "vllm.v1.engine.core:EngineCore.reset_prefix_cache"
PAUSE = "vllm.v1.engine.async_llm:AsyncLLM.pause_generation"
SCORES = "trl.trainer.utils:selective_log_softmax"
V0, V1 = "vllm.worker.cpu_worker.CPUWorker", "vllm.v1.worker.cpu_worker.CPUWorker"
WRITTEN = {
    "model": "org/m", "dtype": "float32", "max_model_len": 512, "gpu_memory_utilization": 0.3,
    "distributed_executor_backend": "external_launcher",
}  # fmt: skip
VERSIONS = {"torch": "2.6.0", "transformers": "4.56.2", "trl": "0.23.1"}


def effective(worker: str = V1, mode: str | None = "RAW_LOGPROBS", **cache: Any) -> dict[str, Any]:
    """What vLLM resolves, by sections."""
    is_v1 = worker == V1
    return {
        "model_config": {"model": "org/m", "dtype": "torch.float32", "max_model_len": 512, "seed": 0,
                         **({"logprobs_mode": mode} if mode else {})},
        "cache_config": {"enable_prefix_caching": is_v1, "cache_dtype": "auto", "block_size": 16, **cache},
        "parallel_config": {"distributed_executor_backend": "external_launcher" if is_v1 else "mp",
                            "worker_cls": worker},
        "scheduler_config": {"policy": "fcfs", "chunked_prefill_enabled": is_v1, "max_num_seqs": 8},
        "device_config": {"device": "cpu"},
    }  # fmt: skip


def process_of(
    folder: Path, release: str = "0.18.1", environment: dict[str, str] | None = None, **first: Any
) -> WrittenProcess:
    """The file of a process without an engine."""
    process = WrittenProcess(folder)
    process.lines[0].update(versions={"vllm": release, **VERSIONS}, environment=environment or {}, **first)
    process.lines[1]["hooked"] = [RESET, SCORES]
    return process


def engine(
    process: WrittenProcess, resolved: dict[str, Any] | None, error: str | None = None, name: str = "EngineArgs",
    **written: Any,
) -> None:  # fmt: skip
    number = 1 + sum(line["kind"] == "engine" for line in process.lines)
    process.put("engine", number=number, **{"class": name}, written={**WRITTEN, **written}, effective=resolved,
                error=error)  # fmt: skip


def counted(process: WrittenProcess, by_sampling: dict[str, int], ended: bool = True) -> Path:
    """Write it, with counts of requests for each kind of sampling parameters."""
    folder = process.write(ended)
    lines = process.path.read_text().splitlines()
    process.path.write_text(
        "\n".join([*lines[:-1], json.dumps({**json.loads(lines[-1]), "by_sampling": by_sampling})]) + "\n"
    )
    return folder


def training(
    folder: Path, release: str, worker: str = V1, raw: bool = False, mode: str | None = None, **world: Any
) -> Path:
    """A whole training: what its tokens mean is `raw`, and what its configuration says `mode`."""
    World(raw=raw, **world).write(folder)
    (file,) = folder.glob("*.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    lines[0].update(
        versions={"vllm": release, **VERSIONS},
        environment={"VLLM_USE_V1": str(int(worker == V1))} if release in ("0.8.5", "0.10.2") else {},
    )
    lines[1]["hooked"] = [RESET, SCORES]
    place = next(number for number, line in enumerate(lines) if line["kind"] == "engine")
    lines[place].update(written=WRITTEN, effective=effective(worker, mode))
    kind = {"kind": "worker", "at": lines[place]["at"], "class": worker, "rank": 0, "device": "cpu", "capability": None}
    lines.insert(place + 1, kind)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder
