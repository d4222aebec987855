"""Posts a report of `rlaudit inspect --bump` as one comment of the pull request, and updates it from then on.

    python pull_request_comment.py REPORT.md REPORT.json

For action.yml, with nothing but what a runner has: the standard library and the job's token, which needs the permission
`pull-requests: write`. The comment is known by a mark that nobody sees. Where no pin moves and no comment was made,
none is. A token that may not write (pull requests from forks) is said and fails nothing.
"""

import json
import os
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MARK = "<!-- rlaudit: bump -->"
LONGEST = 65_000  # GitHub refuses 65 536 characters
PER_PAGE = 100
SECONDS = 30


def main() -> None:
    """Create, update, or leave it."""
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    if "pull_request" not in event:
        print("rlaudit: no pull request, so no comment")
        return
    text, report = (Path(path).read_text(encoding="utf-8") for path in sys.argv[1:3])
    moves = bool(json.loads(report).get("bump", {}).get("moves"))
    comments = f"/repos/{os.environ['GITHUB_REPOSITORY']}/issues/{event['pull_request']['number']}/comments"
    try:
        post(comments, body_of(text), moves)
    except urllib.error.HTTPError as error:
        if error.code not in (401, 403, 404):
            raise
        print(f"::warning::rlaudit: no comment was written, GitHub answered {error.code}: the job needs the permission "
              "pull-requests: write, which pull requests from forks do not have")  # fmt: skip


def post(comments: str, body: str, moves: bool) -> None:
    """Update our comment where there is one, create it where a pin moves."""
    ours = next((one for one in listed(comments) if is_ours(one)), None)
    if ours is not None and ours["body"].replace("\r\n", "\n") != body:
        asked("PATCH", f"/repos/{os.environ['GITHUB_REPOSITORY']}/issues/comments/{ours['id']}", {"body": body})
    elif ours is None and moves:
        asked("POST", comments, {"body": body})


def is_ours(comment: dict[str, Any]) -> bool:
    """A person can copy the mark, and would own what is written there."""
    return comment["body"].startswith(MARK) and comment["user"]["type"] == "Bot"


def body_of(text: str) -> str:
    """The report with its mark, in a comment's length; nobody is called by words of a config."""
    text = re.sub(r"@(?=\w)", "@\u200b", text)
    if len(text) > LONGEST:
        url = "{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_ID}".format_map(os.environ)
        kept = text[:LONGEST].rpartition("\n")[0]
        # What stays open would fold the line below away.
        kept += "\n\n</details>" * (kept.count("\n<details>") - kept.count("\n</details>"))
        text = f"{kept}\n\n*Cut here: the whole report is in the [summary of the run]({url}).*\n"
    return f"{MARK}\n{text}".rstrip()


def listed(path: str) -> Iterator[dict[str, Any]]:
    """Every comment, page by page."""
    page = 1
    while found := asked("GET", f"{path}?per_page={PER_PAGE}&page={page}"):
        yield from found
        if len(found) < PER_PAGE:
            return
        page += 1


def asked(method: str, path: str, data: dict[str, str] | None = None) -> Any:
    """What the API answers. Raises urllib.error.URLError."""
    request = urllib.request.Request(
        os.environ["GITHUB_API_URL"] + path,
        method=method,
        data=json.dumps(data).encode() if data is not None else None,
        headers={"Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}", "Accept": "application/vnd.github+json",
                 "Content-Type": "application/json"},
    )  # fmt: skip
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        return json.load(answer)


if __name__ == "__main__":
    main()
