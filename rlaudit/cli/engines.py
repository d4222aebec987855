"""`rlaudit engines`: build, list, examine and remove the isolated engine environments.

stdout carries the report only; progress goes to stderr. Piped output is plain lines.
"""

import shlex
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from rlaudit.cli.examples import epilog, unwrapped
from rlaudit.engines.engine import Build
from rlaudit.engines.environments.environment_spec import Environment, EnvironmentSpec, engine_spec, trainer_spec
from rlaudit.engines.environments.given_interpreters import ENGINE_HELP, given_interpreters
from rlaudit.errors import NotFinished, UsageError
from rlaudit.secrets import mask
from rlaudit.text.printable import no_commands, printable
from rlaudit.text.say import answer

if TYPE_CHECKING:
    from rlaudit.engines.hardware.accelerator import Accelerator

app = typer.Typer(
    help="Isolated engine environments, one per vLLM version.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    epilog=unwrapped(epilog("engines")),
)

TRAINER = "trainer"
# Bytes whose place on disk is worth a word.
NOTICED = 50_000_000

Versions = Annotated[list[str], typer.Argument(help="vLLM releases such as 0.18.1, or the word trainer.")]
SomeVersions = Annotated[list[str] | None, typer.Argument(help="vLLM releases; all that are built when none is named.")]
Cpu = Annotated[bool | None, typer.Option("--cpu/--cuda", help="Which build; by default what this machine has.")]


@app.command()
def build(versions: Versions, cpu: Cpu = None) -> None:
    """Build the environments of vLLM releases.

    What is built already stays.

    What this machine's NVIDIA driver cannot run is refused before anything is downloaded. Where there is no driver,
    as on the login node of a cluster, --cuda builds all the same and checks what can be checked.
    """
    from rlaudit.engines.environments.environment import ensure
    from rlaudit.engines.environments.refusals import needs, refuse
    from rlaudit.engines.hardware.accelerator import detect
    from rlaudit.engines.hardware.driver import lowest_driver

    build_ = _build(cpu)
    accelerator = detect(cpu=True) if cpu else _machine_to_build_for()
    specs = [_spec(version, build_, accelerator.driver_cuda) for version in versions]
    refuse(specs, accelerator)
    for spec in specs:
        needed = None if accelerator.driver_cuda else needs(spec)
        if needed is not None:
            _progress(f"no NVIDIA driver here: {spec.name} runs on driver {lowest_driver(needed.cuda)} or newer")
    for spec in specs:
        _print_environment(ensure(spec, _progress))


@app.command("list")
def list_() -> None:
    """List the environments that are built."""
    from rlaudit.engines.environments.environment import list_environments, root

    environments = list_environments()
    if not environments:
        _progress(f"no engine environments in {root()}; build one with: rlaudit engines build VERSION")
    for environment in environments:
        _print_environment(environment)


@app.command()
def doctor(
    versions: SomeVersions = None,
    cpu: Cpu = None,
    python: Annotated[list[str] | None, typer.Option(metavar="[VERSION=]COMMAND", help=ENGINE_HELP)] = None,
) -> None:
    """Start engines on a tiny model to see what works.

    Environments that are named and not there are built first. Exit code 3 when an engine does not start.
    """
    from rlaudit.engines.inside.doctor import examine

    ill = []
    for environment in _environments_to_examine(versions or [], cpu, python):
        diagnosis = examine(environment, _progress)
        answer(environment.spec.name)
        for symptom in diagnosis.symptoms:
            works = {True: "yes", False: "no", None: "-"}[symptom.works]
            answer(f"  {symptom.name:<17} {works:<4} {symptom.says}")
        if not diagnosis.healthy:
            ill.append(environment.spec.name)
    if ill:
        raise NotFinished(f"does not start or does not generate: {', '.join(ill)}")


@app.command()
def remove(
    versions: Annotated[list[str] | None, typer.Argument(help="vLLM releases, or names that `list` prints.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Remove every environment.")] = False,
    unused: Annotated[
        float | None, typer.Option(metavar="DAYS", min=0, help="Remove those that no command used in so many days.")
    ] = None,
) -> None:
    """Delete environments, by version or name.

    `rlaudit engines list` prints the names.
    """
    from rlaudit.engines.environments import environment as environments

    specs = [environment.spec for environment in environments.list_environments()]
    if not versions and not all_ and unused is None:
        raise UsageError("nothing to remove was named", "Name versions, or give --all or --unused DAYS.")
    names = environments.all_names() if all_ else [] if unused is None else environments.unused_names(unused)
    for word in versions or []:
        matching = [spec.name for spec in specs if word in {spec.name, spec.version} or word == spec.package == TRAINER]
        names += matching or [word]
    for name in dict.fromkeys(names):
        freed = environments.remove(name)
        stays = f"; {freed.shared / 1e9:.1f} GB stay in uv's cache (uv cache clean)" if freed.shared >= NOTICED else ""
        answer(f"removed {name}: {freed.freed / 1e9:.1f} GB freed{stays}")


def _environments_to_examine(versions: list[str], cpu: bool | None, python: list[str] | None) -> list[Environment]:
    from rlaudit.engines.environments.environment import ensure, list_environments
    from rlaudit.engines.environments.given_environment import given_environment
    from rlaudit.engines.inside.doctor import scratch
    from rlaudit.engines.inside.engine import ENGINE

    given = given_interpreters(python)
    if given and not versions:
        commands = {None: given.engine} if given.engine else given.by_release
    else:
        commands = given.for_releases(versions)
    build_ = None if cpu is None else _build(cpu)
    environments = [
        given_environment(ENGINE.package, command, release, build_, folder=scratch())
        for release, command in commands.items()
    ]
    missing = [version for version in versions if version not in commands]
    if missing:
        build_ = _build(cpu)
        environments += [ensure(_spec(version, build_), _progress) for version in missing]
    if environments:
        return environments
    built = [environment for environment in list_environments() if environment.spec.is_engine]
    if not built:
        raise UsageError("no engine environment is built", "rlaudit engines build VERSION")
    return built


def _spec(version: str, build_: Build, driver_cuda: str = "") -> EnvironmentSpec:
    return trainer_spec(build_, driver_cuda) if version == TRAINER else engine_spec(version, build_)


def _build(cpu: bool | None) -> Build:
    from rlaudit.engines.hardware.accelerator import detect

    if cpu is None:
        kind = detect().kind
        if kind == "cpu":
            _progress("no GPU here, so builds for the processor; --cuda has those for CUDA")
        return kind
    return "cpu" if cpu else "cuda"


def _machine_to_build_for() -> "Accelerator":
    """Return this machine, as one without a driver if its GPUs cannot be used now: other machines may run the build."""
    from rlaudit.engines.hardware.accelerator import detect

    try:
        return detect()
    except NotFinished as error:
        _progress(f"{error.message}: what its driver runs is not known")
        return detect(cpu=True)


def _progress(line: str) -> None:
    print(no_commands(printable(mask(line))), file=sys.stderr, flush=True)


def _print_environment(environment: Environment) -> None:
    versions = environment.versions
    packages = (f"{name} {versions[name]}" for name in ("python", "torch", "transformers") if name in versions)
    answer(f"{environment.spec.name}  {', '.join(packages)}  {shlex.join(environment.command)}")
    for note in environment.notes:
        answer(f"  note: {note}")
