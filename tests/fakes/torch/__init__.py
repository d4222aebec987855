"""Can be imported, which is all that the health check of an interpreter asks of it, and has no CUDA."""

from types import SimpleNamespace

cuda = SimpleNamespace(is_available=lambda: False)
version = SimpleNamespace(cuda=None)
