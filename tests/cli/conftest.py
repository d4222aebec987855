"""A repository of toys."""

from toy_dialect import desk

__all__ = ["desk"]
