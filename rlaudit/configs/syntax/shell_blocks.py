"""The open ifs, loops, cases, functions, groups and lists of a shell script, innermost last.

What a block changes is uncertain after it, unless it surely runs: each of them opens a scope of the variables.
"""

from dataclasses import dataclass

from rlaudit.configs.syntax.shell_variables import Variables


@dataclass
class _Block:
    kind: str
    line: int
    certain: bool


class Blocks:
    """kinds: conditional, case, case pattern, function, group, subshell, and chain for `a && b || c`."""

    def __init__(self, variables: Variables) -> None:
        self._variables = variables
        self._open: list[_Block] = []

    @property
    def innermost(self) -> str | None:
        """The kind of the innermost block; None outside of all."""
        return self._open[-1].kind if self._open else None

    def open(self, kind: str, line: int, *, certain: bool = False) -> None:
        """Begin a block. certain: whether what it holds surely runs."""
        self._open.append(_Block(kind, line, certain))
        self._variables.enter()

    def become(self, kind: str) -> None:
        """The innermost block is of this kind from here on."""
        self._open[-1].kind = kind

    def doubt(self) -> None:
        """The innermost block may not run after all."""
        self._open[-1].certain = False

    def close(self, *kinds: str) -> None:
        """End the innermost block if it is one of `kinds`, with a chain that still runs inside it."""
        if "chain" not in kinds and self.innermost == "chain":
            self.close("chain")
        if self.innermost not in kinds:
            return
        block = self._open.pop()
        if block.kind == "subshell":
            self._variables.forget()
        else:
            self._variables.leave(None if block.certain else block.line, block.kind == "function")
