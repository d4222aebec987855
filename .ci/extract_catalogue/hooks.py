"""What the recorder hooks in a release, and what it reads there: methods with their parameters, attributes of objects.

Read from a handful of files, so that a wheel on the index does, in parts.
"""

import ast
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from packaging.version import Version

from extract_catalogue.archive import opened_tree
from extract_catalogue.attributes import SOMETIMES, attributes
from extract_catalogue.modules import Module, Tree
from extract_catalogue.remote_wheel import open_wheel
from rlaudit.engines.engine import Build
from rlaudit.engines.environments.environment_spec import EnvironmentSpec
from rlaudit.engines.environments.package_index import choose_release, releases
from rlaudit.engines.environments.pip_configuration import read_package_sources
from rlaudit.errors import NotFinished, UsageError
from rlaudit.recording.hook_points import ASYNC, FILE, PARTS, RECORDER, WORKER, WORKER_METHODS, Index

# Whose attributes the recorder reads. The worker is that of GPUs; the recorder takes any class for one.
OBJECTS = (
    "vllm.v1.engine:EngineCoreRequest",
    "vllm.v1.engine:EngineCoreOutput",
    "vllm.v1.metrics.stats:PrefillStats",
    "vllm.v1.outputs:LogprobsLists",
    "vllm.v1.engine.output_processor:OutputProcessor",
    "vllm.v1.engine.output_processor:OutputProcessorOutput",
    "vllm.v1.engine.output_processor:RequestState",
    "vllm.v1.engine.detokenizer:IncrementalDetokenizer",
    "vllm.v1.engine.detokenizer:BaseIncrementalDetokenizer",
    "vllm.v1.engine.core:EngineCore",
    "vllm.v1.core.sched.scheduler:Scheduler",
    "vllm.v1.core.sched.output:SchedulerOutput",
    WORKER,
    "vllm.engine.llm_engine:LLMEngine",
    "vllm.sequence:SequenceGroup",
    "vllm.sequence:Sequence",
    "vllm.sequence:SequenceData",
    "vllm.sequence:Logprob",
    "vllm.logprobs:Logprob",
)
# Which of the recorder's files read them.
READERS = (RECORDER, *(RECORDER.with_name(f"rlaudit_{name}.py") for name in ("v0", "weights")))
ANY_NAME, BY_NAME, DEFAULT = "**", "*", "="
_Releases = dict[Version, Mapping[str, Iterable[str]]]


def record_hooks(version: Version, tree: Tree, folder: Path) -> None:
    """Put a release into the one file of all of them."""
    path = folder / FILE
    stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"releases": []}
    known = tuple(map(Version, stored["releases"]))
    sections: dict[str, _Releases] = {}
    for section, found in {"hooks": hooks(tree), "objects": objects_read(tree)}.items():
        index = Index(known, stored.get(section, {}))
        sections[section] = {one: {home: index.names(home, one) for home in index.spans} for one in known}
        sections[section][version] = found
    parts = [f'"releases":{json.dumps([str(one) for one in sorted(sections["hooks"])])}']
    for section, by_release in sections.items():
        lines = (f"{json.dumps(home)}:{json.dumps(lists)}" for home, lists in spans(by_release).items())
        parts.append(f'"{section}":{{\n' + ",\n".join(lines) + "\n}")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def record_published_hooks(versions: Sequence[str], into: Path) -> None:
    """Record the hooks of these releases from their wheels on the configured index; no wheel is downloaded.

    Raises NotFinished if a release has no wheel there.
    """
    for version in versions:
        record_hooks(Version(version), published(version), into)
        print(f"vLLM {version}: hooks recorded")


def hooks(tree: Tree) -> dict[str, frozenset[str]]:
    """Return the parameters of each method that the recorder would hook in a release, and ASYNC for a coroutine.

    As the recorder looks them up: in the class's own body, and not where a name only stands for another class.
    """
    found = {}
    for target in {target for targets in PARTS.values() for target in targets}:
        dotted, _, called = target.partition(":")
        owner, _, name = called.partition(".")
        _, cls = _class(tree, dotted, owner)
        own = [node for node in cls.body if getattr(node, "name", "") == name] if cls is not None else []
        if own and isinstance(own[-1], ast.FunctionDef | ast.AsyncFunctionDef):
            kind = {ASYNC} if isinstance(own[-1], ast.AsyncFunctionDef) else set()
            found[target] = frozenset({parameters_text(own[-1].args, 0), *kind})
    return found


