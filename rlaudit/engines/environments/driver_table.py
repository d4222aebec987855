"""What each vLLM release needs of the NVIDIA driver, and what a driver makes of it, as lines of text."""

from rlaudit.engines.environments.environment_spec import EnvironmentSpec, engine_spec, trainer_spec
from rlaudit.engines.environments.refusals import needs, refusals
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.hardware.driver import lowest_driver
from rlaudit.vllm.builds import recorded_versions


def driver_table(accelerator: Accelerator) -> list[str]:
    """One line for each release and the trainer: torch, its CUDA, the oldest driver, what is done on this machine."""
    specs = [engine_spec(str(version), "cuda") for version in recorded_versions()]
    lines = [_line("", "torch", "CUDA", "driver from", _machine(accelerator))]
    for spec in (*specs, trainer_spec("cuda", accelerator.driver_cuda)):
        needed = needs(spec)
        if needed is not None:
            name = spec.package if spec.package == "trainer" else f"vLLM {spec.version}"
            lines.append(_line(name, needed.torch, needed.cuda, lowest_driver(needed.cuda), _done(spec, accelerator)))
    return lines


def _line(name: str, torch: str, cuda: str, driver: str, here: str) -> str:
    return f"{name:<18} {torch:<8} {cuda:<6} {driver:<12} {here}".rstrip()


def _machine(accelerator: Accelerator) -> str:
    if not accelerator.driver_cuda:
        return "here: no driver"
    return f"here: driver {accelerator.driver}, CUDA {accelerator.driver_cuda}"


def _done(spec: EnvironmentSpec, accelerator: Accelerator) -> str:
    if not accelerator.driver_cuda:
        return "built, to run elsewhere"
    return "refused" if refusals([spec], accelerator) else "built"
