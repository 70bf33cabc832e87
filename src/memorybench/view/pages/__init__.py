"""One module per page. `page(request)` reads what the page needs and renders its template.

runs.py       all runs, with search, filters and progress
run.py        one run: its report, charts and failures
questions.py  the questions of a run, with search and filters
question.py   one question: memories, answers, verdicts and steps by provider
history.py    one conversation: sessions, turns, evidence, and who retrieved it
compare.py    runs or providers compared: differing settings, paired differences, questions
trends.py     one measure of a provider over all runs
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse

from memorybench.view.results import Results


def results_of(request: Request) -> Results:
    results: Results = request.app.state.results
    return results


def render(request: Request, template: str, /, **values: Any) -> HTMLResponse:
    text: str = request.app.state.templates.get_template(template).render(**values)
    return HTMLResponse(text.encode("utf-8", "replace"))


def number(request: Request, name: str) -> int:
    """Return a number from the query string; 0 if it is missing or invalid."""
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
