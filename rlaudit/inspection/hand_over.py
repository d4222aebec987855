"""Where the engine is built, if a file without a config does not build it: a file that it imports, starts or names, or
that these do, else a file of its work tree.

A launcher starts a script, a service starts a launcher, a trainer imports the module that builds the engine. Files are
followed by name alone: nothing is run, and what one file sets for the next is not read.
"""

import ast
import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePosixPath

from rlaudit.configs import hydra_defaults, inherited_paths
from rlaudit.configs.here_documents import in_here_documents
from rlaudit.configs.hydra_program import config_named_in
from rlaudit.configs.local_modules import module_file
from rlaudit.configs.program import NO_TRAINING
from rlaudit.configs.source import Source, Way, opened
from rlaudit.inspection.files import walk

# A larger program is followed no further, and in a larger work tree no further file is looked at; nor after so many
# seconds of the processor: any file of the tree may have been made to be slow.
MOST_FILES = 200
MOST_NAMES = 1_000
MOST_OF_A_TREE = 5_000
MOST_SECONDS = 5.0
LONGEST_NAME = 200
MOST_NAMED = 3
_ENDING = re.compile(r"\w\.(?:py|sh|bash|slurm|sbatch|ya?ml|toml)(?![\w./-])")
_FILE = re.compile(r"(?P<option>--[\w-]+[ =])?(?P<file>[\w.@+~/-]+)\Z")
_MODULE = re.compile(r"(?:^|\s)-m[ \t]+([A-Za-z_][\w.]*)")
_COMMENT = re.compile(r"^\s*(?:#|//)")
_PROGRAMS = (".py", ".sh", ".bash", ".slurm", ".sbatch")
_CONFIGS = (".yaml", ".yml")
_VARIABLE = re.compile(r"\bVLLM_[A-Z0-9_]+")
# What a module does only if it is started itself.
_STARTED = re.compile(r"(?m)^if __name__ ==")
# Parts of a path by which a file is not the training's.
_BESIDE = NO_TRAINING | {"test", "tests", "docs"}

Recognise = Callable[[Source], bool]


@dataclass(frozen=True)
class HandOver:
    """The way from a file without a config to those that set up rollouts."""

    path: str
    # Files that are reached and set up rollouts, each with the first file's line by which the way begins, and with the
    # variables that may be set on it.
    reached: tuple[tuple[Source, int], ...] = ()
    # The script or program that it names last and that is not here, with the line.
    missing: tuple[str, int] | None = None
    # Sentences on what it writes or holds itself.
    inside: tuple[str, ...] = ()
    # Other files of the work tree that set up rollouts, the nearest first.
    others: tuple[str, ...] = ()


def hand_over(first: Source, sets_up_rollouts: Recognise) -> HandOver:
    """Return where a file's rollouts are set up. What a file that is reached names itself is not followed."""
    ends = time.process_time() + MOST_SECONDS
    inherited = _inherited(first)
    named = [way for way in _named_in(first) if way[1] is None or _identity(way[1]) not in inherited]
    reached = tuple(_reached(first, named, sets_up_rollouts, ends))
    if sum(bool(file.way.programs) for file, _ in reached) > 1:
        # Which of several engines the program samples from and updates is not followed.
        reached = tuple((replace(file, way=replace(file.way, programs=())), line) for file, line in reached)
    missing = [(name, line) for name, file, line in named if file is None and name.endswith(_PROGRAMS)]
    inside = tuple(in_here_documents(first))
    # What the script writes is missing until it runs.
    missing = missing if first.is_shell and not inside else []
    others = () if reached or inside else tuple(_in_the_tree(first, sets_up_rollouts, ends))
    return HandOver(first.path, reached, missing[-1] if missing else None, inside, others)


def about(way: HandOver, shown: Callable[[str], str]) -> list[str]:
    """Return sentences on the way from a file. shown: a path as reports have it."""
    path = shown(way.path)
    if way.reached or way.inside:
        reached = [
            f"{path}:{line} hands over to {shown(file.path)}, {_read_with(file, path, shown)}"
            for file, line in way.reached
        ]
        return [*reached, *way.inside]
    if way.missing is not None:
        name, line = way.missing
        return [f"{path}:{line} hands over to {name}, which is not found here: inspect that one"]
    if way.others:
        listed, more = ", ".join(map(shown, way.others[:MOST_NAMED])), len(way.others) - MOST_NAMED
        further = f" and {more} more" if more > 0 else ""
        do, which = ("does", "that file") if len(way.others) == 1 else ("do", "the right one")
        return [f"{path} names no file that sets up rollouts; {listed}{further} {do}: inspect {which}"]
    return [f"{path}: no file was found that sets up rollouts on vLLM in a way that is read: name the one that does, "
            "or record a run: rlaudit record -- COMMAND"]  # fmt: skip


def _read_with(file: Source, path: str, shown: Callable[[str], str]) -> str:
    """Return what counts for a file beside its own text. path: of the file that hands over, as reports have it."""
    programs = ", ".join(shown(program.path) for program in file.way.programs[:MOST_NAMED])
    if programs:
        return f"which is read with the sampling parameters and the weight updates of {programs}"
    return f"which is read by itself, without what {path} sets for it"


