"""Objectives, corrections and logged metrics against the formulas written out token by token.

Needs torch in the interpreter that runs the tests, as a trainer's environment has it.
"""

import importlib.util
import math
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="objectives need torch: run these tests in a trainer's environment")

TRAINER = Path(__file__).parents[2] / "rlaudit" / "laboratory" / "trainer"
CLIP = (0.1, 0.2)


def shipped(name):
    spec = importlib.util.spec_from_file_location(name.replace("/", "_"), TRAINER / (name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def batch():
    """log ratios (4, 5) of sequences of 5, 3, 1 and 4 tokens, their mask and advantages."""
    generator = torch.Generator().manual_seed(0)
    mask = (torch.arange(5)[None, :] < torch.tensor([5, 3, 1, 4])[:, None]).float()
    log_ratio = 0.3 * torch.randn(4, 5, generator=generator) * mask
    return log_ratio, torch.tensor([1.0, -0.5, 0.7, -1.2]), mask


def surrogate(ratio, advantage):
    low, high = CLIP
    return min(ratio * advantage, min(max(ratio, 1 - low), 1 + high) * advantage)


def sequences(log_ratio, mask):
    return [row[keep > 0].tolist() for row, keep in zip(log_ratio, mask, strict=True)]


def test_gspo_clips_the_geometric_mean_of_a_sequence(batch):
    log_ratio, advantages, mask = batch
    expected = [
        surrogate(math.exp(sum(row) / len(row)), float(advantage))
        for row, advantage in zip(sequences(log_ratio, mask), advantages, strict=True)
    ]
    loss, clipped = shipped("objectives/gspo").loss(log_ratio, advantages, mask, CLIP, mask)
    assert float(loss) == pytest.approx(-sum(expected) / 4, rel=1e-6)
    # A sequence is clipped as a whole, and what is padding never is.
    for row, keep in zip(clipped, mask, strict=True):
        assert set(row[keep > 0].tolist()) in ({0.0}, {1.0})
        assert row[keep == 0].sum() == 0


def test_grpo_is_the_mean_over_sequences_of_the_mean_over_tokens(batch):
    log_ratio, advantages, mask = batch
    expected = [
        sum(surrogate(math.exp(value), float(advantage)) for value in row) / len(row)
        for row, advantage in zip(sequences(log_ratio, mask), advantages, strict=True)
    ]
    loss, clipped = shipped("objectives/grpo").loss(log_ratio, advantages, mask, CLIP, mask)
    assert float(loss) == pytest.approx(-sum(expected) / 4, rel=1e-6)
    outside = [not 1 - CLIP[0] <= math.exp(value) <= 1 + CLIP[1] for row in sequences(log_ratio, mask) for value in row]
    assert float(clipped.sum()) == sum(outside)


def test_ppo_is_the_mean_over_all_tokens(batch):
    log_ratio, advantages, mask = batch
    terms = [
        surrogate(math.exp(value), float(advantage))
        for row, advantage in zip(sequences(log_ratio, mask), advantages, strict=True)
        for value in row
    ]
    loss, _ = shipped("objectives/ppo").loss(log_ratio, advantages, mask, CLIP, mask)
    assert float(loss) == pytest.approx(-sum(terms) / len(terms), rel=1e-6)


@pytest.mark.parametrize("name", ["gspo", "grpo", "ppo"])
def test_at_a_ratio_of_one_every_objective_has_the_gradient_of_the_policy(name, batch):
    _, advantages, mask = batch
    log_ratio = torch.zeros(4, 5, requires_grad=True)
    loss, clipped = shipped("objectives/" + name).loss(log_ratio, advantages, mask, CLIP, mask)
    loss.backward()
    lengths = mask.sum(1, keepdim=True)
    weight = mask / mask.sum() if name == "ppo" else mask / lengths / 4
    assert torch.allclose(log_ratio.grad, -advantages[:, None] * weight, atol=1e-7)
    assert float(clipped.sum()) == 0


@pytest.mark.parametrize("name", ["gspo", "grpo", "ppo"])
def test_padding_decides_nothing(name, batch):
    log_ratio, advantages, mask = batch
    objective = shipped("objectives/" + name)
    noisy = torch.where(mask > 0, log_ratio, torch.full_like(log_ratio, 3.0))
    weights = torch.where(mask > 0, mask, torch.full_like(mask, 5.0))
    clean = objective.loss(log_ratio, advantages, mask, CLIP, mask)[0]
    assert float(objective.loss(noisy, advantages, mask, CLIP, weights)[0]) == pytest.approx(float(clean), rel=1e-6)


def test_corrections_truncate_mask_and_cut_a_band():
    log_ratio = torch.log(torch.tensor([[0.25, 1.0, 4.0], [1.5, 1.2, 1.0]]))
    mask = torch.tensor([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
    tis = shipped("corrections/tis").weights(log_ratio, mask, 2.0)
    assert torch.allclose(tis, torch.tensor([[0.25, 1.0, 2.0], [1.5, 1.2, 0.0]]))
    mis = shipped("corrections/mis").weights(log_ratio, mask, 1.7)
    assert torch.allclose(mis, torch.tensor([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]))
    icepop = shipped("corrections/icepop").weights(log_ratio, mask, 2.0)
    assert torch.allclose(icepop, torch.tensor([[0.0, 1.0, 0.0], [1.5, 1.2, 0.0]]))


def test_metrics_are_pipelinerls():
    """finetune/rl/__init__.py: sum over sequences of the sum over tokens of x / num_labels, over the sequences."""
    metrics = shipped("training_metrics")
    generator = torch.Generator().manual_seed(1)
    mask = (torch.arange(4)[None, :] < torch.tensor([4, 2, 3])[:, None]).float()
    old = -torch.rand(3, 4, generator=generator)
    new = old + 0.2 * torch.randn(3, 4, generator=generator)
    entropy, clipped = torch.rand(3, 4, generator=generator), (torch.rand(3, 4, generator=generator) < 0.5).float()
    rewards = torch.tensor([1.0, 0.0, 0.5])
    row = metrics.step_metrics(new, old, entropy, rewards, clipped, mask)

    def by_sequence(values):
        return sum(sum(line) / len(line) for line in sequences(values, mask)) / 3

    log_ratio = new - old
    ratio = torch.exp(log_ratio)
    expected = {
        "rl/reward": 0.5,
        "rl/entropy": by_sequence(entropy),
        "rl/old_logprobs": by_sequence(old),
        "rl/new_logprobs": by_sequence(new),
        "rl/kl_new_old": by_sequence(ratio - log_ratio - 1),
        "rl/mean_abs_log_ratio_new_old": by_sequence(log_ratio.abs()),
        "rl/ratio_new_old": by_sequence(ratio),
        "rl/clamp_log_ratio_new_old_indicator": by_sequence(clipped),
        "rl/ess": float((ratio * mask).sum() ** 2 / (ratio**2 * mask).sum() / mask.sum()),
    }
    assert row == pytest.approx(expected, rel=1e-5)


def test_advantages_leave_the_rewarded_one_out_of_its_baseline():
    """finetune/rl/__init__.py, populate_rl_data: (r - mean of the others) / (std + 1e-4)."""
    rewards = torch.tensor([[1.0, 0.0, 0.5], [0.2, 0.2, 0.2]])
    found = shipped("training_metrics").advantages(rewards)
    spread = float(rewards[0].std()) + 1e-4
    assert found[0].tolist() == pytest.approx([0.75 / spread, -0.75 / spread, 0.0], abs=1e-6)
    assert found[1].tolist() == pytest.approx([0.0, 0.0, 0.0], abs=1e-3)


def test_rewards():
    assert shipped("rewards/token_share").reward([1, 2, 3], None, [1, 5, 3]) == pytest.approx(2 / 3)
    assert shipped("rewards/exact_match").reward([], " 12\n", 12) == 1.0
    assert shipped("rewards/last_number").reward([], "3 + 4 = 1,007.0", "1007") == 1.0
    assert shipped("rewards/last_number").reward([], "no number", "7") == 0.0


def test_a_reward_comes_as_text_and_is_run():
    source = "import math\n\ndef reward(token_ids, text, answer):\n    return math.exp(-len(token_ids))\n"
    found = shipped("train").rewarder({"name": "shortest", "source": source})
    assert found([1, 2], None, None) == pytest.approx(math.exp(-2))
