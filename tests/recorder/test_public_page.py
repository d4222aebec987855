"""The page of a recording that is made to be shown: what it lists, and that no recording can make it fail."""

from pathlib import Path

import pytest
from recorded_worlds import RESET
from test_damaged_recordings import mutated
from written_recording import WrittenProcess

from rlaudit.cli.app import run

PAUSE = "vllm.v1.engine.async_llm:AsyncLLM.pause_generation"
RESUME = "vllm.v1.engine.async_llm:AsyncLLM.resume_generation"
SLEEP, WAKE = (f"vllm.v1.engine.core:EngineCore.{name}" for name in ("sleep", "wake_up"))
PROMPT = [7, 8, 9, 10]


def lived(folder: Path, pid: int = 100) -> Path:
    """Write a training: 8 tokens, an update in a pause, 8 more under it, a second update; then a sleep."""
    process = WrittenProcess(folder, pid=pid)
    process.engine(model_config={})
    process.sampling()
    for ids in ([1, 2, 3, 4], [5, 6, 3, 4]):
        request = process.request(PROMPT)
        first = process.step(4)
        process.step(4)
        process.sequence(request, PROMPT, [*ids, *ids], [-1.0] * 8, [[first, 2, 4]], cached=2)
        process.call(PAUSE, mode="keep", clear_cache=False)
        process.load(seconds=0.5)
        process.call(RESET, result=ids[0] == 1)
        process.call(RESUME)
    process.call(SLEEP, level=1)
    return process.write()


def test_the_page_lists_the_calls_of_every_engine_in_order(tmp_path: Path) -> None:
    folder = lived(tmp_path / "r")
    lived(folder, pid=200)
    page = tmp_path / "page.html"
    assert run(["inspect", str(folder), "--output", f"html:{page}", "--exit-zero"]) == 0
    text = page.read_text()
    assert "4 weight updates" in text and "2 x in this order" in text
    calls = ["pause_generation(mode=keep, clear_cache=False)", "load_weights of 2 tensors", "reset_prefix_cache()"]
    places = [text.index(call, text.index("x in this order")) for call in (*calls, "resume_generation()")]
    assert places == sorted(places)
    assert "Made to be shown to anyone" in text
    assert str(folder) not in text and "node-100" not in text


def test_a_config_beside_a_recording_has_the_page_of_a_config(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("vllm serve a/model --seed 1\n")
    page = tmp_path / "page.html"
    run(["inspect", str(lived(tmp_path / "r")), str(script), "--to", "0.18.1", "--output", f"html:{page}"])
    assert "Made to be shown" not in page.read_text() and "run.sh" in page.read_text()


@pytest.mark.parametrize("block", range(4))
def test_no_damage_makes_the_page_fail(block: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = next(lived(tmp_path / "whole").glob("*.jsonl")).read_bytes().splitlines(keepends=True)
    folder = tmp_path / "r"
    folder.mkdir()
    for seed in range(block * 15, block * 15 + 15):
        (folder / "node-100-0a1b2c3d.jsonl").write_bytes(b"".join(mutated(lines, seed)))
        code = run(["inspect", str(folder), "--output", f"html:{tmp_path / 'page.html'}", "--exit-zero"])
        assert code in (0, 2, 3), f"seed {seed}: {capsys.readouterr().err}"
