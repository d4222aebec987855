"""`rlaudit engines`: build, list, examine and remove the isolated engine environments.

stdout carries the report only; progress goes to stderr. Piped output is plain lines.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from rlaudit.cli.examples import epilog, unwrapped
from rlaudit.engines.environment_spec import Build, Environment, EnvironmentSpec, trainer_spec
from rlaudit.errors import NotFinished, UsageError

app = typer.Typer(
    help="Isolated engine environments, one per vLLM version.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    epilog=unwrapped(epilog("engines")),
)

TRAINER = "trainer"

Versions = Annotated[list[str], typer.Argument(help="vLLM releases such as 0.18.1, or the word trainer.")]
SomeVersions = Annotated[list[str] | None, typer.Argument(help="vLLM releases; all that are built when none is named.")]
Cpu = Annotated[bool | None, typer.Option("--cpu/--cuda", help="Which build; by default what this machine has.")]


@app.command()
def build(versions: Versions, cpu: Cpu = None) -> None:
    """Build the environments of these vLLM releases, where they are not there yet."""
    from rlaudit.engines.environment import ensure

    for spec in [_spec(version, _build(cpu)) for version in versions]:
        _print_environment(ensure(spec, _progress))


@app.command("list")
def list_() -> None:
    """List the environments that are built."""
    from rlaudit.engines.environment import list_environments, root

    environments = list_environments()
    if not environments:
        _progress(f"no engine environments in {root()}; build one with: rlaudit engines build VERSION")
    for environment in environments:
        _print_environment(environment)


@app.command()
def doctor(
    versions: SomeVersions = None,
    cpu: Cpu = None,
    python: Annotated[Path | None, typer.Option(help="Examine this interpreter instead.")] = None,
) -> None:
    """Start each engine on a tiny model of its own making, and say what works.

    Environments that are named and not there are built first. Exit code 3 when an engine does not start.
    """
    from rlaudit.engines.doctor import examine

    ill = []
    for environment in _environments_to_examine(versions or [], cpu, python):
        diagnosis = examine(environment, _progress)
        typer.echo(environment.spec.name)
        for symptom in diagnosis.symptoms:
            works = {True: "yes", False: "no", None: "-"}[symptom.works]
            typer.echo(f"  {symptom.name:<17} {works:<4} {symptom.says}")
        if not diagnosis.healthy:
            ill.append(environment.spec.name)
    if ill:
        raise NotFinished(f"does not start or does not generate: {', '.join(ill)}")


@app.command()
def remove(
    versions: SomeVersions = None,
    all_: Annotated[bool, typer.Option("--all", help="Remove every environment.")] = False,
) -> None:
    """Delete environments, by version or by the name that `list` prints."""
    from rlaudit.engines import environment as environments

    present = [found.spec for found in environments.list_environments()]
    if not versions and not all_:
        raise UsageError("nothing to remove was named", "Name versions, or give --all.")
    names = environments.all_names() if all_ else []
    for word in versions or []:
        matching = [
            spec.name for spec in present if word in {spec.name, spec.version} or word == spec.package == TRAINER
        ]
        names += matching or [word]
    for name in dict.fromkeys(names):
        environments.remove(name)
        typer.echo(f"removed {name}")


def _environments_to_examine(versions: list[str], cpu: bool | None, python: Path | None) -> list[Environment]:
    from rlaudit.engines.environment import ensure, list_environments, spec_of_interpreter

    if python is not None:
        if versions:
            raise UsageError("--python names the engine already: leave out the versions")
        return [ensure(spec_of_interpreter("vllm", python), _progress)]
    if versions:
        return [ensure(_spec(version, _build(cpu)), _progress) for version in versions]
    built = [found for found in list_environments() if found.spec.package == "vllm"]
    if not built:
        raise UsageError("no engine environment is built", "rlaudit engines build VERSION")
    return built


def _spec(version: str, build_: Build) -> EnvironmentSpec:
    return trainer_spec(build_) if version == TRAINER else EnvironmentSpec("vllm", version, build_)


def _build(cpu: bool | None) -> Build:
    from rlaudit.engines.accelerator import detect

    if cpu is None:
        return detect().kind
    return "cpu" if cpu else "cuda"


def _progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _print_environment(environment: Environment) -> None:
    versions = environment.versions
    packages = (f"{name} {versions[name]}" for name in ("python", "torch", "transformers") if name in versions)
    typer.echo(f"{environment.spec.name}  {', '.join(packages)}  {environment.python}")
    for note in environment.notes:
        typer.echo(f"  note: {note}")
