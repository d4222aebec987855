"""The asynchronous front end: only what the recorder hooks of it."""


class AsyncLLM:
    def __init__(self, core):
        self.core = core

    async def pause_generation(self, *, mode="abort", clear_cache=True):
        self.core.pause_scheduler(mode, clear_cache)

    async def resume_generation(self):
        self.core.resume_scheduler()
