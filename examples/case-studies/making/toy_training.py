"""A policy-gradient run of a tabular policy, logged as PipelineRL logs it: what a wrong logprob does to the curves.

Each prompt has a hidden answer of LENGTH tokens and the reward is the share of it that was sampled. The engine samples
at a temperature with weights that are a few steps old, and reports logprobs before it (raw) or after it (processed);
the objective is PPO's, clipped against what the engine reported.
"""

from dataclasses import dataclass

import numpy as np
from toy_model import log_softmax

PROMPTS, LENGTH, TOKENS = 24, 12, 32
GROUPS, SAMPLES = 12, 8
LAG = 2
ENGINE_NOISE = 0.02


@dataclass(frozen=True)
class Run:
    temperature: float = 0.7
    mode: str = "processed"
    epsilon: float = 0.02
    learning_rate: float = 12.0
    steps: int = 160


def train(run, generator, policy):
    """Yield one dict of metrics per step. policy: (PROMPTS, LENGTH, TOKENS) logits, changed in place."""
    answers = np.random.default_rng(11).integers(0, TOKENS, (PROMPTS, LENGTH))
    history = [policy.copy()]
    for _ in range(run.steps):
        prompts = generator.choice(PROMPTS, GROUPS, replace=False).repeat(SAMPLES)
        behind = history[max(0, len(history) - 1 - LAG)][prompts]
        engine = behind + ENGINE_NOISE * generator.standard_normal(behind.shape)
        drawn_from = log_softmax(engine / run.temperature)
        noise = generator.gumbel(size=engine.shape)
        tokens = np.argmax(drawn_from + noise, axis=-1)
        reported = log_softmax(engine) if run.mode == "raw" else drawn_from
        old = np.take_along_axis(reported, tokens[..., None], axis=-1)[..., 0]
        current = log_softmax(policy[prompts] / run.temperature)
        new = np.take_along_axis(current, tokens[..., None], axis=-1)[..., 0]
        rewards = (tokens == answers[prompts]).mean(axis=1)
        group = rewards.reshape(GROUPS, SAMPLES)
        spread = group.std(axis=1, keepdims=True) + 1e-4
        advantages = ((group - group.mean(axis=1, keepdims=True)) / spread).ravel()[:, None]
        ratio = np.exp(new - old)
        clipped = np.clip(ratio, 1 - run.epsilon, 1 + run.epsilon)
        flows = (ratio * advantages <= clipped * advantages) * ratio * advantages
        step = -np.exp(current) * flows[..., None]
        np.put_along_axis(
            step, tokens[..., None], np.take_along_axis(step, tokens[..., None], -1) + flows[..., None], axis=-1
        )
        np.add.at(policy, prompts, run.learning_rate * step / (run.temperature * len(prompts)))
        history.append(policy.copy())
        log_ratio = new - old
        yield {
            "rl/reward": rewards.mean(),
            "rl/entropy": -(np.exp(current) * current).sum(axis=-1).mean(),
            "rl/kl_new_old": (np.expm1(log_ratio) - log_ratio).mean(),
            "rl/mean_abs_log_ratio_new_old": np.abs(log_ratio).mean(),
            "rl/ratio_new_old": ratio.mean(),
            "rl/clamp_log_ratio_new_old_indicator": (clipped != ratio).mean(),
        }


def first_policy():
    return 0.8 * np.random.default_rng(12).standard_normal((PROMPTS, LENGTH, TOKENS))


def log_lines(run, generator):
    """The run's log: one line per step, values as printed strings."""
    for step, metrics in enumerate(train(run, generator, first_policy()), start=1):
        said = {name: f"{value:.4g}" for name, value in metrics.items()}
        yield f"[finetune]: 2026-05-05 12:00:00,000 - finetune_loop - INFO - Completed steps {step}: {said}"
