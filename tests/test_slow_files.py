from pathlib import Path

from slow_files import SECONDS


def test_every_slow_file_is_there() -> None:
    folder = Path(__file__).parent
    assert [name for name in SECONDS if not (folder / name).is_file()] == []
