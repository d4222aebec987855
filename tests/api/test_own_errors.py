"""What leaves a public function is an error of rlaudit's if a caller can act on it, and a bug as it is."""

import errno

import pytest

from rlaudit.api.own_errors import own_errors
from rlaudit.errors import NotFinished, UsageError


@pytest.mark.parametrize(
    ("raised", "ours"),
    [
        (PermissionError(errno.EACCES, "denied", "log.jsonl"), NotFinished),
        (NotADirectoryError(errno.ENOTDIR, "a file", "log.jsonl"), UsageError),
        (EOFError("compressed file ended"), NotFinished),
    ],
)
def test_an_error_about_a_file_becomes_rlaudits_own(raised: Exception, ours: type[Exception]) -> None:
    with pytest.raises(ours) as leaving, own_errors():
        raise raised
    assert leaving.value.__cause__ is raised


def test_rlaudits_own_errors_and_bugs_stay_what_they_are() -> None:
    for raised in (UsageError("no such file"), KeyError("a bug")):
        with pytest.raises(type(raised)) as leaving, own_errors():
            raise raised
        assert leaving.value is raised and raised.__cause__ is None
