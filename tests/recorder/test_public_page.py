"""The page of a recording that is made to be shown: what it lists. That no damage makes it fail: see there."""

from pathlib import Path

from written_recording import CORE, WrittenProcess

from rlaudit.cli.app import run


def lived(folder: Path, pid: int = 100) -> Path:
    """Write a training: 8 tokens, an update in a pause, 8 more under it, a second update; then a sleep."""
    process = WrittenProcess(folder, pid=pid)
    process.engine(model_config={})
    process.sampling()
    for ids in ([1, 2, 3, 4], [5, 6, 3, 4]):
        process.sampled([7, 8, 9, 10], [*ids, *ids], a_step=4, cached=2)
        process.pause(mode="keep", clear_cache=False)
        process.load(seconds=0.5)
        process.reset(ids[0] == 1)
        process.resume()
    process.call(f"{CORE}.sleep", level=1)
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
