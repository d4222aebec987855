"""What one part of a log adds, kept in a file: the same bits come back. Arrays as they are, all else as JSON; packed.

Nothing in such a file is run when it is read, wherever it comes from.
"""

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa

from rlaudit.diagnosis.comparison import CompareSettings, Counts
from rlaudit.diagnosis.log_part import LogPart
from rlaudit.errors import NotFinished
from rlaudit.measurement.measure import Tally, all_metrics
from rlaudit.measurement.running_tally import PartTally
from rlaudit.parse_json import parse_json
from rlaudit.tokens.alignment import AlignmentReport, MisalignedSequence, Misalignment
from rlaudit.tokens.fault import Fault, FaultKind, Faults, Met
from rlaudit.tokens.sibling_groups import SiblingGroups
from rlaudit.tokens.token_batch import TokenBatch, concatenate
from rlaudit.write_atomically import write_atomically

# Changes with what is written below.
FORMAT = 1
# What it is, a checksum of what follows, the size of that unpacked, and how much of it is text.
_HEAD = struct.Struct("<8sIQQ")
_MAGIC = b"rlaudit1"
_ALIGNED = 16
_BY_TOKEN = ("rollout_logprobs_T", "trainer_logprobs_T", "token_id_T", "position_T", "sequence_T", "prompt_S")
_TOPS = ("rollout_top_ids_TK", "rollout_top_logprobs_TK", "trainer_top_ids_TK", "trainer_top_logprobs_TK")
_NAMES = ("prompt_names_S", "sample_names_S", "group_names_S")
_COLUMNS = ("token_columns", "sequence_columns")
Arrays = dict[str, Any]


def write_part(part: LogPart, path: Path) -> None:
    """Written in one step. Raises OSError."""
    arrays: Arrays = {}
    about = {
        "counts": {**asdict(part.counts), "misaligned": dict(part.counts.misaligned)},
        "faults": _faults(part.faults),
        "unlooked": _faults(part.unlooked),
        "alignment": asdict(part.alignment),
        "names": part.names,
        "evidence": _batch(part.evidence, "evidence", arrays),
        "tally": _tally(part.tally, arrays),
        **{name: _siblings(getattr(part, name), name, arrays) for name in ("siblings", "unscored")},
    }
    arrays = {name: np.ascontiguousarray(values) for name, values in arrays.items()}
    about["arrays"] = [[name, values.dtype.str, values.shape] for name, values in arrays.items()]
    text = json.dumps(about, default=str).encode()
    # Arrays begin at multiples of their items' size.
    text += b" " * (-len(text) % _ALIGNED)
    raw = b"".join([text, *(values.tobytes() + bytes(-values.nbytes % _ALIGNED) for values in arrays.values())])
    packed = pa.compress(raw, codec="zstd", asbytes=True)
    write_atomically(path, _HEAD.pack(_MAGIC, crc32(packed), len(raw), len(text)) + packed)


def read_part_file(path: Path, settings: CompareSettings) -> LogPart:
    """As it was written. Raises NotFinished for a file that is damaged."""
    try:
        data = path.read_bytes()
        magic, checksum, size, text = _HEAD.unpack_from(data)
        packed = data[_HEAD.size :]
        if magic != _MAGIC or checksum != crc32(packed):
            raise ValueError("its checksum is another")
        raw = bytearray(pa.decompress(packed, decompressed_size=size, codec="zstd"))
        about = parse_json(raw[:text])
        return _part(about, _arrays(about["arrays"], memoryview(raw)[text:]), settings)
    except (OSError, ValueError, KeyError, TypeError, struct.error, pa.ArrowException) as error:
        raise NotFinished(
            f"{path} is not as it was written: {' '.join(str(error).split())}",
            "remove it: what it holds is read from the log again",
        ) from error


def _arrays(described: list[Any], raw: memoryview) -> Arrays:
    arrays: Arrays = {}
    at = 0
    for name, kind, shape in described:
        values = np.frombuffer(raw, dtype=np.dtype(kind), count=math.prod(shape), offset=at)
        arrays[name] = values.reshape(shape)
        at += values.nbytes + -values.nbytes % _ALIGNED
    return arrays


def _part(about: Mapping[str, Any], arrays: Arrays, settings: CompareSettings) -> LogPart:
    names = about["names"]
    return LogPart(
        counts=Counts(**about["counts"]),
        faults=_faults_of(about["faults"]),
        unlooked=_faults_of(about["unlooked"]),
        alignment=_alignment_of(about["alignment"]),
        tally=_tally_of(about["tally"], arrays, settings),
        evidence=_batch_of(about["evidence"], "evidence", arrays),
        siblings=_siblings_of(about["siblings"], "siblings", arrays),
        unscored=_siblings_of(about["unscored"], "unscored", arrays),
        names=None if names is None else tuple(names),
    )


