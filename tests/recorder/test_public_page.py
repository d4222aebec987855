"""The page of a recording that is made to be shown: what it draws, and that no recording can make it fail."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from recorded_worlds import RESET, World
from test_damaged_recordings import mutated
from written_recording import WrittenProcess

from rlaudit.cli.app import run
from rlaudit.recorder.engine_life import BINS, EngineLife, Happened, engine_life
from rlaudit.recorder.recording import open_recording
from rlaudit.recorder.weight_updates import served_weights

PAUSE = "vllm.v1.engine.async_llm:AsyncLLM.pause_generation"
RESUME = "vllm.v1.engine.async_llm:AsyncLLM.resume_generation"
SLEEP, WAKE = (f"vllm.v1.engine.core:EngineCore.{name}" for name in ("sleep", "wake_up"))
PROMPT = [7, 8, 9, 10]


def lived(folder: Path, pid: int = 100) -> Path:
    """Write a training: 8 tokens, an update in a pause, 8 more under it, a second update; then a sleep."""
    process = WrittenProcess(folder, pid=pid)
    process.engine(model_config={"logprobs_mode": "raw_logprobs"})
    process.sampling()
    for ids in ([1, 2, 3, 4], [5, 6, 3, 4]):
        request = process.request(PROMPT)
        first = process.step(4, cached=2)
        process.step(4)
        process.sequence(request, PROMPT, [*ids, *ids], [-1.0] * 8, [[first, 2, 4]], cached=2)
        process.call(PAUSE, mode="keep", clear_cache=False)
        process.load(seconds=0.5)
        process.call(RESET, result=ids[0] == 1)
        process.call(RESUME)
    process.call(SLEEP, level=1)
    return process.write()


def life_of(folder: Path) -> EngineLife:
    recording = open_recording(folder)
    (served,) = served_weights(recording)
    return engine_life(served, recording)


def test_a_life_has_what_was_done_and_what_was_sampled(tmp_path: Path) -> None:
    life = life_of(lived(tmp_path / "r"))
    done = [mark.what for mark in life.marks]
    assert sorted(done) == sorted(
        [Happened.PAUSE, Happened.UPDATE] * 2 + [Happened.RESET, Happened.REFUSED, Happened.SLEEP]
    )
    pauses = [mark for mark in life.marks if mark.what is Happened.PAUSE]
    updates = [mark for mark in life.marks if mark.what is Happened.UPDATE]
    for pause, update in zip(pauses, updates, strict=True):
        assert pause.end is not None and update.end is not None
        assert pause.begin < update.begin < update.end < pause.end
        assert update.end - update.begin == pytest.approx(0.5, abs=0.1)
    (sleep,) = [mark for mark in life.marks if mark.what is Happened.SLEEP]
    assert sleep.end is None
    assert sum(one.tokens for one in life.bins) == 16 and len(life.bins) == BINS
    assert {one.cached for one in life.bins} == {None, 0.5}
    assert (life.bins[0].version, life.bins[-1].version, life.updates) == (0, 2, 2)


def test_the_life_of_an_engine_whose_release_does_not_tell_it_has_no_cached_share(tmp_path: Path) -> None:
    folder = World(trainer=False).write(tmp_path / "r")
    file = next(folder.glob("*.jsonl"))
    file.write_text(re.sub(r'"cached":0,"finish"', '"cached":null,"finish"', file.read_text()))
    assert {one.cached for one in life_of(folder).bins} == {None}


def test_the_page_draws_every_engine_and_lists_its_calls_in_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = lived(tmp_path / "r")
    lived(folder, pid=200)
    page = tmp_path / "page.html"
    assert run(["inspect", str(folder), "--output", f"html:{page}", "--exit-zero"]) == 0
    text = page.read_text()
    (drawn,) = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    words = {"".join(one.itertext()) for one in ElementTree.fromstring(drawn).iter("text")}
    assert words >= {
        *("engine 1", "engine 2", "weights", "paused, asleep", "cache resets", "weight update", "pause", "sleep"),
        *("prefix cache reset", "prefix cache reset refused", "tokens per second", "cached share of prompts"),
    }
    calls = ["pause_generation(mode=keep, clear_cache=False)", "load_weights of 2 tensors", "reset_prefix_cache()"]
    places = [text.index(call, text.index("call by call</h2>")) for call in (*calls, "resume_generation()")]
    assert places == sorted(places)
    assert "raw_logprobs" in text and "Made by rlaudit" in text
    assert str(folder) not in text and "node-100" not in text


def test_a_config_beside_a_recording_has_the_page_of_a_config(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("vllm serve a/model --seed 1\n")
    page = tmp_path / "page.html"
    run(["inspect", str(lived(tmp_path / "r")), str(script), "--to", "0.18.1", "--output", f"html:{page}"])
    assert "Made by rlaudit" not in page.read_text() and "run.sh" in page.read_text()


@pytest.mark.parametrize("block", range(4))
def test_no_damage_makes_the_page_fail(block: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = next(lived(tmp_path / "whole").glob("*.jsonl")).read_bytes().splitlines(keepends=True)
    folder = tmp_path / "r"
    folder.mkdir()
    for seed in range(block * 15, block * 15 + 15):
        (folder / "node-100-0a1b2c3d.jsonl").write_bytes(b"".join(mutated(lines, seed)))
        code = run(["inspect", str(folder), "--output", f"html:{tmp_path / 'page.html'}", "--exit-zero"])
        assert code in (0, 2, 3), f"seed {seed}: {capsys.readouterr().err}"
