"""Run directories that were sound once: a finished run of the stand-in engines with one to six things broken.

Broken bytes are caught by the seals; a hostile run directory has whole seals. So most of them are sealed again after
they were broken, and readers meet what is in the files. `hostile_run(whole, folder, random)` gives the arguments of a
command that looks at one; nothing is random but by `random`.
"""

import contextlib
import json
import os
import pkgutil
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hostile_tables import SCALARS

from rlaudit.engines.cells.seal import SEAL, Damage, read_seal, write_seal
from rlaudit.laboratory.run_folder import CELL_FOLDERS, CELLS, PLAN, REPORT, TOKENS
from rlaudit.report.rendering import formats

SHARE_SEALED_AGAIN = 0.8
FORMATS = sorted(module.name for module in pkgutil.iter_modules(formats.__path__))


def hostile_run(whole: Path, folder: Path, random: Random) -> list[str]:
    """Copy the finished run `whole` to folder/run, break it, and say how it is looked at."""
    run_dir = folder / "run"
    shutil.copytree(whole, run_dir, copy_function=os.link)
    for _ in range(random.choice((1, 1, 1, 2, 3, 6))):
        path = random.choice([*(run_dir / name for name in (REPORT, REPORT, PLAN, TOKENS)), *_files(run_dir)])
        with contextlib.suppress(OSError):
            _break(path, random)
    if random.random() < SHARE_SEALED_AGAIN:
        _seal_again(run_dir)
    outputs = [word for name in FORMATS for word in ("--output", f"{name}:{folder / name}")]
    return random.choice(
        (
            ["report", str(run_dir), *outputs],
            ["report", str(run_dir), *outputs],
            ["report", str(run_dir / REPORT), *outputs],
            ["diagnose", str(run_dir), *outputs],
            ["compare", str(run_dir), "--arm", "candidate", "--quiet", *outputs],
        )
    )


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _break(path: Path, random: Random) -> None:
    """Break one file, in its own syntax where it has one; what is no file any more (a pipe, /dev/zero) stays."""
    if not path.is_file():
        return
    if random.random() < 0.1:
        random.choice(_INSTEAD)(path)
        return
    own = {".json": _broken_json, ".jsonl": _broken_lines, ".parquet": _broken_table}.get(path.suffix, _broken_bytes)
    data = (own if random.random() < 0.8 else _broken_bytes)(path, random)
    # The copy is a hard link: what is written anew has a file of its own.
    path.unlink()
    path.write_bytes(data)


def _broken_bytes(path: Path, random: Random) -> bytes:
    data = bytearray(path.read_bytes())
    at = random.randrange(len(data) + 1)
    return random.choice(
        (
            bytes(data[:at]),
            bytes(data[:at] + random.randbytes(random.choice((1, 40))) + data[at + 1 :]),
            bytes(data * 2),
            b"",
            b"[" * 100_000,
            b"\0" * 100_000,
        )
    )


def _broken_json(path: Path, random: Random) -> bytes:
    with contextlib.suppress(ValueError, RecursionError):
        return json.dumps(_broken_value(json.loads(path.read_bytes()), random)).encode()
    return _broken_bytes(path, random)


def _broken_lines(path: Path, random: Random) -> bytes:
    lines = path.read_bytes().splitlines()
    if lines:
        at = random.randrange(len(lines))
        with contextlib.suppress(ValueError, RecursionError):
            lines[at] = json.dumps(_broken_value(json.loads(lines[at]), random)).encode()
    return b"\n".join(random.choice((lines, lines[:-1], lines * 2, lines[::-1])))


def _broken_value(document: Any, random: Random) -> Any:
    """The document with one value, list or object somewhere in it broken."""
    places = list(_places(document))
    if not places:
        return random.choice(SCALARS)
    # First by name and then by place: of a thousand arms' figures one is broken as often as of one layer.
    name = random.choice(sorted({str(key) for _, key in places}))
    parent, key = random.choice([place for place in places if str(place[1]) == name])
    deed = random.random()
    if deed < 0.6:
        parent[key] = random.choice(SCALARS)
    elif deed < 0.75:
        del parent[key]
    elif deed < 0.85:
        other, place = random.choice(places)
        parent[key] = json.loads(json.dumps(other[place]))
    elif isinstance(parent, dict):
        parent[random.choice(("", "nothing", "a" * 5000, "\x1b[2J"))] = parent.pop(key)
    else:
        parent.extend(json.loads(json.dumps(parent)) * random.choice((1, 200)))
    return document


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) of a document."""
    waiting = [document]
    while waiting:
        one = waiting.pop()
        keys: Sequence[Any] = list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ()
        for key in keys:
            yield one, key
            waiting.append(one[key])


def _broken_table(path: Path, random: Random) -> bytes:
    """Another value, type, name or length of one column."""
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError):
        return _broken_bytes(path, random)
    place = random.randrange(table.num_columns)
    name, rows = table.column_names[place], table.num_rows
    with contextlib.suppress(pa.ArrowException, OverflowError, TypeError, ValueError):
        table = random.choice(
            (
                lambda: table.drop_columns([name]),
                lambda: table.set_column(place, name, pa.array([random.choice(SCALARS)] * rows)),
                lambda: table.set_column(place, name, pa.nulls(rows)),
                lambda: table.rename_columns([*table.column_names[:place], "prompt", *table.column_names[place + 1 :]]),
                lambda: table.slice(0, random.randrange(rows + 1)),
                lambda: pa.concat_tables([table, table]),
                lambda: table.take(random.sample(range(rows), rows)),
                lambda: table.set_column(place, name, table.column(place).cast(pa.string())),
            )
        )()
    out = pa.BufferOutputStream()
    try:
        pq.write_table(table, out)
    except pa.ArrowNotImplementedError:
        # There are tables that Parquet cannot hold.
        return path.read_bytes()
    return out.getvalue().to_pybytes()


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _link_to(target: str) -> Callable[[Path], None]:
    def link(path: Path) -> None:
        path.unlink()
        path.symlink_to(target)

    return link


_INSTEAD = (_folder, _pipe, Path.unlink, *map(_link_to, ("/dev/zero", "/dev/full", "nowhere", ".", "/proc/self/mem")))


def _seal_again(run_dir: Path) -> None:
    """Whole seals over what lies there now, as far as it can be sealed."""
    cells = sorted((run_dir / CELL_FOLDERS).iterdir())
    for cell in cells:
        _seal(cell)
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        (run_dir / CELLS).unlink()
    _seal(run_dir)


def _seal(folder: Path) -> None:
    seal = read_seal(folder)
    if isinstance(seal, Damage):
        return
    names = [name for name in seal.files if (folder / name).is_file() and not (folder / name).is_symlink()]
    (folder / SEAL).unlink()
    with contextlib.suppress(OSError):
        write_seal(folder, seal.of, names)
