"""The attention backends of which a release needs one to be named together with VLLM_BATCH_INVARIANT.

Up to 0.11 the engine names one itself; from 0.12.0 to 0.19.1 it does not start without one of a list; from 0.20.0 on it
chooses among those that declare themselves invariant. Source: override_envs_for_invariance in
vllm/model_executor/layers/batch_invariant.py (0.12.0 to 0.19.1), supports_batch_invariance in
vllm/v1/attention/backend.py (0.26.0:277).
"""

from packaging.version import Version

ASKS_BACKEND = Version("0.20.0")
# First release -> backends that are accepted from there on.
ACCEPTED = {
    "0.12.0": ("FLASH_ATTN", "FLASHINFER", "FLASH_ATTN_MLA"),
    "0.13.0": ("FLASH_ATTN", "FLASHINFER", "FLASH_ATTN_MLA", "TRITON_MLA"),
    "0.16.0": ("FLASH_ATTN", "TRITON_ATTN", "FLASH_ATTN_MLA", "TRITON_MLA"),
}


def accepted_backends(version: Version) -> tuple[str, ...]:
    """Return the backends of which one must be named, the best supported first; none if the release needs no name."""
    if version >= ASKS_BACKEND:
        return ()
    return next((names for first, names in reversed(ACCEPTED.items()) if version >= Version(first)), ())
