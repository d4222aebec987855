"""How far two seeds of one run drift apart: the noise models that the reference does not rule out.

A curve is a shared trend plus two kinds of noise. Step noise comes from the batch and forgets within a few steps; it
is an AR(1). Wander is how a seed leaves the mean of its siblings and stays away; it is an AR(1) too, with a memory of
a thirtieth of the run up to twice its length, and begins at 0 if all seeds begin at one checkpoint.

With several reference seeds the trend cancels in their contrasts and both kinds are measured. With one reference the
trend is estimated (a spline of few degrees of freedom) and what is slower than it cannot be measured: the prior below
decides how much wander is allowed for, and the report says so.

The likelihood is exact (a Kalman filter on a grid of models, the trend's coefficients integrated out), and all
models keep their posterior weight: a short reference rules out little, and the band is wider for it.
"""

from dataclasses import dataclass

import numpy as np

from rlaudit.arrays import Floats

STEP_MEMORIES = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9)
# Memory of the wander as a share of the run's length.
WANDER_MEMORIES = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0)
# Size of the wander in standard deviations of the step noise, and how likely each is before any data. With one
# reference, slow wander keeps these weights: a judgement, printed with every report made from one reference.
WANDER_SIZES = {0.0: 0.1, 0.5: 0.3, 1.0: 0.35, 2.0: 0.25}
MEASURED_WANDER_SIZES = {0.0: 0.05, 0.5: 0.15, 1.0: 0.2, 2.0: 0.2, 4.0: 0.2, 8.0: 0.2}


@dataclass(frozen=True)
class Grid:
    """Noise models, one per entry."""

    # Memory of the step noise: the share kept from step to step.
    step: Floats
    # Memory of the wander.
    wander: Floats
    # Standard deviation of the wander over that of the step noise.
    size: Floats
    # Weight before the data.
    prior: Floats
    # Whether the wander is 0 before the first step.
    from_zero: bool

    @property
    def step_variance(self) -> Floats:
        """Variance of the step noise if its innovations have variance 1."""
        return 1.0 / (1.0 - np.square(self.step))

    @property
    def wander_variance(self) -> Floats:
        """Variance that the wander tends to, on the same scale."""
        return np.square(self.size) * self.step_variance


@dataclass(frozen=True)
class NoiseModel:
    """The posterior over a grid."""

    grid: Grid
    length: int
    # Of each model.
    weights: Floats
    # Rate and shape of the inverse gamma of the innovation variance.
    rate_G: Floats
    shape: float
    # Standardised, of the likeliest model: the simulation keeps their tails.
    innovations: Floats

    @property
    def expected_variance(self) -> Floats:
        """Mean innovation variance of each model."""
        return self.rate_G / max(self.shape - 1.0, 0.5)


def noise_grid(length: int, measured: bool, from_zero: bool) -> Grid:
    """Return the models for a run of so many points. measured: whether several seeds show how large the wander is."""
    sizes = MEASURED_WANDER_SIZES if measured else WANDER_SIZES
    rows = [
        (step, np.exp(-1.0 / max(memory * length, 1.0)), size, weight / len(STEP_MEMORIES) / len(memories))
        for step in STEP_MEMORIES
        for size, weight in sizes.items()
        for memories in [WANDER_MEMORIES if size else WANDER_MEMORIES[:1]]
        for memory in memories
    ]
    step, wander, size, prior = np.array(rows).T
    return Grid(step, wander, size, prior, from_zero)


def fit_noise(series_NS: Floats, trend_NQ: Floats, grid: Grid) -> NoiseModel:
    """Return the posterior from S series of N points that share one noise model, each with a trend (Q columns or 0)."""
    length, count = series_NS.shape
    columns = np.concatenate([series_NS, trend_NQ], axis=1)
    innovations_NGC, spread_NG = _filter(columns, grid)
    scaled = innovations_NGC / np.sqrt(spread_NG)[:, :, None]
    data, trend = scaled[:, :, :count], scaled[:, :, count:]
    log_likelihood = -0.5 * count * np.log(spread_NG).sum(axis=0)
    if trend.shape[2]:
        normal = np.einsum("ngq,ngr->gqr", trend, trend)
        mixed = np.einsum("ngq,ngs->gqs", trend, data)
        coefficients = np.linalg.solve(normal, mixed)
        data = data - np.einsum("ngq,gqs->ngs", trend, coefficients)
        log_likelihood -= 0.5 * count * np.linalg.slogdet(normal)[1]
    residual = np.square(data).sum(axis=(0, 2))
    shape = 0.5 * count * (length - trend.shape[2])
    log_weight = np.log(grid.prior) + log_likelihood - shape * np.log(residual)
    weights = np.exp(log_weight - log_weight.max())
    best = int(weights.argmax())
    innovations = data[:, best, :].ravel()
    return NoiseModel(
        grid, length, weights / weights.sum(), residual / 2, shape, innovations / np.sqrt(np.square(innovations).mean())
    )