def objects_read(tree: Tree) -> dict[str, frozenset[str]]:
    """Return the attributes of OBJECTS, inherited ones too, of those names that the recorder mentions."""
    mentioned = frozenset(WORKER_METHODS).union(*map(_mentioned, READERS))
    found = {}
    for name in OBJECTS:
        module, cls = _class(tree, *name.split(":"))
        if module is not None and cls is not None:
            found[name] = frozenset(one.removeprefix(SOMETIMES) for one in attributes(tree, module, cls)) & mentioned
    return found


def _mentioned(file: Path) -> frozenset[str]:
    """Return the names in a Python file that may be attributes: those after a dot, and texts that are one name."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.Attribute(attr=name) | ast.Constant(value=str(name)):
                names.add(name)
    return frozenset(names)


def _class(tree: Tree, dotted: str, name: str) -> tuple[Module, ast.ClassDef] | tuple[None, None]:
    """Return a class that a module itself makes, and the module."""
    stem = dotted.replace(".", "/")
    modules = (tree.module(path) for path in (f"{stem}.py", f"{stem}/__init__.py"))
    module = next((module for module in modules if module is not None), None)
    own = [node for node in module.tree.body if getattr(node, "name", "") == name] if module is not None else []
    return (module, own[-1]) if module is not None and own and isinstance(own[-1], ast.ClassDef) else (None, None)


def published(version: str) -> Tree:
    """The sources of a release's wheel on the configured index, read in parts. Raises NotFinished if it has none."""
    sources = read_package_sources()
    builds: tuple[Build, ...] = ("cpu", "cuda")
    for build in builds:
        try:
            chosen = choose_release(EnvironmentSpec("vllm", version, build), sources)
        except UsageError:
            continue  # not every release has a build for the CPU
        wheel = releases(chosen.distribution, sources)[chosen.version].wheel_for(chosen.python)
        if wheel is not None:
            return opened_tree(open_wheel(wheel.url, sources.certificates))
    raise NotFinished(f"vLLM {version} has no wheel on the index", "Fetch a wheel or sdist and name its path.")


def parameters_text(arguments: ast.arguments, skipped: int) -> str:
    """Return parameters as one word, `self,request,parent_req=,*,queue=`. skipped: how many are left out at first."""
    ordered = [*arguments.posonlyargs, *arguments.args]
    plain = len(ordered) - len(arguments.defaults)
    words = [one.arg + (DEFAULT if at >= plain else "") for at, one in enumerate(ordered)][skipped:]
    if arguments.vararg is not None:
        words.append(f"{BY_NAME}{arguments.vararg.arg}")
    elif arguments.kwonlyargs:
        words.append(BY_NAME)
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    words += [one.arg + (DEFAULT if value is not None else "") for one, value in pairs]
    if arguments.kwarg is not None:
        words.append(ANY_NAME)
    return ",".join(words) or ","


def spans(by_release: Mapping[Version, Mapping[str, Iterable[str]]]) -> dict[str, dict[str, str]]:
    """Return the lists to store: for each home, the names by the releases that have them."""
    releases = sorted(by_release)
    there: dict[str, dict[str, list[int]]] = {}
    for number, version in enumerate(releases):
        for home, names in by_release[version].items():
            for name in names:
                there.setdefault(home, {}).setdefault(name, []).append(number)
    lists: dict[str, dict[str, str]] = {}
    for home, names_there in sorted(there.items()):
        grouped: dict[str, list[str]] = {}
        for name, numbers in sorted(names_there.items()):
            grouped.setdefault(_span(numbers, releases), []).append(name)
        lists[home] = {span: " ".join(names) for span, names in sorted(grouped.items())}
    return lists


def _span(numbers: list[int], releases: list[Version]) -> str:
    starts = [one for one in numbers if one - 1 not in numbers]
    ends = [one for one in numbers if one + 1 not in numbers]
    newest = len(releases) - 1
    pairs = zip(starts, ends, strict=True)
    return ",".join(f"{releases[first]}..{'' if last == newest else releases[last]}" for first, last in pairs)
