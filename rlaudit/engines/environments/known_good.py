"""Version facts that no index tells: what to hold back, and what text models do not need.

Every fact has its reason beside it. What an index or a wheel's own metadata can tell is never written here.
"""

from packaging.version import Version

# Asked for by the CPU builds without a version, published on PyTorch's own index only, and imported by no
# text model.
NOT_NEEDED_FOR_TEXT = ("torchaudio", "torchvision", "torchcodec")

# Imported when an engine starts, but required by the releases' metadata on Python 3.12 and later only: on 3.11 it
# used to come along with other packages (0.8.5: "No module named 'setuptools'" while loading the model).
ALSO_NEEDED = ("setuptools",)

# Files of these may come from a find-links directory or from PyTorch's index, which state no upload date:
# uv would leave undated files out as soon as a date is given.
UNDATED = ("torch", *NOT_NEEDED_FOR_TEXT, "triton")

# (first vLLM release it no longer applies to, constraints, why). Used only where the index serves no upload
# dates, so that a resolution as of the release date is not possible.
_CAPS = (
    (
        "0.9.0",
        ("transformers==4.51.3", "numpy<2.3", "setuptools<80"),
        "transformers 5 removed what vLLM 0.8 imports; numba of the time refuses numpy 2.3",
    ),
    (
        "0.11.0",
        ("transformers<4.56", "numpy<2.3", "setuptools<80"),
        "vLLM 0.9 and 0.10 predate transformers 4.56",
    ),
    ("0.19.0", ("transformers<5", "setuptools<81"), "vLLM pinned transformers below 5 until then"),
)


def caps(vllm_version: str) -> tuple[str, ...]:
    """Constraints under which this release is known to resolve to packages it works with."""
    for before, constraints, _why in _CAPS:
        if Version(vllm_version) < Version(before):
            return constraints
    return ()