def _reached(
    first: Source, named: "list[tuple[str, Source | None, int]]", sets_up_rollouts: Recognise, ends: float
) -> Iterator[tuple[Source, int]]:
    seen = {_identity(first)}
    todo = deque((file, line, _over(Way(first.path), first)) for _, file, line in named)
    while todo and len(seen) <= MOST_FILES and time.process_time() < ends:
        file, line, way = todo.popleft()
        if file is None or file.outside or _identity(file) in seen:
            continue
        seen.add(_identity(file))
        way = way if file.suffix == ".py" else replace(way, programs=())
        if sets_up_rollouts(_imported(file) if way.programs else file):
            yield replace(file, way=way), line
        else:
            way = _over(way, file)
            todo += ((further, line, way) for _, further, _ in _named_in(file))


def _over(way: Way, file: Source) -> Way:
    """Return a way that goes on over a file."""
    programs = (file, *way.programs) if file.suffix == ".py" else ()
    return replace(way, variables=(*way.variables, *_variables(file)), programs=programs)


def _imported(source: Source) -> Source:
    """Return a module without what it does only if it is started itself."""
    started = _STARTED.search(source.text)
    return source if started is None else source.with_text(source.text[: started.start()])


def _variables(source: Source) -> tuple[tuple[str, str], ...]:
    """Return vLLM's variables that a file names in a line that is no comment, each with its place."""
    lines = enumerate(source.text.splitlines() if "VLLM_" in source.text else (), 1)
    return tuple(
        (name, f"{source.path}:{number}")
        for number, line in lines if not _COMMENT.match(line) for name in _VARIABLE.findall(line)
    )  # fmt: skip


def _in_the_tree(first: Source, sets_up_rollouts: Recognise, ends: float) -> Iterator[str]:
    """Yield the files of the work tree that set up rollouts: the nearest first, and tests and evaluations last."""
    folder = Path(first.path).absolute().parent

    def order(path: str) -> tuple[bool, bool, bool, str]:
        place = Path(path)
        inside = next(place.relative_to(tree) for tree in first.trees if place.is_relative_to(tree))
        is_beside = bool(_BESIDE & set(re.findall("[a-z]+", str(inside).lower())))
        return is_beside, place.parent != folder, not place.is_relative_to(folder), path

    paths = [path for tree in first.trees for path in islice(walk(tree, []), MOST_OF_A_TREE)]
    for path in sorted(paths, key=order):
        if time.process_time() > ends:
            return
        if path.endswith((*_PROGRAMS, ".yaml", ".yml", ".toml")) and Path(path) != _identity(first):
            file = opened(Path(path), first.given, first.trees, first.pins)
            if file is not None and sets_up_rollouts(file):
                yield path


def _inherited(source: Source) -> set[Path]:
    """Return the files over which a config is laid: without what it says itself they are not its rollouts."""
    readers = (inherited_paths.inherited, hydra_defaults.composed) if source.suffix in _CONFIGS else ()
    configs = [reader(source) for reader in readers]
    return {Path(part).resolve() for config in configs if config is not None for part in config.parts}


def _identity(source: Source) -> Path:
    return Path(source.path).resolve()


def _named_in(source: Source) -> Iterator[tuple[str, Source | None, int]]:
    """Yield what a file names: the name, the file if it exists, and the line."""
    names = _of_python(source) if source.suffix == ".py" else _of_text(source, source.text, 1)
    yield from islice(names, MOST_NAMES)


def _of_text(source: Source, text: str, first: int) -> Iterator[tuple[str, Source | None, int]]:
    """Yield the files and modules in the lines of a text that are no comment. What an option names may be missing."""
    for number, line in enumerate(text.splitlines(), first):
        if not _COMMENT.match(line):
            for ending in _ENDING.finditer(line):
                match = _FILE.search(line, max(0, ending.start() - LONGEST_NAME), ending.end())
                file = _file(source, match["file"]) if match is not None else None
                if match is not None and (file is not None or match["option"] is None):
                    yield match["file"].lstrip("/"), file, number
            yield from ((match[1], module_file(source, match[1]), number) for match in _MODULE.finditer(line))


def _of_python(source: Source) -> Iterator[tuple[str, Source | None, int]]:
    """Yield the modules that a program imports, and the files that its strings name, but none of its docstrings."""
    try:
        tree = ast.parse(source.text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return
    config = config_named_in(source.text)
    if config is not None:
        yield config, _file(source, config), source.text.count("\n", 0, source.text.index("@hydra.main(")) + 1
    texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts:
            yield from _of_text(source, node.value, node.lineno)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, module_file(source, alias.name), node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = node.module or ""
            modules = (package, *(f"{package}.{alias.name}".lstrip(".") for alias in node.names))
            yield from ((module, module_file(source, module, node.level), node.lineno) for module in modules)


def _file(source: Source, name: str) -> Source | None:
    """Return the file of a name: beside this one or in a folder above, at its whole path or at the end of it, as in a
    container, whose `/work/app/serve.sh` is `app/serve.sh` here.
    """
    parts = [part for part in PurePosixPath(name).parts if part not in {"/", "~", "..", "."}]
    paths = ("/".join(parts[at:]) for at in range(len(parts)))
    return source.neighbour(name) or next((file for path in paths if (file := source.above(path)) is not None), None)
