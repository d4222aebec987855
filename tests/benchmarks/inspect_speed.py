"""How long `rlaudit inspect` takes from cold Python, one file and 200, beside what importing typer and yaml costs.

    python tests/benchmarks/inspect_speed.py [CONFIG]

Each figure is the smallest and the median of several runs; what other programs do on the machine only adds to them.
"""

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

RUNS = 10
FILES = 200
ONE_FILE, RATIO, ALL_FILES = 0.30, 3.0, 3.0
CONFIG = """\
vllm_config:
  use_v1: true
  vllm_kwargs:
    dtype: bfloat16
    gpu-memory-utilization: 0.9
    tensor-parallel-size: 1
    max-num-seqs: 256
    generation-config: vllm
    max_model_len: 32768
finetune:
  rl:
    temperature: ${..llm.parameters.temperature}
llm:
  parameters:
    max_tokens: 8192
    temperature: 0.7
    top_p: 0.95
world:
  actor_fraction: 4
  preprocessor_fraction: 0
  finetune_fraction: 4
"""


@dataclass(frozen=True)
class Taken:
    """One run: seconds on the clock, and of the processor, which other programs change less."""

    wall: float
    cpu: float


def run(*command: str) -> Taken:
    """One run of a command of this interpreter."""
    start, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    end, after = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    return Taken(end - start, after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime)


def alternately(*commands: tuple[str, ...]) -> list[list[Taken]]:
    """RUNS runs of each, in turns, so that a slow second hits all; once unmeasured, so that byte code is there."""
    taken: list[list[Taken]] = [[] for _ in commands]
    for number in range(RUNS + 1):
        for command, times in zip(commands, taken, strict=True):
            one = run(*command)
            if number:
                times.append(one)
    return taken


def said(name: str, times: list[Taken], limit: float | None = None) -> bool:
    """One line; whether the smallest time keeps the limit."""
    best, median = min(one.wall for one in times), statistics.median(one.wall for one in times)
    kept = limit is None or best <= limit
    bound = "" if limit is None else f"  limit {limit:.2f} s: {'kept' if kept else 'MISSED'}"
    cpu = min(one.cpu for one in times)
    print(f"{name:<32} {best:6.3f} s  median {median:6.3f} s  processor {cpu:6.3f} s{bound}")
    return kept


def main() -> int:
    """0 where every limit is kept."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "base.yaml"
        text = Path(sys.argv[1]).read_text(encoding="utf-8") if len(sys.argv) > 1 else CONFIG
        config.write_text(text, encoding="utf-8")
        many = Path(folder) / "many"
        many.mkdir()
        for number in range(FILES):
            (many / f"{number}.yaml").write_text(text, encoding="utf-8")
        inspect = ("-m", "rlaudit", "inspect", "--from", "0.8.5", "--to", "0.18.1")
        bare, one, all_ = alternately(("-c", "import typer, yaml"), (*inspect, str(config)), (*inspect, str(many)))
    kept = [
        said("python -c 'import typer, yaml'", bare),
        said("rlaudit inspect, one file", one, ONE_FILE),
        said(f"rlaudit inspect, {FILES} files", all_, ALL_FILES),
    ]
    ratio = min(taken.wall for taken in one) / min(taken.wall for taken in bare)
    processor = min(taken.cpu for taken in one) / min(taken.cpu for taken in bare)
    print(f"one file / bare import: {ratio:.1f} on the clock, {processor:.1f} of the processor (limit {RATIO:.0f})")
    return 0 if all(kept) and ratio <= RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
