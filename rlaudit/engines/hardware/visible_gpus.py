"""Which GPUs `CUDA_VISIBLE_DEVICES` leaves, and how they are named to an engine.

CUDA takes numbers, UUIDs or beginnings of UUIDs, in the order given, up to the first that does not exist. It numbers
only the GPUs that this process may use; vLLM reads the same numbers as the driver's, which count every GPU. If the two
can differ, a GPU has no number that both understand. Engines run on whole GPUs: MIG instances are refused by name.
Source: NVIDIA, "CUDA C++ Programming Guide", environment variables; "Multi-Instance GPU User Guide", enumeration.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from packaging.version import Version

from rlaudit.engines.environments.environment_spec import EnvironmentSpec
from rlaudit.engines.hardware.nvidia_driver import Device, Gpu
from rlaudit.engines.inside.engine import ENGINE
from rlaudit.errors import NotFinished

VISIBLE, ORDER, BUS_ORDER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "PCI_BUS_ID"
DO_WITHOUT = "give --cpu to do without a GPU"


def visible_gpus(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> tuple[Device, ...]:
    """Return the GPUs that an engine started here would see, at least one.

    Raises NotFinished if the variable leaves none, or if it is unknown which GPUs are meant.
    """
    words = environ.get(VISIBLE)
    if words is None:
        _refuse_troubled(gpus)
        return _in_cuda_order(gpus, environ)
    chosen = list(_chosen(words, gpus, environ))
    if not chosen:
        raise NotFinished(
            f"{VISIBLE}={words} leaves no GPU of this machine: {_names(gpus) or 'this process may use none of them'}",
            f"name one of them, or unset it; {DO_WITHOUT}",
        )
    if len(set(chosen)) < len(chosen):
        raise NotFinished(f"{VISIBLE}={words} names a GPU twice, which CUDA refuses", "name each GPU once")
    return tuple(chosen)


def gpu_variables(devices: Sequence[Device], spec: EnvironmentSpec) -> dict[str, str]:
    """Return the variables that show an engine or a trainer these GPUs and no others; with no devices, no GPU.

    Raises NotFinished if there is no way to name one of them to the release.
    """
    if not devices:
        return {VISIBLE: ""}
    by_uuid = any(device.only_by_uuid for device in devices)
    if by_uuid and spec.is_engine:
        for device in devices:
            if Version(spec.version) < ENGINE.takes_uuids:
                raise NotFinished(
                    f"vLLM {spec.version} cannot be shown {device.uuid} ({device.name}): here CUDA and the driver may "
                    f"number it differently; vLLM finds a GPU by its UUID from {ENGINE.takes_uuids} on",
                    "run where that is the only one there is, as in a container that was given no other "
                    f"(docker run --gpus device={device.uuid}); {DO_WITHOUT}",
                )
    return shown_by(devices)


def shown_by(devices: Sequence[Device]) -> dict[str, str]:
    """Return the variables that show these GPUs and no others."""
    by_uuid = any(device.only_by_uuid for device in devices)
    words = (device.uuid if by_uuid else str(device.index) for device in devices)
    return {VISIBLE: ",".join(words), ORDER: BUS_ORDER}


def only_these(variables: Mapping[str, str], places: Sequence[int]) -> dict[str, str]:
    """Return variables that show only those at these places of the GPUs that `variables` show (gpu_variables)."""
    words = variables[VISIBLE].split(",")
    return {VISIBLE: ",".join(words[place] for place in places)}


def _chosen(words: str, gpus: Sequence[Gpu], environ: Mapping[str, str]) -> Iterator[Device]:
    for word in (part.strip() for part in words.split(",")):
        if word.isdigit():
            _refuse_troubled([gpu for gpu in gpus if gpu.index <= int(word)])
            matches = _in_cuda_order(gpus, environ)[int(word) : int(word) + 1]
        else:
            matches = _with_uuid(word, gpus)
        if len(matches) != 1:
            return
        yield matches[0]


def _with_uuid(word: str, gpus: Sequence[Gpu]) -> tuple[Device, ...]:
    """Return the devices whose UUID begins with `word`."""
    if not word:
        return ()
    if word.startswith("MIG-"):
        _refuse_mig(word)
    for gpu in gpus:
        if gpu.forbidden and gpu.uuid.startswith(word):
            raise NotFinished(
                f"this process may not use {gpu.uuid} ({gpu.name}), which {VISIBLE} names",
                f"ask the scheduler or the container for it; {DO_WITHOUT}",
            )
        if gpu.mig and gpu.uuid.startswith(word):
            _refuse_mig(gpu.uuid)
    matches = tuple(device for device in _devices(gpus) if device.uuid.startswith(word))
    if not matches:
        _refuse_troubled(gpus)
    return matches


def _in_cuda_order(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> tuple[Device, ...]:
    """Return the devices in CUDA's order. Raises NotFinished if CUDA's order is unknown."""
    devices = tuple(_devices(gpus))
    # With MIG on, CUDA shows one instance and hides all other GPUs.
    for gpu in gpus:
        if gpu.mig:
            _refuse_mig(gpu.uuid)
    if not devices:
        raise NotFinished(
            f"this process may use none of the {len(gpus)} GPUs that the driver shows",
            f"ask the scheduler or the container for a GPU; {DO_WITHOUT}",
        )
    # CUDA's default order is fastest first.
    if len({device.name for device in devices}) > 1 and environ.get(ORDER) != BUS_ORDER:
        raise NotFinished(
            f"this machine has GPUs of several kinds, which CUDA and the driver may number differently: {_names(gpus)}",
            f"name one by its UUID in {VISIBLE}, or set {ORDER}={BUS_ORDER}; {DO_WITHOUT}",
        )
    return devices


def _devices(gpus: Sequence[Gpu]) -> Iterator[Device]:
    """Yield the GPUs that this process may use, by PCI bus."""
    unsure = any(gpu.mig for gpu in gpus)
    for number, device in enumerate(gpu.device for gpu in gpus if gpu.device is not None):
        yield replace(device, only_by_uuid=unsure or device.index != number)


def _refuse_troubled(gpus: Sequence[Gpu]) -> None:
    for gpu in gpus:
        if gpu.trouble is not None:
            raise NotFinished(
                f"GPU {gpu.index} does not answer its driver: {gpu.trouble}",
                f"reset it or restart the machine, or name the others by UUID in {VISIBLE}; {DO_WITHOUT}",
            )


def _refuse_mig(name: str) -> NoReturn:
    raise NotFinished(
        f"{name} is a MIG instance, or a GPU with MIG on, and rlaudit runs engines on whole GPUs",
        f"name a GPU without MIG by its UUID in {VISIBLE}; {DO_WITHOUT}",
    )


def _names(gpus: Sequence[Gpu]) -> str:
    return ", ".join(f"{gpu.uuid} ({gpu.name})" for gpu in gpus if gpu.device is not None)
