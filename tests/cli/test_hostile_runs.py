"""No run directory breaks us."""

from random import Random

import pytest
from hostile_runs import FORMATS, hostile_run
from laboratories import ONE_FACTOR

from rlaudit.cli.app import run


@pytest.fixture(scope="module")
def whole(shared_laboratory):
    """A finished run of one factor."""
    done = shared_laboratory.ablate(shared_laboratory.recipe(ONE_FACTOR))
    assert done.exit_code == 1, done.stderr
    return done.folder


@pytest.mark.parametrize("seed", range(1_000_000, 1_000_012))
def test_hostile_run_directories_end_with_a_code_of_the_contract(tmp_path, capsys, whole, seed):
    code = run(hostile_run(whole, tmp_path, Random(seed)))
    said = capsys.readouterr().err
    assert code in {0, 1, 2, 3}, said
    assert "Traceback" not in said
    assert code in {2, 3} or all((tmp_path / name).stat().st_size for name in FORMATS)
