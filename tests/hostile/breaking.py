"""What was sound, broken: a text anywhere, a document or a table in one of its values, a file by what stands there.

Nothing is random but by the `random` that is given.
"""

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

# Values as no file should have them, in Python and as words of a text.
SCALARS: tuple[Any, ...] = (
    None, float("nan"), float("inf"), float("-inf"), 0, -0.0, 1, -1, 0.5, 2, 1e-300, -1e154, -1e300, 1e308, -9999.0,
    -1e6, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 10**30, True, False, "", "0", "nan", "v1", "\x1b[2J", "\ud7ff",
    "a" * 5000, [], {}, [[]], [None], {"a": 1}, [1, 2, 3], [[1.0]], [float("nan")],
)  # fmt: skip
WORDS = (
    ".inf", "-.inf", ".nan", "1e400", "-1e400", "0x" + "f" * 60, "9" * 5000, "1" + "_0" * 40, "1:59:59", "2026-02-30",
    "0o8", "null", "~", "[]", "{}", "''", '"', "'", "|", ">", "- - - 1", "? [a]", "*nowhere", "&a [*a]", "<<: *a",
    "!!python/object/apply:os.system [id]", "!!binary x", "!!float yes", "${", "${}", "${a", "${.}", "${..........x}",
    "${oc.env:HOME}", "${oc.eval:1}", "\\${x}", "$(id)", "`id`", "$HOME", "${A:-${A:-$A}}", "@", "%", "\x85", "\u2028",
    "\ufeff", "\x1b[31m", "\x07", "🧨", "ا", "a" * 100_000, "true false", "-0", "+", "-", "1.", ".1", "0.1.8", "on",
)  # fmt: skip
TIMES = (1, 1, 1, 2, 3, 6)
ENCODINGS = ("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "utf-7")
LINE_ENDS = (b"\r\n", b"\r", b"\n\n", b"\\\n", b" \\\n", b"\x0c\n", b"")
Change = Callable[[bytes, Random, Sequence[bytes]], bytes]


def broken_text(data: bytes, random: Random, others: Sequence[bytes] = (b"",)) -> tuple[str, bytes]:
    """Break a text one to six times: what was done, and the text. others: texts that a part may come from."""
    done = []
    for _ in range(random.choice(TIMES)):
        change = random.choice(_OF_A_TEXT)
        done.append(change.__name__)
        data = change(data, random, others)
    return "+".join(done), data


def _put(data: bytes, random: Random, by: bytes, instead_of: int = 0) -> bytes:
    """Put something anywhere, in place of so many bytes."""
    at = random.randrange(len(data) + 1)
    return data[:at] + by + data[at + instead_of :]


def cut_off(data: bytes, random: Random, _: object) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def dropped(data: bytes, random: Random, _: object) -> bytes:
    return _put(data, random, b"", random.randrange(40))


def noise(data: bytes, random: Random, _: object) -> bytes:
    return _put(data, random, random.randbytes(random.choice((1, 2, 16))))


def flipped(data: bytes, random: Random, _: object) -> bytes:
    at = random.randrange(len(data) or 1)
    return data[:at] + bytes(byte ^ 1 << random.randrange(8) for byte in data[at : at + 1]) + data[at + 1 :]


def punctuated(data: bytes, random: Random, _: object) -> bytes:
    return _put(data, random, random.choice("[]{}(),:;'\"\\`$&*!|>#%@-=?~\n\t ").encode())


def another_value(data: bytes, random: Random, _: object) -> bytes:
    """Another value after one colon, equals sign or space."""
    marks = [at for at, byte in enumerate(data) if byte in b":= "]
    if not marks:
        return data
    at = random.choice(marks) + 1
    end = min((place for place in (data.find(b"\n", at), data.find(b" ", at + 1)) if place >= 0), default=len(data))
    return data[:at] + b" " + random.choice(WORDS).encode() + data[end:]


def lines(data: bytes, random: Random, _: object) -> bytes:
    """Lines in another order, indented otherwise, or some of them twice."""
    kept = data.splitlines(keepends=True)
    if random.random() < 0.3:
        random.shuffle(kept)
    indents = (b"", b" ", b"\t", b"  ")
    return b"".join(
        (random.choice(indents) if random.random() < 0.2 else b"") + line * random.choice((1, 1, 1, 2, 3))
        for line in kept
    )


def spliced(data: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    other = random.choice(others)
    return cut_off(data, random, ()) + other[random.randrange(len(other) + 1) :]


def other_line_ends(data: bytes, random: Random, _: object) -> bytes:
    return data.replace(b"\n", random.choice(LINE_ENDS))


def other_encoding(data: bytes, random: Random, _: object) -> bytes:
    return data.decode("utf-8", "replace").encode(random.choice(ENCODINGS), "replace")


def nested(data: bytes, random: Random, _: object) -> bytes:
    return _put(data, random, random.choice((b"[", b"{", b"(", b"<")) * random.choice((3, 50, 300, 5000)))


def stretched(data: bytes, random: Random, _: object) -> bytes:
    return _put(data, random, random.choice((b"a", b" ", b"-", b"\\", b"$", b"0", b"'")) * 50_000)


_OF_A_TEXT: tuple[Change, ...] = (
    cut_off, dropped, noise, flipped, punctuated, another_value, another_value, another_value, lines, lines, spliced,
    other_line_ends, other_encoding, nested, stretched,
)  # fmt: skip


def break_file(path: Path, random: Random) -> None:
    """Break one file, mostly in its own syntax; what is no file any more (a pipe, /dev/zero) stays."""
    if not path.is_file():
        return
    if random.random() < 0.1:
        random.choice(_INSTEAD)(path)
        return
    own = {".json": _document, ".jsonl": _lines_of_documents, ".parquet": _table}.get(path.suffix, _bytes)
    data = (own if random.random() < 0.8 else _bytes)(path, random)
    # A copy may be a hard link: what is written anew has a file of its own.
    path.unlink()
    path.write_bytes(data)


def _bytes(path: Path, random: Random) -> bytes:
    data = path.read_bytes()
    whole = (data * 2, b"", b"[" * 100_000, b"\0" * 100_000)
    return random.choice(whole) if random.random() < 0.3 else broken_text(data, random)[1]


def _document(path: Path, random: Random) -> bytes:
    with contextlib.suppress(ValueError, RecursionError):
        return json.dumps(_value(json.loads(path.read_bytes()), random)).encode()
    return _bytes(path, random)


def _lines_of_documents(path: Path, random: Random) -> bytes:
    """One line with a broken value, or every line with the same in one place; then lines left out, twice or turned."""
    kept = path.read_bytes().splitlines()
    with contextlib.suppress(ValueError, RecursionError, AttributeError):
        if kept and random.random() < 0.4:
            name, value = random.choice(list(json.loads(kept[0])) or ["prompt_id"]), random.choice(SCALARS)
            given = {} if random.random() < 0.2 else {name: value}
            rows = [{key: one for key, one in json.loads(line).items() if key != name} | given for line in kept]
            kept = [json.dumps(row).encode() for row in rows]
        elif kept:
            at = random.randrange(len(kept))
            kept[at] = json.dumps(_value(json.loads(kept[at]), random)).encode()
    return b"\n".join(random.choice((kept, kept, kept[:-1], kept * 2, kept[::-1])))


def _value(document: Any, random: Random) -> Any:
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


def _table(path: Path, random: Random) -> bytes:
    """Another value, type, name or length of one column."""
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError):
        return _bytes(path, random)
    place = random.randrange(table.num_columns)
    name, rows = table.column_names[place], table.num_rows
    with contextlib.suppress(pa.ArrowException, OverflowError, TypeError, ValueError):
        table = random.choice(
            (
                lambda: table.drop_columns([name]),
                lambda: table.set_column(place, name, pa.array([random.choice(SCALARS)] * rows)),
                lambda: table.set_column(place, name, pa.array(_numbers(table.column(place).to_pylist(), random))),
                lambda: table.set_column(place, name, pa.nulls(rows)),
                lambda: table.set_column(place, name, table.column(place).dictionary_encode()),
                lambda: table.rename_columns([*table.column_names[:place], "prompt", *table.column_names[place + 1 :]]),
                lambda: table.slice(0, random.randrange(rows + 1)),
                lambda: pa.concat_tables([table, table]),
                lambda: table.take(random.sample(range(rows), rows)),
                lambda: table.set_column(place, name, table.column(place).cast(pa.string())),
            )
        )()
    out = pa.BufferOutputStream()
    try:
        pq.write_table(table, out, row_group_size=random.choice((1, 7, 1 << 20)))
    except pa.ArrowNotImplementedError:
        # There are tables that Parquet cannot hold.
        return path.read_bytes()
    return out.getvalue().to_pybytes()


def _numbers(values: list[Any], random: Random) -> list[Any]:
    """A column of numbers, or of lists of them, of which some are others: a typed file keeps them."""
    others = [one for one in SCALARS if isinstance(one, float | None)]
    if values and isinstance(values[0], list):
        return [_numbers(inner, random) if isinstance(inner, list) else inner for inner in values]
    return [random.choice(others) if random.random() < 0.2 else one for one in values]


def _in_its_place(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def made(path: Path) -> None:
        path.unlink()
        make(path)

    return made


def _link_to(target: str) -> Callable[[Path], object]:
    return lambda path: path.symlink_to(target)


TARGETS = ("/dev/zero", "/dev/full", "nowhere", ".", "/proc/self/mem")
_INSTEAD = (Path.unlink, *map(_in_its_place, (Path.mkdir, os.mkfifo, *map(_link_to, TARGETS))))
