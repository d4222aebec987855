"""Several cells at once on one machine: who gets what of it, and what becomes of the others when one ends."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fake_nvml import FakeGpu, FakeNvml
from killable import alive, name

from rlaudit.engines.cells.at_once import AtOnce
from rlaudit.engines.cells.cell import Cell
from rlaudit.engines.cells.executor import Asked
from rlaudit.engines.cells.guardian import Process, descendants, processes
from rlaudit.engines.cells.launch import Cancelled
from rlaudit.engines.hardware.accelerator import detect
from rlaudit.engines.hardware.nvidia_driver import Device
from rlaudit.engines.hardware.shares import Share, share_of, split
from rlaudit.engines.hardware.visible_gpus import ORDER, VISIBLE
from rlaudit.engines.inside.engine import ENGINE
from rlaudit.errors import NotFinished

# Says what it was given; waits until as many as `meets` have come to `place`, or `holds` as long as it may.
SCRIPT = """
import os, time
from pathlib import Path

def run(job, channel):
    place = Path(job["place"])
    (place / f"came-{job['number']}").touch()
    while len(list(place.glob("came-*"))) < job["meets"]:
        time.sleep(0.01)
    channel.emit("progress", done=1, total=1)
    while job["holds"]:
        time.sleep(0.01)
    return {
        "number": job["number"],
        "cores": sorted(os.sched_getaffinity(0)),
        "gpus": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "compiled": os.environ.get("VLLM_CACHE_ROOT"),
    }
