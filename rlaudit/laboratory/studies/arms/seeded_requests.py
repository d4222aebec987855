"""What the seed of every request hides: vLLM draws a seeded request with its native sampler, never with FlashInfer's.

Arms whose numbers agree sample the same tokens because each request has a seed, and contrasts between arms rely on
that. So an ablation cannot show whether FlashInfer's kernel for top-k and top-p, the default since 0.21.0, draws from
the right distribution. Source: vllm/v1/sample/ops/topk_topp_sampler.py (0.18.1:119, 0.32.0:297),
vllm/v1/worker/gpu/sample/sampler.py (0.32.0:311).
"""

from collections.abc import Iterable

from packaging.version import Version

from rlaudit.engines.vllm.expected_engine import resolution_of
from rlaudit.laboratory.studies.arms.rollout import engine_settings
from rlaudit.laboratory.treatment import Treatment
from rlaudit.vllm.machine import Machine

FILTERS = ("top_k", "top_p")


def flashinfer_not_seen(treatments: Iterable[Treatment], machine: Machine) -> list[str]:
    """Return a line that names the releases which may apply these filters with FlashInfer, if any."""
    using = (treatment for treatment in treatments if _may_use_flashinfer(treatment, machine))
    versions = sorted({treatment.version for treatment in using}, key=Version)
    if not versions:
        return []
    return [
        f"the FlashInfer sampler of vLLM {', '.join(versions)}: requests are seeded, and vLLM uses its native sampler "
        "for those; rollouts without seeds may be drawn by another kernel than the one seen here"
    ]


def _may_use_flashinfer(treatment: Treatment, machine: Machine) -> bool:
    if not any(name in treatment.sampling for name in FILTERS):
        return False
    settings = engine_settings(treatment, machine.platform)
    resolution = resolution_of(treatment.version, settings.engine_args, settings.variables(machine.platform), machine)
    return resolution.value("flashinfer_sampler") is not False
