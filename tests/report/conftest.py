"""A repository of toys, and the report of a real ablation."""

from typing import Any

import documents
import pytest
from toy_dialect import desk

__all__ = ["ablation", "desk"]


@pytest.fixture
def ablation() -> dict[str, Any]:
    """The report of a real ablation."""
    return documents.ablation()
