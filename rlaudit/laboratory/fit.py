"""Whether a model's weights fit, by the sizes of its files and before anything starts.

Only a plan that cannot fit is refused, by the smallest size of its weights alone. An engine that lacks room for caches
and activations fails with its own message.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from packaging.version import Version

from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.hardware.nvidia_driver import MIB
from rlaudit.engines.inside.engine import ENGINE, gpus_of
from rlaudit.engines.models.model_files import DTYPE_BYTES, ModelFiles
from rlaudit.errors import NotFinished
from rlaudit.laboratory.scoring import GIB, TRAINER_HEADROOM_BYTES
from rlaudit.laboratory.study import Plan
from rlaudit.settings.trainer_facts import Dtype
from rlaudit.vllm.catalogue import Catalogue, known_versions

# What scoring takes on a processor beside the weights: torch and transformers 0.5 GiB, logits of its batches of 512
# tokens 0.9 GiB.
HOST_HEADROOM_BYTES = int(1.5 * GIB)
# What a cell on CUDA takes of the host: torch twice over, CUDA's context and pinned buffers; weights pass through page
# by page. Not measured: if too large, a small host runs fewer cells at once; if too small, the kernel ends an engine.
HOST_BYTES_ON_CUDA = 8 * GIB
# Share of a GPU's room that weights surely fit: the trainer's estimate of them is a little larger than the files.
SURELY = 0.9
AS_STORED = "auto"


@dataclass(frozen=True)
class Need:
    """Bytes that an engine or the trainer must hold."""

    who: str
    needed: int
    where: str
    # Bytes that are available.
    there: int
    # What would make it fit.
    way_out: str


def refuse_what_cannot_fit(files: ModelFiles, needs: Iterable[Need]) -> None:
    """Go on only if every need is met. Raises NotFinished naming the first that is not, and the ways out."""
    problem = misfit(files, needs)
    if problem is not None:
        raise problem


def misfit(files: ModelFiles, needs: Iterable[Need]) -> NotFinished | None:
    """Return the first need that is not met, as an error with the ways out."""
    for need in needs:
        if need.needed > need.there:
            return NotFinished(
                f"{files.name} does not fit: {need.who} needs {need.needed / GIB:.1f} GiB for its weights, and "
                f"{need.where} {max(0, need.there) / GIB:.1f} GiB for them",
                f"{need.way_out}, or take a smaller model: --model.",
            )
    return None


def plan_needs(plan: Plan, accelerator: Accelerator, files: ModelFiles) -> Iterator[Need]:
    """Yield what the plan's trainers and its engines must hold; nothing if the size of the weights is unknown."""
    for dtype in sorted({request.trainer.dtype for request in plan.scoring}):
        yield from trainer_need(dtype, accelerator, files)
    yield from engine_needs(plan, accelerator, files)


def trainer_need(dtype: str, accelerator: Accelerator, files: ModelFiles) -> Iterator[Need]:
    """Yield the weights in one dtype; nothing if their size is unknown."""
    needed = files.weight_bytes(dtype)
    if needed is None:
        return
    way_out = "Score in bfloat16 (trainer.dtype)" if dtype == Dtype.FLOAT32 else "Add memory"
    if accelerator.kind == "cpu":
        available = accelerator.memory_mib * MIB - HOST_HEADROOM_BYTES
        yield Need(f"the trainer in {dtype}", needed, "this machine has", available, way_out)
        return
    available = sum(device.memory_mib * MIB - TRAINER_HEADROOM_BYTES for device in accelerator.devices)
    count = len(accelerator.devices)
    where = f"{count} x {accelerator.name} have" if count > 1 else f"the {accelerator.name} has"
    yield Need(f"the trainer in {dtype}", needed, where, available, f"{way_out}, or use more GPUs")


def engine_needs(plan: Plan, accelerator: Accelerator, files: ModelFiles) -> Iterator[Need]:
    """Yield the weights of each engine, split over GPUs by its arguments.

    Nothing for an engine with another model, or with arguments that change what its weights take.
    """
    for engine in plan.engines:
        arguments = engine.engine_args
        needed = _engine_bytes(files, str(arguments.get("dtype", AS_STORED)))
        if needed is None or engine.model or arguments.get("quantization") or arguments.get("cpu_offload_gb"):
            continue
        who = f"{engine.who},"
        if accelerator.kind == "cpu":
            available = accelerator.memory_mib * MIB - HOST_HEADROOM_BYTES
            yield Need(who, needed, "this machine has", available, "Load it in bfloat16 (engine_args.dtype)")
            continue
        parts = gpus_of(arguments)
        share = arguments.get("gpu_memory_utilization", _default_share(engine.version))
        available = int(min(device.memory_mib for device in accelerator.devices) * MIB * float(share))
        yield Need(
            f"{who} on each of {parts} GPU{'s' * (parts > 1)}",
            needed // parts,
            f"{100 * share:.0f} % of a GPU (gpu_memory_utilization) is",
            available,
            "Set engine_args.tensor_parallel_size to share it out over more GPUs",
        )


def gpus_to_score(accelerator: Accelerator, files: ModelFiles) -> dict[str, int]:
    """Return the dtypes in which the weights surely fit on one GPU, with 1; with others the trainer gets all GPUs."""
    room = min((device.memory_mib * MIB for device in accelerator.devices), default=0) - TRAINER_HEADROOM_BYTES
    sizes = {dtype: files.weight_bytes(dtype) for dtype in DTYPE_BYTES}
    return {dtype: 1 for dtype, needed in sizes.items() if needed is not None and needed < SURELY * room}


def host_bytes(plan: Plan, accelerator: Accelerator, files: ModelFiles) -> int:
    """Return the most host memory that one cell of the plan may take, as far as it is known."""
    if accelerator.kind == "cuda":
        return HOST_BYTES_ON_CUDA
    weights = max((need.needed for need in plan_needs(plan, accelerator, files)), default=0)
    return weights + HOST_HEADROOM_BYTES + int(ENGINE.on_cpu["VLLM_CPU_KVCACHE_SPACE"]) * GIB


def _engine_bytes(files: ModelFiles, dtype: str) -> int | None:
    """Return the bytes of an engine's weights in its dtype; `auto` halves float32 and leaves the rest."""
    if dtype == AS_STORED:
        sizes = [files.stored_bytes, files.weight_bytes("bfloat16")]
        return min((size for size in sizes if size is not None), default=None)
    return files.weight_bytes({"half": "float16", "float": "float32"}.get(dtype, dtype))


def _default_share(version: str) -> float:
    """Return the default of gpu_memory_utilization: 0.9, and 0.92 in late releases."""
    release = Catalogue.at(max(Version(version), known_versions()[0]))
    return float(release.engine["gpu_memory_utilization"].default)
