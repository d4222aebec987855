"""Where the completions that an engine has sampled lie in a tensor of token ids, in any layout.

A completion is known by its first four ids. At the beginning of a row, and behind ids that are no tokens (prompts that
are masked with -100), these are enough; elsewhere the last two ids of its prompt stand before them. What is found may
be another text that begins alike: the reader of a recording has all ids and compares them all. It is given some ids
before each completion, and as many from there on as the longest that begins alike.

A million ids take some products and one search on their device; the host waits for their places, as for any number that
a trainer logs. Standard library and Python 3.9, beside the torch that the trainer has imported.
"""

import sys

import rlaudit_recorder as recorder

KNOWN_BY = 4  # ids at the beginning of a completion
BEHIND = 2  # ids of the prompt before it
CONTEXT = 64  # ids before it that the reader is given: they tell prompts apart that end alike
MOST = 1 << 14  # sequences that are looked for inside rows: the latest, as a trainer trains on these
# What each id of a window counts. Any odd numbers do: what agrees by chance is seen when all ids are compared.
_WEIGHTS = (
    *(0x1E3779B97F4A7C15, 0x3F58476D1CE4E5B9, 0x14D049BB133111EB),
    *(0x2545F4914F6CDD1D, 0x5851F42D4C957F2D, 0x6C62272E07BB0143),
)
_HALF = 1 << 63


def remember(process, prompt, ids):
    """Note how a sequence begins. prompt: at least its last ids; without them it is found only where a row begins."""
    first = tuple(ids[:KNOWN_BY])
    _keep(process.beginnings, first, len(ids), recorder.MOST_REMEMBERED)
    if len(prompt) >= BEHIND:
        window = (*prompt[-BEHIND:], *first)
        # As whole numbers of 64 bits overflow on a device.
        hashed = sum(number * weight for number, weight in zip(window, _WEIGHTS)) + _HALF
        _keep(process.inside, (len(window), hashed % (2 * _HALF) - _HALF), len(ids), MOST)
        process.remembered += 1


def _keep(table, key, length, most):
    """Keep the longest of a key, and the latest keys."""
    table[key] = max(length, table.pop(key, 0))
    if len(table) > most:
        del table[next(iter(table))]


def longest(process, first):
    """Return how long a kept sequence is that begins with these ids; 0 if none does. Padding follows a short one."""
    return max(process.beginnings.get(tuple(first[:length]), 0) for length in range(1, KNOWN_BY + 1))


def stretches(process, ids_RT):
    """Return [row, begin, end] of each stretch that may hold completions, as they lie. ids_RT: whole numbers."""
    torch, (rows, tokens) = sys.modules["torch"], ids_RT.shape
    flat = ids_RT.reshape(-1).long()
    lengths = torch.zeros_like(flat)
    for size, keys, long in _table(process, flat.device):
        places = len(flat) - size + 1
        if places > 0:
            hashes = sum(flat[at : at + places] * _WEIGHTS[at] for at in range(size))
            nearest = torch.searchsorted(keys, hashes).clamp_(max=len(keys) - 1)
            matched = torch.where(keys[nearest] == hashes, long[nearest], 0)
            behind = lengths[BEHIND : BEHIND + places]  # a view
            torch.maximum(behind, matched, out=behind)
    begins = (flat[1:] >= 0) & (flat[:-1] < 0)
    lengths = torch.cat([lengths[:1], torch.where(begins, -1, lengths[1:])])
    places = torch.cat([lengths.nonzero().squeeze(-1), torch.arange(rows, device=flat.device) * tokens]).unique()
    window = (places[:, None] + torch.arange(KNOWN_BY, device=flat.device)).clamp_(max=len(flat) - 1)
    spans = []
    for place, length, first in zip(places.tolist(), lengths[places].tolist(), flat[window].tolist()):
        row, column = divmod(place, tokens)
        alone = longest(process, first) if length < 0 or not column else 0
        long = max(alone, length if column >= BEHIND else 0)
        if long:
            spans.append([row, max(column - CONTEXT, 0), min(column + long, tokens)])
    return _merged(spans)


def _table(process, device):
    """Return [(ids in a window, sorted hashes, longest completion of each)] on a device; kept until more is known."""
    torch, inside = sys.modules["torch"], process.inside
    kept = process.tables.get(device)
    if kept is None or kept[0] != process.remembered:
        by_size = {}
        for (size, hashed), length in inside.copy().items():
            by_size.setdefault(size, ([], []))
            by_size[size][0].append(hashed)
            by_size[size][1].append(length)
        tables = []
        for size, (keys, lengths) in by_size.items():
            hashes, order = torch.tensor(keys, device=device).sort()
            tables.append((size, hashes, torch.tensor(lengths, device=device)[order]))
        kept = process.tables[device] = (process.remembered, tables)
    return kept[1]


def _merged(spans):
    """Return stretches that do not overlap. spans: sorted by row and begin."""
    merged = []
    for row, begin, end in spans:
        if merged and merged[-1][0] == row and begin <= merged[-1][2]:
            merged[-1][2] = max(merged[-1][2], end)
        else:
            merged.append([row, begin, end])
    return merged
