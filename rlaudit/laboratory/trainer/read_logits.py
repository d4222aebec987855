"""Reads logprobs, ranks, entropy and support masses from rows of logits, a block of rows at a time.

Part of the scoring script: it runs inside the trainer's interpreter (torch, numpy, Python 3.9 syntax, no
rlaudit).

The sampler's order is vLLM's (v1/sample/sampler.py): bias, penalties, temperature, min_p, top-k, top-p. Every
filter keeps a prefix of the tokens sorted by logit, so one partial sort serves all of them. Ties at the edge
of a nucleus are kept whole here; vLLM keeps those that its sort puts first, and its Triton and PyTorch kernels
differ in that.

Support grids stop at the `SORTED` most probable tokens: a set that reaches further counts as the whole
vocabulary (mass 1). That makes the support tests conservative.
"""

import numpy as np
import torch

SORTED = 512
WIDER = 8192
# Rows per block: a few copies of a block fit a CPU's last-level cache, which saves more than fewer calls do.
CPU_BLOCK = 32
NO_PENALTIES = (1.0, 0.0, 0.0)
UNCHANGED = ((), NO_PENALTIES)
# Temperatures whose inverse is a multiple of this cost a multiplication instead of an exponential per logit.
INVERSE_TEMPERATURE_STEP = 0.125


class Request:
    """One meaning that a reported logprob may have; fields as in the job's `candidates`."""

    def __init__(self, wanted):
        self.temperature = float(wanted.get("temperature", 1.0))
        self.top_k = int(wanted.get("top_k") or 0)
        self.top_p = float(wanted.get("top_p", 1.0))
        self.min_p = float(wanted.get("min_p") or 0.0)
        self.penalties = (
            float(wanted.get("repetition_penalty", 1.0)),
            float(wanted.get("presence_penalty") or 0.0),
            float(wanted.get("frequency_penalty") or 0.0),
        )
        self.bias = tuple((int(token), float(added)) for token, added in wanted.get("logit_bias") or ())
        if not self.temperature > 0:
            raise ValueError(f"temperature must be above 0: a greedy choice has no distribution (got {wanted!r})")
        self.filtered = self.top_k > 0 or self.top_p < 1.0 or self.min_p > 0.0


class Context:
    """The input of penalties: the rows of a block that belong to one sequence, and the tokens before each."""

    def __init__(self, rows, prompt_ids, output_ids, first_output):
        self.rows, self.first_output = rows, first_output
        self.prompt_ids, self.output_ids = prompt_ids, output_ids

    def seen(self, device):
        """Return distinct earlier ids (U,), whether the prompt has each (U,), output counts before each row (N, U)."""
        last = self.first_output + (self.rows.stop - self.rows.start)
        ids, place = np.unique(np.concatenate([self.prompt_ids, self.output_ids[:last]]), return_inverse=True)
        in_prompt = np.zeros(len(ids), dtype=bool)
        in_prompt[place[: len(self.prompt_ids)]] = True
        outputs = place[len(self.prompt_ids) :]
        counts = np.zeros((last - self.first_output, len(ids)), dtype=np.float32)
        counts[0] = np.bincount(outputs[: self.first_output], minlength=len(ids))
        for row in range(1, len(counts)):
            counts[row] = counts[row - 1]
            counts[row, outputs[self.first_output + row - 1]] += 1
        return tuple(torch.from_numpy(array).to(device) for array in (ids, in_prompt, counts))


def add_bias(logits, bias):
    """Add to the logits of some token ids, in place."""
    for token, added in bias:
        logits[:, token] += added


def penalise(logits, contexts, penalties):
    """Apply vLLM's penalties in place: repetition over prompt and output, the other two over the output."""
    repetition, presence, frequency = penalties
    for context in contexts:
        ids, in_prompt, counts = context.seen(logits.device)
        rows = logits[context.rows]
        before = rows[:, ids]
        repeated = torch.where(before > 0, before / repetition, before * repetition)
        after = torch.where(in_prompt | (counts > 0), repeated, before)
        rows[:, ids] = after - frequency * counts - presence * (counts > 0)


def kept_prefix(ordered, request, log_total):
    """Return where a request's filters cut: smallest kept value, log of the kept mass, whether the cut was reached.

    ordered (N, K): logits minus their row's maximum, descending. log_total (N,): logsumexp of the whole row
    at the request's temperature, in the same units.
    """
    scaled = ordered / request.temperature
    keep = torch.ones_like(scaled, dtype=torch.bool)
    if request.min_p > 0.0:
        keep &= scaled >= float(np.log(request.min_p))
    if 0 < request.top_k <= scaled.shape[1]:
        keep &= scaled >= scaled[:, request.top_k - 1 : request.top_k]
    mass = scaled.exp() * keep
    if request.top_p < 1.0:
        through = mass.cumsum(-1)
        total = torch.where(keep[:, -1], log_total.exp(), through[:, -1])
        if request.top_k > 0:
            total = through[:, -1]
        keep &= (through - mass) < request.top_p * total[:, None]
        keep[:, 0] = True
        mass = mass * keep
    last = keep.sum(-1, keepdim=True) - 1
    return ordered.gather(1, last)[:, 0], mass.sum(-1).log(), ~keep[:, -1]


