"""One request to an engine, with the version of the weights that sampled each of its tokens. Loaded by
update_weights.py.

Python 3.9 syntax, standard library only.
"""

import asyncio
import time


class Flight:
    """One request: what it was asked, and what came back when."""

    def __init__(self, session, step, request):
        self.run, self.request, self.max_tokens = step["run"], request, step["max_tokens"]
        self.token_ids, self.logprobs, self.deltas = [], [], []
        self.cached_tokens, self.finish_reason, self.error, self.ends = None, None, None, 0
        self.lost, self.surplus_logprobs = False, 0
        self.submitted, self.finished_at = session.version, None
        self.session, self.first_window = session, len(session.windows)
        self.id = "%s/%s/%d/%d" % (session.case, step["run"], request["prompt"], request["sample"])
        sampling = dict(session.job["sampling"], max_tokens=self.max_tokens, seed=request["seed"], logprobs=1)
        tokens = session.job["prompt_token_ids"][request["prompt"]]
        self.task = asyncio.ensure_future(self.fly(session.engine, tokens, sampling))

    @property
    def ended(self):
        """Whether nothing more will come."""
        return self.task.done()

    async def fly(self, engine, tokens, sampling):
        """Run the request; an error is kept with it."""
        try:
            await engine.generate(self.id, tokens, sampling, self.take)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self.error = describe_error(error)

    def take(self, output):
        """One output of the engine: new tokens, and at the end how it ended."""
        completion = output.outputs[0]
        ids = list(completion.token_ids)
        at = time.monotonic()
        logprobs = list(completion.logprobs or [])
        if len(logprobs) < len(ids):
            raise RuntimeError("an output had %d tokens and %d logprobs" % (len(ids), len(logprobs)))
        for token, position in zip(ids, logprobs):
            self.token_ids.append(token)
            self.logprobs.append(position[token].logprob)
        # V1 ends an aborted request with no tokens and, in place of none, all logprobs of the request once more
        # (vllm/v1/engine/output_processor.py of 0.18.1 slices them with [-0:]): whoever appends deltas has them twice.
        self.surplus_logprobs += len(logprobs) - len(ids)
        self.deltas.append((at, len(ids)))
        if output.num_cached_tokens is not None and self.cached_tokens is None:
            self.cached_tokens = output.num_cached_tokens
        if completion.finish_reason is not None:
            self.ends += 1
            self.finish_reason = completion.finish_reason
            self.finished_at = self.session.version

    def row(self, session):
        """What is kept of the request."""
        return {
            "case": session.case,
            "run": self.run,
            "prompt": self.request["prompt"],
            "sample": self.request["sample"],
            "max_tokens": self.max_tokens,
            "token_ids": self.token_ids,
            "logprobs": self.logprobs,
            "versions": self.token_versions(session.windows[self.first_window :]),
            "cached_tokens": self.cached_tokens,
            "finish_reason": self.finish_reason,
            "ends": self.ends,
            "surplus_logprobs": self.surplus_logprobs,
            "lost": self.lost,
            "error": self.error,
            "submitted": self.submitted,
            "finished": self.finished_at,
        }

    def token_versions(self, windows):
        """The version of each token by the time it arrived; None for one that came while an update ran."""
        versions = []
        for at, count in self.deltas:
            current = self.submitted
            for begun, done, version in windows:
                if at > done:
                    current = version
                elif at > begun:
                    current = None
            versions.extend([current] * count)
        return versions


def describe_error(error):
    """Type and first words of an error, on one line."""
    return " ".join(("%s: %s" % (type(error).__name__, error)).split())[:600]
