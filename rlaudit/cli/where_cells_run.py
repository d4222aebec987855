"""The options that say where the cells of a run are run, and how many of them at once."""

from rlaudit.errors import UsageError

JOBS_HELP = "Cells at once: a number, or auto, which is one per GPU and one on a CPU. On a CPU each has its own cores."
AUTO = "auto"


def jobs_of(option: str) -> int | None:
    """How many at once; None for `auto`. Raises UsageError for anything else."""
    if option == AUTO:
        return None
    if not option.isdigit() or int(option) < 1:
        raise UsageError(f"--jobs {option}: neither a number of cells nor {AUTO}", "Write --jobs 4, or --jobs auto.")
    return int(option)