class LogitReader:
    """Turns rows of raw logits into the arrays of scores.npz. Built once per job."""

    def __init__(self, job):
        neutral = {"repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "logit_bias": ()}
        self.trainer = Request({**job, **neutral})
        self.requests = [Request(wanted) for wanted in job.get("candidates") or []]
        self.nucleus_grid = [float(c) for c in job.get("nucleus_grid") or []]
        self.top_k_grid = [int(k) for k in job.get("top_k_grid") or []]
        self.min_p_grid = [float(m) for m in job.get("min_p_grid") or []]
        self.top = int(job.get("top_logprobs") or 0)
        self.groups = {}
        for column, request in enumerate(self.requests):
            self.groups.setdefault((request.bias, request.penalties), []).append((column, request))
        cuts = [request.top_k for request in [*self.requests, self.trainer]] + self.top_k_grid
        self.sorted = max([SORTED] + [k + 1 for k in cuts])

    def columns(self):
        """Return name, trailing shape and numpy type of every array this reader yields."""
        flat = ["trainer_logprobs", "entropy", "mass_above", "max_probability"]
        shapes = dict.fromkeys(flat, ((), np.float32))
        shapes["rank"] = ((), np.int32)
        shapes["candidate_logprobs"] = ((len(self.requests),), np.float32)
        shapes["nucleus_mass"] = ((len(self.nucleus_grid),), np.float32)
        shapes["top_k_mass"] = ((len(self.top_k_grid),), np.float32)
        shapes["min_p_mass"] = ((len(self.min_p_grid),), np.float32)
        shapes["top_ids"] = ((self.top,), np.int32)
        shapes["top_logprobs"] = ((self.top,), np.float32)
        return shapes

    def read(self, logits, token_ids, contexts):
        """Read one block: logits (N, V), raw float32, overwritten; token_ids (N,); a list of Context."""
        readings = {}
        scratch = torch.empty_like(logits)
        tokens = token_ids[:, None]
        if self.requests:
            logprobs = torch.empty((len(tokens), len(self.requests)), dtype=torch.float32, device=logits.device)
            for (bias, penalties), members in self.groups.items():
                if (bias, penalties) != UNCHANGED:
                    scratch.copy_(logits)
                    add_bias(scratch, bias)
                    if penalties != NO_PENALTIES:
                        penalise(scratch, contexts, penalties)
                    self._fill_candidates(scratch.sub_(scratch.amax(-1, keepdim=True)), tokens, members, logprobs)
        logits.sub_(logits.amax(-1, keepdim=True))
        if self.requests:
            self._fill_candidates(logits, tokens, self.groups.get(UNCHANGED, ()), logprobs)
            readings["candidate_logprobs"] = logprobs
        readings.update(self._read_trainer(logits, scratch, tokens))
        return {name: array.cpu().numpy() for name, array in readings.items()}

    def _fill_candidates(self, shifted, tokens, members, logprobs):
        """Fill the columns of candidates with equal bias and penalties from logits minus their maximum."""
        if not members:
            return
        log_totals = log_totals_at(shifted, sorted({request.temperature for _, request in members}))
        logits_of_tokens = shifted.gather(1, tokens)[:, 0]
        ordered = None
        for column, request in members:
            log_total = log_totals[request.temperature]
            if not request.filtered:
                logprobs[:, column] = logits_of_tokens / request.temperature - log_total
                continue
            if ordered is None:
                ordered = shifted.topk(min(self.sorted, shifted.shape[1]), dim=-1).values
            cut, log_kept = self._cut(shifted, ordered, request, log_total)
            logprob = logits_of_tokens / request.temperature - log_kept
            logprobs[:, column] = torch.where(logits_of_tokens >= cut, logprob, torch.full_like(logprob, -float("inf")))

    def _cut(self, shifted, ordered, request, log_total):
        """Return smallest kept value and log of the kept mass (N,), sorting more tokens of rows that need them."""
        cut, log_kept, reached = kept_prefix(ordered, request, log_total)
        width = ordered.shape[1]
        while width < shifted.shape[1] and not bool(reached.all()):
            width = min(WIDER if width < WIDER else shifted.shape[1], shifted.shape[1])
            short = (~reached).nonzero()[:, 0]
            wider = shifted[short].topk(width, dim=-1).values
            cut[short], log_kept[short], reached[short] = kept_prefix(wider, request, log_total[short])
        return cut, log_kept

    def _read_trainer(self, shifted, scratch, tokens):
        """Read the trainer's distribution, at its temperature and behind its filters; overwrites `shifted`."""
        trainer, filtered = self.trainer, None
        if trainer.filtered:
            log_total = log_totals_at(shifted, [trainer.temperature])[trainer.temperature]
            ordered = shifted.topk(min(self.sorted, shifted.shape[1]), dim=-1).values
            cut, _ = self._cut(shifted, ordered, trainer, log_total)
            filtered = shifted < cut[:, None]
        if trainer.temperature != 1.0:
            shifted.div_(trainer.temperature)
        if filtered is not None:
            # Finite, so that 0 * logit stays 0 in the entropy; its exponential is 0 exactly.
            shifted.masked_fill_(filtered, -1e4)
        logits_of_tokens = shifted.gather(1, tokens)
        torch.exp(shifted, out=scratch)
        total = scratch.sum(-1)
        readings = {"max_probability": 1.0 / total}
        logprob = logits_of_tokens[:, 0] - total.log()
        readings["trainer_logprobs"] = logprob.masked_fill(logits_of_tokens[:, 0] <= -1e4, -float("inf"))
        if self.top:
            values, ids = shifted.topk(self.top, dim=-1)
            readings["top_ids"] = ids.to(torch.int32)
            readings["top_logprobs"] = values.sub_(total.log()[:, None]).masked_fill_(values < -5e3, -float("inf"))
        if self.nucleus_grid or self.top_k_grid or self.min_p_grid:
            ordered = shifted.topk(min(self.sorted, shifted.shape[1]), dim=-1).values
            readings.update(self._supports(ordered, total, ordered.shape[1] == shifted.shape[1]))
        above = shifted.gt(logits_of_tokens)
        readings["rank"] = count_true(above) + 1
        readings["mass_above"] = torch.where(above, scratch, scratch.new_zeros(())).sum(-1) / total
        readings["entropy"] = total.log() - shifted.mul_(scratch).sum(-1) / total
        return readings

    def _supports(self, ordered, total, whole):
        """Return the mass of the set that each grid point keeps, from scaled logits (N, K), descending."""
        mass = ordered.exp() / total[:, None]
        through = mass.cumsum(-1)
        # Tied logits share the mass above them: bf16 heads tie often, and calling one of a pair less extreme
        # than the other would make the support tests depend on the order of a sort.
        fresh = torch.ones_like(ordered, dtype=torch.bool)
        fresh[:, 1:] = ordered[:, 1:] < ordered[:, :-1]
        places = torch.arange(ordered.shape[1], device=ordered.device).expand_as(ordered)
        start = torch.where(fresh, places, torch.zeros_like(places)).cummax(-1).values
        above = (through - mass).clamp_(min=0.0).gather(1, start)

        def mass_of(keep):
            """Return the mass of the kept prefix; 1 if it may reach beyond the sorted tokens."""
            inside = (mass * keep).sum(-1).clamp_(max=1.0)
            return inside if whole else torch.where(keep[:, -1], torch.ones_like(inside), inside)

        masses = {}
        if self.nucleus_grid:
            masses["nucleus_mass"] = torch.stack([mass_of(above <= c) for c in self.nucleus_grid], -1)
        if self.top_k_grid:
            # A token's rank is one more than the number strictly above it, so a tie at rank k is kept whole.
            masses["top_k_mass"] = torch.stack([mass_of(start < k) for k in self.top_k_grid], -1)
        if self.min_p_grid:
            masses["min_p_mass"] = torch.stack([mass_of(ordered >= float(np.log(m))) for m in self.min_p_grid], -1)
        return masses


def count_true(marks):
    """Return row counts of a boolean matrix, by a float sum: on CPU torch vectorises that, but no integer sum."""
    return marks.sum(-1, dtype=torch.float32).to(torch.int32)


def log_totals_at(shifted, temperatures):
    """Return logsumexp(shifted / T) for each T, as {T: (N,)}; shifted (N, V) has row maximum 0.

    exp(z k/8) is the k-th power of exp(z/8): a grid that is even in 1/T costs one exponential in all.
    """
    steps = {}
    totals = {}
    power = torch.empty_like(shifted)
    for temperature in temperatures:
        step = 1.0 / (temperature * INVERSE_TEMPERATURE_STEP)
        if len(temperatures) > 2 and abs(step - round(step)) < 1e-6 and round(step) >= 1:
            steps[round(step)] = temperature
        else:
            torch.mul(shifted, 1.0 / temperature, out=power)
            totals[temperature] = power.exp_().sum(-1).log()
    if steps:
        unit = (shifted * INVERSE_TEMPERATURE_STEP).exp_()
        power.copy_(unit)
        for step in range(1, max(steps) + 1):
            if step > 1:
                power.mul_(unit)
            if step in steps:
                totals[steps[step]] = power.sum(-1).log()
    return totals
