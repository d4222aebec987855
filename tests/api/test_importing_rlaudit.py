"""`import rlaudit` brings the public names and takes no time."""

import json
import subprocess
import sys

import pytest

import rlaudit
from rlaudit import testing
from rlaudit.api.compare import compare
from rlaudit.errors import UsageError
from rlaudit.report.report import Report

ADDED = """
import json, sys
before = set(sys.modules)
import rlaudit
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_it_imports_no_other_module() -> None:
    done = subprocess.run([sys.executable, "-c", ADDED], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == ["rlaudit"]


def test_each_public_name_is_there_when_it_is_used() -> None:
    assert rlaudit.compare is compare
    assert rlaudit.testing is testing
    assert rlaudit.Report is Report
    assert rlaudit.errors.UsageError is UsageError
    for name in rlaudit.__all__:
        assert getattr(rlaudit, name) is not None
        assert name in dir(rlaudit)


def test_any_other_name_is_missing_as_in_any_module() -> None:
    with pytest.raises(AttributeError, match="no attribute 'comparee'"):
        _ = rlaudit.comparee


def test_the_function_stays_a_function_after_the_package_of_nearly_its_name_was_imported() -> None:
    import rlaudit.inspection

    assert callable(rlaudit.inspect)
