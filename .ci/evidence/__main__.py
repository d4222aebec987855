"""Runs the evidence if a package that judges has changed since it was found: `cd .ci && python -m evidence [--record]`.

Prints which packages changed, or that the evidence of a date stands. Ends with 1 if a part does not keep its bound, not
because the record is old. `--record` runs it in any case, and writes what was found into found.json if all parts hold.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from evidence.judging import digests
from evidence.selftest.run import ONE_THREAD

RECORD = Path(__file__).with_name("found.json")


def main(words: list[str] | None = None) -> int:
    """Run what is needed, print what was found, and return 1 if a part does not hold."""
    parser = argparse.ArgumentParser(
        prog="python -m evidence", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true", help="run it in any case, and write what was found")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="parts at a time")
    options = parser.parse_args(words)
    now, record = digests(), json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    changed = changed_since(record, now)
    if changed:
        print(f"changed since the evidence of {record.get('date', 'no date')}: {', '.join(changed)}", flush=True)
    elif not options.record:
        print(f"the evidence of {record['date']} stands: no package that judges has changed since")
        return 0
    found = run_parts(options.jobs)
    if not all(part["holds"] for part in found.values()):
        return 1
    if options.record:
        record = {"date": time.strftime("%Y-%m-%d"), "packages": now, "found": found}
        RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


def changed_since(record: Mapping[str, Any], now: Mapping[str, str]) -> list[str]:
    """Return the packages whose digest is not that of the record."""
    return [package for package, digest in now.items() if record.get("packages", {}).get(package) != digest]


def run_parts(jobs: int) -> dict[str, dict[str, Any]]:
    """Run every part in a process, `jobs` at a time, and print and return what each found."""
    from evidence.parts import PARTS

    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    started = time.monotonic()
    found: dict[str, dict[str, Any]] = {}
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(part): name for name, part in PARTS.items()}
        for finished in as_completed(waiting):
            part, name = finished.result(), waiting[finished]
            found[name] = {"holds": part.holds, "figures": part.figures}
            verdict = "holds" if part.holds else "DOES NOT HOLD"
            print(f"{name}: {verdict}, after {time.monotonic() - started:.0f} s", flush=True)
            print("".join(f"  {figure}\n" for figure in part.figures), end="", flush=True)
    return {name: found[name] for name in PARTS}


if __name__ == "__main__":
    sys.exit(main())
