"""Archives of JSON lines: read as one file, in whatever way they are packed, and never further than they reach."""

import gzip
import io
import tarfile

import pyarrow as pa
import pytest
from table_files import as_sequences, rows, whole, write_lines

from rlaudit.errors import NotFinished
from rlaudit.tokens.fault import Faults


def archive(path, *files):
    """(name, bytes) each."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for name, data in files:
            told = tarfile.TarInfo(name)
            told.size = len(data)
            tar.addfile(told, io.BytesIO(data))
        folder = tarfile.TarInfo("shards/more.jsonl")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
    packed = {".zst": lambda data: pa.compress(data, codec="zstd", asbytes=True), ".gz": gzip.compress}
    path.write_bytes(packed.get(path.suffix, bytes)(raw.getvalue()))
    return path


@pytest.mark.parametrize("ending", [".tar", ".tar.gz", ".tar.zst"])
def test_an_archive_is_read_as_its_files_one_after_the_other(tmp_path, ending):
    lines = write_lines(tmp_path / "all.jsonl", as_sequences(rows(prompts=6))).read_bytes()
    ends = [place + 1 for place, byte in enumerate(lines) if byte == 10]
    # The first shard lacks its last line feed; a file of another kind lies between.
    shards = (
        ("shards/0.jsonl", lines[: ends[3] - 1]),
        ("shards/about.txt", b"{not a line"),
        ("shards/1.jsonl", b""),
        ("shards/2.jsonl", lines[ends[3] :]),
    )
    faults = Faults()
    packed = whole(archive(tmp_path / f"part{ending}", *shards), faults)
    plain = whole(tmp_path / "all.jsonl")
    assert packed.rollout_logprobs_T.tolist() == plain.rollout_logprobs_T.tolist()
    assert packed.prompt_names_S.tolist() == plain.prompt_names_S.tolist()
    assert not faults.count


@pytest.mark.parametrize("ending", [".tar", ".tar.gz"])
def test_an_archive_that_is_cut_off_is_named(tmp_path, ending):
    lines = write_lines(tmp_path / "all.jsonl", as_sequences(rows(prompts=200))).read_bytes()
    path = archive(tmp_path / f"part{ending}", ("0.jsonl", lines))
    path.write_bytes(path.read_bytes()[: len(path.read_bytes()) * 2 // 3])
    faults = Faults()
    batch = whole(path, faults)
    assert 0 < batch.sequences < 400
    assert faults.count
    assert str(path) in faults.lines()[-1]


def test_an_archive_whose_only_frame_is_cut_off_ends_it(tmp_path):
    path = archive(tmp_path / "part.tar.zst", ("0.jsonl", b"{}\n" * 1000))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(NotFinished, match=r"part\.tar\.zst cannot be read"):
        whole(path)
