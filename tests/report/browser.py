"""A Chromium that is on the machine, driven without a network; None where there is none."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium() -> str | None:
    """The first that is found."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@contextmanager
def started() -> Iterator[Any]:
    """A headless browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS), timeout=0)
        try:
            yield browser
        finally:
            browser.close()


class Page:
    """One page, opened at a width in a colour scheme, with everything it said and asked for."""

    def __init__(self, browser: Any, path: Path, width: int, scheme: str, scripts: bool) -> None:
        self._context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts
        )
        self._context.set_default_timeout(0)  # pytest-timeout ends what hangs
        self.page = self._context.new_page()
        self.said: list[str] = []
        self.asked_for: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.said.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked_for.append(request.url))
        self.page.goto(path.as_uri())
        self.asked_for.remove(path.as_uri())

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression, also where the page itself may run none."""
        return self.page.evaluate(expression)

    def close(self) -> None:
        """Forget the page."""
        self._context.close()