"""


def cell(place: Path, number: int, *, meets: int = 1, holds: bool = False, **more: object) -> Cell:
    script = place / "script.py"
    script.write_text(SCRIPT)
    job = {"script": str(script), "place": str(place), "number": number, "meets": meets, "holds": holds}
    variables = {VISIBLE: "4,5,6,7", ORDER: "PCI_BUS_ID"}
    return Cell(job, (sys.executable,), variables, 600.0, {}, **more)  # type: ignore[arg-type]


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> tuple[Share, ...]:
    """Four GPUs of a machine that has more."""
    FakeNvml(*(FakeGpu(f"GPU-{number}") for number in range(8))).install(monkeypatch)
    return tuple(Share(gpu=Device(index, f"GPU-{index}", "an H100", 80_000, "sm90")) for index in range(4, 8))


@pytest.fixture
def cores() -> Iterator[tuple[Share, ...]]:
    """Two shares of the processor, equal ones where there is but one core."""
    own = sorted(os.sched_getaffinity(0))
    yield Share(cores=(own[0],)), Share(cores=(own[-1],))
    os.sched_setaffinity(0, own)


def test_cells_run_beside_each_other_and_each_on_its_own_cores(cores: tuple[Share, ...], tmp_path: Path) -> None:
    with AtOnce(tmp_path / "cells", cores, 2) as here:
        told = [one.result for one in here.run([Asked(cell(tmp_path, number, meets=2)) for number in (1, 2)])]
    assert [one["number"] for one in told] == [1, 2]
    assert [one["cores"] for one in told] == [list(share.cores) for share in cores]


def test_answers_come_in_the_order_of_the_questions_whoever_ends_first(
    cores: tuple[Share, ...], tmp_path: Path
) -> None:
    # The first ends only when the third has begun, on the share that the second has left.
    with AtOnce(tmp_path / "cells", cores, 2) as here:
        asked = [Asked(cell(tmp_path, number, meets=3 if number == 1 else 1)) for number in (1, 2, 3)]
        assert [one.result["number"] for one in here.run(asked)] == [1, 2, 3]


def test_a_later_request_comes_before_the_cells_that_wait(cores: tuple[Share, ...], tmp_path: Path) -> None:
    with AtOnce(tmp_path / "cells", cores[:1], 1) as here:
        arms = here.run([Asked(cell(tmp_path, 1, meets=2)), Asked(cell(tmp_path, 2)), Asked(cell(tmp_path, 3))])
        scores = here.run([Asked(cell(tmp_path, 8)), Asked(cell(tmp_path, 9))])
        (tmp_path / "came-to-let-the-first-go-on").touch()
        assert [one.result["number"] for one in (*scores, *arms)] == [8, 9, 1, 2, 3]
    came = [(tmp_path / f"came-{number}").stat().st_mtime_ns for number in (1, 8, 9, 2, 3)]
    assert came == sorted(came)


def test_each_cell_is_shown_gpus_of_its_own_in_the_words_of_the_run(gpus: tuple[Share, ...], tmp_path: Path) -> None:
    with AtOnce(tmp_path / "cells", gpus, 4) as here:
        asked = [Asked(cell(tmp_path, number, meets=3, gpus=gpus)) for number, gpus in ((1, 1), (2, 2), (3, 1))]
        assert [one.result["gpus"] for one in here.run(asked)] == ["4", "5,6", "7"]
        assert next(here.run([Asked(cell(tmp_path, 9, gpus=None))])).result["gpus"] == "4,5,6,7"


def test_engines_at_once_compile_into_folders_of_their_own(cores: tuple[Share, ...], tmp_path: Path) -> None:
    with AtOnce(tmp_path / "cells", cores, 2) as here:
        asked = [Asked(cell(tmp_path, number, meets=2)) for number in (1, 2)]
        places = [one.result["compiled"] for one in here.run(asked)]
    assert [Path(place).name[-len("-share-0") :] for place in places] == ["-share-0", "-share-1"]
    named = cell(tmp_path, 3)
    named = replace(named, variables={**named.variables, ENGINE.compiled_in: "/recipes/own"})
    assert named.with_own_cache("share-0") == named


def test_a_timed_cell_shares_its_device_with_nobody() -> None:
    cores = (Share(cores=(0,)), Share(cores=(1,)))
    assert share_of(cores, [0], 1, timed=True) is None
    alone = share_of(cores, [0, 1], 1, timed=True)
    assert alone is not None and alone.taken == (0, 1) and alone.shown == (0,)
    gpus = tuple(Share(gpu=Device(index, f"GPU-{index}", "an H100", 80_000, "sm90")) for index in range(2))
    beside = share_of(gpus, [1], 1, timed=True)
    assert beside is not None and beside.taken == (1,)


def test_a_cell_whose_recipe_names_cores_runs_beside_nobody(cores: tuple[Share, ...], tmp_path: Path) -> None:
    cells = [cell(tmp_path, number) for number in (1, 2)]
    cells = [replace(one, variables={**one.variables, ENGINE.bound_by: "0-1"}) for one in cells]
    with AtOnce(tmp_path / "cells", cores, 2) as here:
        assert [one.status for one in here.run([Asked(one) for one in cells])] == ["ok", "ok"]
    (first_begins, first_ends), (second_begins, second_ends) = (_times(tmp_path / "cells" / one.key) for one in cells)
    assert first_ends <= second_begins or second_ends <= first_begins


def test_leaving_ends_what_runs_and_begins_nothing_more(cores: tuple[Share, ...], tmp_path: Path) -> None:
    of_other_tests = {one.identity for one in descendants(os.getpid())}
    with AtOnce(tmp_path / "cells", cores, 2) as here:
        outcomes = here.run([Asked(cell(tmp_path, number, meets=2, holds=True)) for number in (1, 2, 3)])
        while len(list(tmp_path.glob("came-*"))) < 2:
            os.sched_yield()
        seen = [one for one in descendants(os.getpid()) if one.identity not in of_other_tests]
    assert len(seen) >= 6 and alive(seen) == []
    assert not (tmp_path / "came-3").exists()
    assert not list(tmp_path.glob("cells/*/seal.json"))
    with pytest.raises(Cancelled):
        next(outcomes)


def test_a_cell_whose_guardians_are_killed_takes_no_other_with_it(cores: tuple[Share, ...], tmp_path: Path) -> None:
    first, second = cell(tmp_path, 1, meets=2, holds=True), cell(tmp_path, 2, meets=3)
    with AtOnce(tmp_path / "cells", cores, 2) as here:
        outcomes = here.run([Asked(first), Asked(second)])
        while len(list(tmp_path.glob("came-*"))) < 2:
            os.sched_yield()
        for guardian in _guardians_of(first.key):
            os.kill(guardian.pid, signal.SIGKILL)
        assert next(outcomes).status == "failed"
        # The second waits for one more, which needs the share that the first has left.
        third = here.run([Asked(cell(tmp_path, 3))])
        assert next(third).status == next(outcomes).status == "ok"


def _guardians_of(key: str) -> list[Process]:
    """Both guardians of a cell."""
    found = [one for one in processes() if key in _command_line(one.pid) and "guardian.py" in _command_line(one.pid)]
    assert len(found) == 2, [name(one.pid) for one in found]
    return found


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def _times(directory: Path) -> tuple[float, float]:
    """When the worker of a cell began and ended."""
    events = [json.loads(line) for line in (directory / "events.jsonl").read_text().splitlines()]
    return events[0]["t"], events[-1]["t"]


def test_a_processor_is_split_into_equal_parts_and_known_by_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 4, 5, 6, 7})
    whole = detect(cpu=True)
    part, shares = split(whole, 2)
    assert whole.cores == 5 and part.cores == 2
    assert [share.cores for share in shares] == [(3, 4), (5, 6)]
    with pytest.raises(NotFinished, match="6 cells at once need as many cores"):
        split(whole, 6)
