"""What happens to the lines of a recording, or what somebody does to them."""

import json
import random

STRANGE = (
    *(None, True, -1, 0, 3, 2**31, 2**63, 10**400, 1e308, float("nan"), float("inf")),
    *("", "A", "AAAA", "/w==", "\u0000", "rlaudit-recording/9"),
    *([], [[]], ["x"], [[0, 1 << 40, 1 << 40]], {}, {"number": "x", "trainable": 7}),
)


def mutated(lines: list[bytes], seed: int) -> list[bytes]:
    """Return the lines after one to three of these things."""
    draw = random.Random(seed)
    changed = list(lines)
    for _ in range(draw.randint(1, 3)):
        place = draw.randrange(len(changed))
        line = changed[place]
        kind = draw.choice(("field", "field", "field", "bytes", "cut", "end", "twice", "gone", "moved", "joined"))
        if kind == "field":
            changed[place] = with_a_strange_field(line, draw)
        elif kind == "bytes":
            at = draw.randrange(len(line))
            changed[place] = line[:at] + draw.randbytes(draw.randint(1, 40)) + line[at + draw.randint(0, 40) :]
        elif kind == "cut":
            changed[place] = line[: draw.randrange(len(line))] + b"\n" * draw.randint(0, 1)
        elif kind == "end":
            whole = b"".join(changed)
            changed = whole[: draw.randrange(len(whole) // 2, len(whole))].splitlines(keepends=True)
        elif kind == "twice":
            changed.insert(draw.randrange(len(changed)), line)
        elif kind == "gone":
            del changed[place]
        elif kind == "moved":
            changed.insert(draw.randrange(len(changed)), changed.pop(place))
        else:
            changed[place] = line.rstrip(b"\n")
    return changed


def with_a_strange_field(line: bytes, draw: random.Random) -> bytes:
    try:
        record = json.loads(line)
    except ValueError:
        return line
    if not isinstance(record, dict) or not record:
        return line
    name = draw.choice(sorted(record))
    if draw.random() < 0.2:
        del record[name]
    elif isinstance(record[name], str) and draw.random() < 0.3:
        record[name] = record[name][: draw.randrange(len(record[name]) + 1)]
    else:
        record[name] = draw.choice(STRANGE)
    return json.dumps(record).encode() + b"\n"
