"""Where this generation's model runner lives; the module tells the generation."""


class CPUModelRunner:
    """A model and what draws tokens from it."""

    def __init__(self, model):
        self.model = model
        self.sampler = Sampler()
        self.graph_runners = []


class Sampler:
    """V0's, one module."""

    def forward(self):
        """One batch."""
