"""Examples print the same on every machine."""

import pytest


@pytest.fixture(autouse=True)
def a_c_library_that_loads_every_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a machine cannot run is said by `inspect`, and is not the example's."""
    monkeypatch.setattr("platform.libc_ver", lambda *_: ("glibc", "2.99"))
