"""Fixtures of tests of the hardware: of this machine's libcuda nothing is asked."""

import ctypes

import pytest


@pytest.fixture(autouse=True)
def no_libcuda(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", absent)
