"""The errors with which rlaudit ends: one sentence, and what to do next.

Exit codes: 2 for a bad command line or configuration, 3 for an audit that could
not be finished. Anything that is not one of these is a bug in rlaudit (70).
"""


class RlauditError(Exception):
    """A failure the user can act on. `hint` names the next step."""

    # Each kind has its own.
    exit_code: int

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\n  {self.hint}"


class UsageError(RlauditError):
    """The command line, a recipe or a configuration requests something that does not exist."""

    exit_code = 2


class NotFinished(RlauditError):
    """The audit could not be carried out: a package, a model, a device or a network was missing."""

    exit_code = 3
