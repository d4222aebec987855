"""The executor: one process for one rank, several processes for more, Ray if it is requested or already running."""

from rlaudit.unknown import Unknown
from rlaudit.vllm.resolution.max_num_seqs import world_size
from rlaudit.vllm.resolve import Function, Resolution, ResolutionRule, Resolved, number


def apply(view: Resolution) -> Resolved | None:
    """Return uni, mp or ray if nothing is written."""
    if view.given("distributed_executor_backend") is not None:
        return None
    ranks = world_size(view)
    replicas = view.given("data_parallel_size") if view.since("0.17.0") else 1
    if isinstance(replicas, Unknown):
        ranks = replicas
    elif not isinstance(ranks, Unknown):
        ranks *= number(replicas) or 1
    if isinstance(ranks, Unknown):
        return Resolved(
            Unknown(f"the number of ranks decides: {ranks.reason}", hangs_on=ranks.fact), "by the number of ranks"
        )
    if view.machine.platform == "cpu" and (view.since("0.20.0") or not view.since("0.9.1")):
        return Resolved("mp", "a CPU runs its workers in separate processes")
    if ranks == 1:
        return Resolved("uni", "one rank")
    if view.config.placed_by_ray:
        return Resolved("ray", f"{ranks} ranks, requested in an actor of a Ray placement group")
    return Resolved("mp", f"{ranks} ranks on one node; inside a Ray placement group vLLM takes ray instead")


RESOLUTION = ResolutionRule(
    "distributed_executor_backend",
    (
        *(
            Function(path, "ParallelConfig.__post_init__", ("distributed_executor_backend", "backend"))
            for path in ("vllm/config.py", "vllm/config/__init__.py", "vllm/config/parallel.py")
        ),
        Function("vllm/platforms/cpu.py", "CpuPlatform.check_and_update_config", ("distributed_executor_backend",)),
    ),
    apply,
)