def _filter(columns_NC: Floats, grid: Grid) -> tuple[Floats, Floats]:
    """Return one-step prediction errors (N, G, C) of every column under every model, and their variances (N, G)."""
    length, count = columns_NC.shape
    models = grid.step.size
    errors, spreads = np.empty((length, models, count)), np.empty((length, models))
    step, wander = grid.step, grid.wander
    step_mean, wander_mean = np.zeros((models, count)), np.zeros((models, count))
    step_var, both, wander_var = grid.step_variance, np.zeros(models), grid.wander_variance
    wander_noise = wander_var * (1.0 - np.square(wander))
    if grid.from_zero:
        wander_var = wander_noise
    for place in range(length):
        spread = step_var + 2 * both + wander_var
        error = columns_NC[place] - step_mean - wander_mean
        errors[place], spreads[place] = error, spread
        step_gain, wander_gain = (step_var + both) / spread, (both + wander_var) / spread
        step_mean = step[:, None] * (step_mean + step_gain[:, None] * error)
        wander_mean = wander[:, None] * (wander_mean + wander_gain[:, None] * error)
        kept_step = step_var - step_gain * (step_var + both)
        kept_both = both - step_gain * (both + wander_var)
        kept_wander = wander_var - wander_gain * (both + wander_var)
        step_var = np.square(step) * kept_step + 1.0
        both = step * wander * kept_both
        wander_var = np.square(wander) * kept_wander + wander_noise
    return errors, spreads


def covariance(model: NoiseModel) -> Floats:
    """Return (N, N) covariance of one seed's noise, averaged over the posterior."""
    grid, places = model.grid, np.arange(model.length)
    apart = np.abs(places[:, None] - places[None, :])
    before = places[:, None] + places[None, :] + 2
    scale = model.weights * model.expected_variance
    total = np.zeros((model.length, model.length))
    for memory in np.unique(grid.step):
        total += (scale * grid.step_variance)[grid.step == memory].sum() * memory**apart
    for memory in np.unique(grid.wander):
        variance = (scale * grid.wander_variance)[grid.wander == memory].sum()
        total += variance * (memory**apart - (memory**before if grid.from_zero else 0.0))
    return total


def simulate(
    model: NoiseModel, runs: int, seeds_of_mean: int, generator: np.random.Generator, new_seeds: int = 1
) -> Floats:
    """Return (N, runs) differences between the mean of `new_seeds` and that of `seeds_of_mean` others.

    Models are drawn from the posterior, and step innovations from those measured, so that heavy tails stay heavy.
    """
    grid = model.grid
    drawn = generator.choice(grid.step.size, size=runs, p=model.weights)
    scale = np.sqrt(model.rate_G[drawn] / generator.gamma(model.shape, size=runs))
    step, wander = grid.step[drawn], grid.wander[drawn]
    total_seeds = 1.0 / new_seeds + 1.0 / seeds_of_mean
    wander_scale = np.sqrt(total_seeds * grid.wander_variance[drawn])
    signs = generator.choice((-1.0, 1.0), size=(2, model.length, runs))
    innovations = signs * generator.choice(model.innovations, size=(2, model.length, runs))
    shocks = innovations[0] / np.sqrt(new_seeds) + innovations[1] / np.sqrt(seeds_of_mean)
    noise = generator.standard_normal((model.length, runs)) * wander_scale * np.sqrt(1.0 - np.square(wander))
    step_state = generator.standard_normal(runs) * np.sqrt(total_seeds * grid.step_variance[drawn])
    wander_state = np.zeros(runs) if grid.from_zero else generator.standard_normal(runs) * wander_scale
    curves = np.empty((model.length, runs))
    for place in range(model.length):
        step_state = step * step_state + shocks[place] if place else step_state
        wander_state = wander * wander_state + noise[place]
        curves[place] = step_state + wander_state
    return curves * scale
