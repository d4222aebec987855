"""Are two parameters of one request reported as each of them is by itself? Temperature and top-k, in vLLM's order.

Of the k likeliest tokens every log probability is known then: log p / T less the log of what is kept.
"""

from dataclasses import replace

from rlaudit.arrays import Floats
from rlaudit.probe.answer import NotAnAnswer
from rlaudit.probe.change import Context, report_fit
from rlaudit.probe.changes import temperature, top_k
from rlaudit.probe.checked import Check, Checked, untold
from rlaudit.probe.observed import Observations
from rlaudit.probe.server import Refused, Server

T, K = 0.5, 3
PROMPTS = 3


def ask(server: Server, seen: Observations) -> Checked:
    """Ask for both, and hold the report against what each parameter was observed to be."""
    has_temperature, has_top_k = ("temperature" in seen.reported, "top_k" in seen.reported)
    farthest, prompts = 0.0, 0
    for observed in seen.open:
        weights_K = _expected(observed.context, has_temperature, has_top_k)
        if weights_K is None or prompts == PROMPTS:
            continue
        try:
            position = server.ask(observed.prompt, temperature=T, top_k=K).choices[0][0]
        except (Refused, NotAnAnswer, IndexError) as error:
            return untold(f"the server does not take temperature and top_k together: {error}")
        prompts += 1
        farthest = max(farthest, report_fit(observed.context, position, weights_K, cuts=has_top_k).applied)
    if not prompts:
        return untold("in no prompt do three tokens stand apart from the others")
    figures = {"distance, nats": min(farthest, 99.0), "prompts": float(prompts)}
    if farthest > seen.tolerance:
        return Checked(
            found=True,
            answer="temperature and top_k together are reported otherwise than each by itself",
            figures=figures,
        )
    return Checked(found=False, answer="temperature and top_k together are reported as each by itself", figures=figures)


def _expected(context: Context, has_temperature: bool, has_top_k: bool) -> Floats | None:
    """Return the log weights of a report that has these of the two; None if noise decides what is kept."""
    if top_k.applied(context, K) is None:
        return None
    heated = replace(context, logprobs_K=temperature.applied(context, T)) if has_temperature else context
    return top_k.applied(heated, K) if has_top_k else heated.logprobs_K


CHECK = Check("together", "Are two parameters of one request reported as each by itself?", ask)