def _tally(part: PartTally, arrays: Arrays) -> dict[str, Any]:
    tally = part.tally
    arrays |= {"tally.prompts": part.prompts, "tally.tokens": tally.tokens_P, "tally.sequences": tally.sequences_P}
    # Metrics that share their columns share the sums: the first of them names these.
    first = {metric.columns: metric.name for metric in reversed(tally.metrics)}
    arrays |= {f"tally.sums.{first[columns]}": sums_PJ for columns, sums_PJ in tally.sums.items()}
    return {"unavailable": dict(tally.unavailable), "capped": [tally.capped_tokens, tally.capped_sequences]}


def _tally_of(about: Mapping[str, Any], arrays: Arrays, settings: CompareSettings) -> PartTally:
    metrics = all_metrics()
    sums = {
        metric.columns: arrays[f"tally.sums.{name}"]
        for name, metric in metrics.items()
        if f"tally.sums.{name}" in arrays
    }
    return PartTally(
        arrays["tally.prompts"],
        Tally(
            settings=settings.objective,
            metrics=tuple(metrics.values()),
            sums=sums,
            unavailable=about["unavailable"],
            tokens_P=arrays["tally.tokens"],
            sequences_P=arrays["tally.sequences"],
            capped_tokens=about["capped"][0],
            capped_sequences=about["capped"][1],
        ),
    )


def _batch(batch: TokenBatch | None, place: str, arrays: Arrays) -> dict[str, Any] | None:
    if batch is None:
        return None
    fields = {name: getattr(batch, name) for name in (*_BY_TOKEN, *_TOPS, *_NAMES)}
    fields |= {f"{group}.{name}": values for group in _COLUMNS for name, values in getattr(batch, group).items()}
    fields = {name: np.asarray(values) for name, values in fields.items() if values is not None}
    arrays |= {f"{place}.{name}": values for name, values in fields.items() if values.dtype != object}
    return {name: values.tolist() for name, values in fields.items() if values.dtype == object}


def _batch_of(texts: Mapping[str, Any] | None, place: str, arrays: Arrays) -> TokenBatch | None:
    if texts is None:
        return None
    own: dict[str, Any] = {
        name.removeprefix(f"{place}."): values for name, values in arrays.items() if name.startswith(f"{place}.")
    }
    for name, values in texts.items():
        own[name] = np.empty(len(values), dtype=object)
        own[name][:] = values
    columns: dict[str, Any] = {
        group: {name.removeprefix(f"{group}."): own.pop(name) for name in [*own] if name.startswith(f"{group}.")}
        for group in _COLUMNS
    }
    return TokenBatch(**own, **columns)


def _siblings(groups: SiblingGroups, place: str, arrays: Arrays) -> dict[str, Any]:
    if not groups.held:
        return {"stride": groups.stride, "batch": None}
    arrays[f"{place}.group"] = np.concatenate([names_S for names_S, _ in groups.held])
    whole = concatenate(batch for _, batch in groups.held)
    return {"stride": groups.stride, "batch": _batch(whole, f"{place}.batch", arrays)}


def _siblings_of(about: Mapping[str, Any], place: str, arrays: Arrays) -> SiblingGroups:
    groups = SiblingGroups(stride=about["stride"])
    batch = _batch_of(about["batch"], f"{place}.batch", arrays)
    if batch is not None:
        groups.held.append((arrays[f"{place}.group"], batch))
        groups.tokens = batch.tokens
    return groups


def _faults(faults: Faults) -> list[Any]:
    return [asdict(one) for one in faults.met.values()]


def _faults_of(held: list[Any]) -> Faults:
    found = Faults()
    for one in held:
        first = Fault(**{**one["first"], "path": Path(one["first"]["path"]), "kind": FaultKind(one["first"]["kind"])})
        met = Met(**{**one, "first": first})
        found.met[first.kind, first.column] = met
    return found


def _alignment_of(about: Mapping[str, Any]) -> AlignmentReport:
    misaligned = tuple(MisalignedSequence(**{**one, "kind": Misalignment(one["kind"])}) for one in about["misaligned"])
    return replace(
        AlignmentReport(about["sequences"], about["tokens"]),
        misaligned=misaligned,
        not_tested=tuple(about["not_tested"]),
    )
