"""Where this generation's model runner lives; the module tells the generation."""

from types import SimpleNamespace


class CPUModelRunner:
    """A model and what draws tokens from it."""

    def __init__(self, model):
        self.model = model
        self.sampler = Sampler()
        self.cudagraph_dispatcher = Dispatcher()


class Sampler:
    """V1's, with the part that may be FlashInfer."""

    def __init__(self):
        self.topk_topp_sampler = SimpleNamespace(forward=self.forward_native)

    def forward_native(self):
        """Not called: only its name is read."""

    def sample(self):
        """One batch."""


class Dispatcher:
    """Says for each batch which CUDA graph it runs as."""

    def dispatch(self):
        """None on a CPU."""
        return SimpleNamespace(name="NONE"), None
