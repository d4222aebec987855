"""The report of a run that has not ended: what it has, what is missing, and no verdict."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlaudit.engines.cells.seal import SEAL, regular_size
from rlaudit.files.parse_json import parse_json
from rlaudit.files.read_regular import open_regular
from rlaudit.laboratory.run_folder import CELL_FOLDERS, PLAN, cells_of_plan, damage_of_cell
from rlaudit.layers import Layer, untested
from rlaudit.report.new_report import new_report
from rlaudit.report.parts.run import Run
from rlaudit.text.counted import counted

if TYPE_CHECKING:
    from rlaudit.report.report import Report

GO_ON = "go on from the finished cells: {command}"
NOT_KNOWN = "the ablate command that started it"


def unfinished_document(folder: Path) -> "Report":
    """Return the report, with exit code 3.

    Broken files count as missing: a run can be killed while it writes. Cells of an earlier plan are not counted.
    """
    plan = _read_json(folder / PLAN)
    planned = cells_of_plan(folder)
    present = [path for path in sorted((folder / CELL_FOLDERS).glob("*")) if path.is_dir()]
    cells = [_cell(path) for path in present if planned is None or path.name in planned]
    done = [cell for cell in cells if cell["status"] is not None]
    arms = [arm for arm in _list(plan.get("arms")) if isinstance(arm, dict)]
    recipe = _dict(plan.get("recipe"))
    because = f"the run has not finished: {len(done)} of {counted(max(len(cells), len(planned or ())), 'step')} done"
    not_seen = [
        *([] if plan else ["plan.json is missing or broken: which arms were planned is not known"]),
        *([f"nothing is concluded yet from the arms {', '.join(map(_named, arms))}"] if arms else []),
        *(f"step {cell['name']} ({cell['script']}): {cell['end']}" for cell in cells if cell["status"] != "ok"),
    ]
    before, after = (_version(recipe, side) for side in ("reference", "candidate"))
    provenance = _dict(plan.get("provenance"))
    command = provenance.get("command")
    step = GO_ON.format(command=command if isinstance(command, str) else NOT_KNOWN)
    layers = [untested(layer, because, step if layer is Layer.SEMANTIC else "") for layer in Layer]
    return {
        **new_report("ablate", 3, before=before, after=after, layers=layers, not_seen=not_seen),
        "description": str(recipe.get("description", "")),
        "blocks": [],
        "run": Run(
            seconds=sum(cell["seconds"] for cell in cells),
            set_up_seconds=0.0,
            cell_seconds=sum(cell["seconds"] for cell in cells),
            cells_run=len(done),
            cells_kept=0,
            sequences_sampled=0,
            sequences_scored=0,
            peak_memory_mib=max((cell["peak_memory_mib"] for cell in cells), default=0.0),
            micro_batch_floors=[],
            provenance=provenance,
        ),
    }


def _named(arm: Mapping[str, Any]) -> str:
    return f"{arm.get('name')} (vLLM {arm.get('version')})"


def _version(recipe: Mapping[str, Any], side: str) -> str | None:
    block = next((block for block in _list(recipe.get("blocks")) if isinstance(block, dict)), {})
    version = _dict(block.get(side)).get("version")
    return version if isinstance(version, str) else None


def _cell(path: Path) -> dict[str, Any]:
    result, usage, job = (_read_json(path / f"{name}.json") for name in ("result", "usage", "job"))
    damage = damage_of_cell(path) if regular_size(path / SEAL) is not None else None
    status = result.get("status") if damage is None else None
    error = result.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return {
        "name": path.name,
        "script": Path(str(job.get("script", "unknown script"))).stem,
        "status": status,
        "end": _end(status, message) if damage is None else f"{damage.path.name} {damage.what}; it is run again",
        "seconds": _figure(usage.get("seconds")),
        "peak_memory_mib": _figure(usage.get("peak_memory_mib")),
    }


def _end(status: Any, message: Any) -> str:
    return "runs, or was ended; it is run again" if status is None else f"{status}{f': {message}' if message else ''}"


def _read_json(path: Path) -> dict[str, Any]:
    try:
        with open_regular(path) as file:
            content = parse_json(file.read())
    except (OSError, ValueError, RecursionError):
        return {}
    return _dict(content)


def _figure(value: Any) -> float:
    is_figure = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12
    return float(value) if is_figure else 0.0


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else []
