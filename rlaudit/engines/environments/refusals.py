"""Environments that the NVIDIA driver or the C library of this machine cannot run, known before any download.

The CUDA of an environment is that of its torch. vLLM's wheels pin one torch exactly and are linked against its CUDA, so
that another build of torch is no way out for an engine. The same release built for another CUDA is one, if an index
that the user configured has it. With an unknown driver (the login node of a cluster) nothing is refused. Nor is a given
interpreter: its container may bring NVIDIA's cuda-compat.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from packaging.version import Version

from rlaudit.engines.environments.environment_spec import EnvironmentSpec
from rlaudit.engines.environments.package_index import releases
from rlaudit.engines.environments.pip_configuration import DEFAULT_INDEX, PackageSources, read_package_sources
from rlaudit.engines.hardware.accelerator import Accelerator, machine_of
from rlaudit.engines.hardware.driver import driver_runs, lowest_driver
from rlaudit.errors import NotFinished
from rlaudit.vllm.builds import cuda_of_torch, published_build, recorded_versions
from rlaudit.vllm.milestones import CUDA_12_9_ELSEWHERE
from rlaudit.vllm.runs_here import nearest_alike, newer_glibc

ELSEWHERE_CUDA = "12.9"
ELSEWHERE = "vllm=={version}+cu129 from https://wheels.vllm.ai/{version}/cu129"
_LOCAL_CUDA = re.compile(r"cu(\d\d)(\d)")


@dataclass(frozen=True)
class Needs:
    """The torch that an environment gets and the CUDA that torch was built for."""

    torch: str
    cuda: str


@dataclass(frozen=True)
class Refusal:
    """An environment that this machine cannot run, why, and the ways out."""

    spec: EnvironmentSpec
    message: str
    hint: str


def refuse(specs: Iterable[EnvironmentSpec], accelerator: Accelerator) -> None:
    """Raise NotFinished, with the ways out, if this machine cannot run one of these environments."""
    refused = refusals(specs, accelerator)
    if refused:
        messages = "\n".join(refusal.message for refusal in refused)
        raise NotFinished(messages, "\n  ".join(refusal.hint for refusal in refused))


def refusals(specs: Iterable[EnvironmentSpec], accelerator: Accelerator) -> tuple[Refusal, ...]:
    """Return every environment among these that the machine cannot run."""
    refused = []
    for spec in specs:
        needed = None if spec.command else needs(spec)
        too_new = None if spec.command else _of_glibc(spec, accelerator)
        if too_new is not None:
            refused.append(too_new)
            continue
        reason = refusal(spec, needed, accelerator.driver_cuda, accelerator.driver) if needed else None
        if reason is not None and not _is_on_a_named_index(spec, accelerator.driver_cuda, read_package_sources()):
            refused.append(reason)
    return tuple(refused)


def _of_glibc(spec: EnvironmentSpec, accelerator: Accelerator) -> Refusal | None:
    """Return why this machine's C library cannot load a release; None if it can, or is not known."""
    here = accelerator.glibc
    needed = newer_glibc(spec.version, spec.build, here) if spec.is_engine else ""
    if not needed:
        return None
    nearest = nearest_alike(spec.version, spec.build, here, machine_of(accelerator))
    alike = f"vLLM {nearest}, the nearest release that runs here: nothing that decides logprobs differs"
    ways = [*([alike] if nearest else []), f"a container with a newer glibc, given as --python {spec.version}=COMMAND"]
    message = f"{spec.name} cannot run here: it needs glibc {needed}, and this machine has {here}"
    return Refusal(spec, message, f"Ways out for {spec.name}: {'; '.join(ways)}.")


def refusal(spec: EnvironmentSpec, needed: Needs, driver_cuda: str, driver: str = "") -> Refusal | None:
    """Return why a driver that offers CUDA `driver_cuda` cannot run an environment; None if it can, or is not known."""
    if not driver_cuda or driver_runs(driver_cuda, needed.cuda):
        return None
    lowest = lowest_driver(needed.cuda)
    message = (
        f"{spec.name} cannot run here: its torch {needed.torch} needs NVIDIA driver {lowest} or newer (CUDA "
        f"{needed.cuda}), and this machine's{driver and f', {driver},'} offers CUDA {driver_cuda}"
    )
    ways = [f"driver {lowest} or newer", *_other_engines(spec, driver_cuda)]
    return Refusal(spec, message, f"Ways out for {spec.name}: {'; '.join(ways)}.")


def needs(spec: EnvironmentSpec) -> Needs | None:
    """Return the recorded torch and CUDA of an environment; None if it needs no driver, or if none are recorded."""
    if spec.build == "cpu":
        return None
    if spec.is_engine:
        build = published_build(spec.version, "cuda")
        return Needs(build.torch, build.cuda) if build else None
    cuda = cuda_of_torch(spec.torch)
    return Needs(spec.torch, cuda) if cuda else None


def needs_of_lock(lock: Sequence[str]) -> Needs | None:
    """Return the torch of resolved packages, and the CUDA of their runtime library; None without both.

    A torch that is built for something else (`2.13.0+cpu`) counts as none, even if the library is there.
    """
    exact = dict(line.partition(" ;")[0].split("==") for line in lock if "==" in line)
    torch = Version(exact["torch"]) if "torch" in exact else None
    # `nvidia-cuda-runtime-cu12` up to CUDA 12, `nvidia-cuda-runtime` from 13 on.
    runtime = next((version for name, version in exact.items() if name.startswith("nvidia-cuda-runtime")), None)
    if torch is None or runtime is None or not (torch.local is None or torch.local.startswith("cu")):
        return None
    return Needs(str(torch), ".".join(runtime.split(".")[:2]))


def newest_release(driver_cuda: str) -> Version | None:
    """Return the newest recorded vLLM whose CUDA a driver runs."""
    builds = [(version, published_build(str(version), "cuda")) for version in recorded_versions()]
    return max((version for version, build in builds if build and driver_runs(driver_cuda, build.cuda)), default=None)


def _is_on_a_named_index(spec: EnvironmentSpec, driver_cuda: str, sources: PackageSources) -> bool:
    """Return whether the user's indexes have the release built for a CUDA that the driver runs, as `0.20.0+cu129`.

    PyPI has no such versions and is not asked. The torch of such a build is checked once it is resolved.
    """
    if not spec.is_engine or (sources.index == DEFAULT_INDEX and not sources.extra_indexes):
        return False
    try:
        published = releases(spec.distribution, sources)
    except NotFinished:
        return False
    public = str(Version(spec.version))
    cudas = [_LOCAL_CUDA.fullmatch(version.local or "") for version in published if version.public == public]
    return any(cuda and driver_runs(driver_cuda, f"{cuda[1]}.{cuda[2]}") for cuda in cudas)


def _other_engines(spec: EnvironmentSpec, driver_cuda: str) -> list[str]:
    if not spec.is_engine:
        return ["an interpreter whose torch runs here, given as --trainer-python"]
    ways = []
    newest = newest_release(driver_cuda)
    if newest is not None:
        ways.append(f"vLLM {newest}, the newest release that this driver runs")
    if Version(spec.version) >= CUDA_12_9_ELSEWHERE and driver_runs(driver_cuda, ELSEWHERE_CUDA):
        elsewhere = ELSEWHERE.format(version=spec.version)
        ways.append(f"{elsewhere}, which PyPI lacks: name that index to pip or uv, and PyTorch's for cu129")
    return [*ways, f"a container with NVIDIA's cuda-compat package, given as --python {spec.version}=COMMAND"]
