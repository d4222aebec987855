"""What a shell script writes or runs itself in a here-document: `cat > run.yaml <<EOF`, `tee run.yaml <<EOF`,
`python - <<EOF`.
"""

import re
from collections.abc import Iterator

from rlaudit.configs.source import Source

_OPENS = re.compile(
    r"(?m)^(?=[^#\n]*<<-?[ \t]*[\"'\\]?\w)[^#\n]*?"
    r"(?:(?:>|\btee(?:[ \t]+-\w+)*[ \t])[ \t]*[\"']?(?P<file>[^\s\"'<>]+\.(?:ya?ml|toml|py|(?:ba)?sh|slurm|sbatch))"
    r"|\bpython[\d.]*[ \t\n<-])"
)


def in_here_documents(source: Source) -> Iterator[str]:
    """Yield a sentence for each config, script or program in a here-document, which is not read, with its line."""
    for match in _OPENS.finditer(source.text) if source.is_shell else ():
        place = f"{source.path}:{source.text.count(chr(10), 0, match.start()) + 1}"
        if match["file"]:
            yield f"{place}: {match['file']}, which the script writes itself, was not read: inspect that file"
        else:
            yield f"{place}: the program inside the script was not read: write it to a file, and inspect that"
