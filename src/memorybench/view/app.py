"""The web application: routes, templates and error pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from markupsafe import Markup
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Route

from memorybench import __version__
from memorybench.core.errors import MemorybenchError
from memorybench.reporting.html import STYLE, environment

from .jobs import Pending
from .pages import compare, history, question, questions, run, runs, trends
from .results import NotFound, Results, run_url, with_query
from .security import Guard

HERE = Path(__file__).parent
FILES = {
    "style.css": (STYLE, "text/css; charset=utf-8"),
    "htmx.min.js": (HERE / "static" / "htmx.min.js", "text/javascript; charset=utf-8"),
    "icon.svg": (HERE / "static" / "icon.svg", "image/svg+xml"),
    "view.js": (HERE / "static" / "view.js", "text/javascript; charset=utf-8"),
}
"""The only files that are served, by name."""
_PARTS = ("/progress", "/charts")
"""Ends of the paths of requests that load only a part of a page."""
PAGES: dict[str, Callable[[Request], Response]] = {
    "/": runs.page,
    "/compare": compare.page,
    "/trends": trends.page,
    "/run/{place:int}/{run}": run.page,
    "/run/{place:int}/{run}/progress": run.progress,
    "/run/{place:int}/{run}/charts": run.charts,
    "/run/{place:int}/{run}/questions": questions.page,
    "/run/{place:int}/{run}/question": question.page,
    "/run/{place:int}/{run}/history": history.page,
}


def create_app(
    folders: Sequence[Path],
    *,
    host: str = "127.0.0.1",
    token: str | None = None,
    redact: Callable[[str], str] = str,
) -> Starlette:
    """Return the web application that shows the runs in these results folders. `redact` removes secrets from pages."""
    results = Results(folders)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        results.close()

    errors: dict[Any, Any] = {
        Pending: _pending,
        NotFound: _not_found,
        HTTPException: _not_found,
        MemorybenchError: _cannot_read,
        Exception: _unexpected,
    }
    routes = [Route(path, page, methods=["GET"]) for path, page in PAGES.items()]
    routes.append(Route("/static/{name}", _static, methods=["GET"]))
    guard = Middleware(Guard, host=host, token=token)
    app = Starlette(routes=routes, middleware=[guard], exception_handlers=errors, lifespan=lifespan)
    app.state.results = results
    app.state.templates = templates = environment(HERE / "templates", redact=redact)
    templates.globals |= {
        "run_url": run_url,
        "with_query": with_query,
        "version": __version__,
        "drawing": lambda svg: Markup(redact(svg)),  # noqa: S704  made by our renderer, escaped
    }
    return app


def _static(request: Request) -> Response:
    found = FILES.get(request.path_params["name"])
    if found is None:
        raise NotFound("the viewer has no file of this name")
    return FileResponse(found[0], media_type=found[1])


def _error(request: Request, status: int, title: str, text: str) -> Response:
    template = request.app.state.templates.get_template("error.html")
    # a part that fails unexpectedly may fail again each time, so the browser is not told to reload the page
    headers = {} if status == 500 and _is_part(request) else _opening_headers(request)
    return HTMLResponse(template.render(title=title, text=text, here=""), status, headers)


def _is_part(request: Request) -> bool:
    return request.url.path.endswith(_PARTS)


def _opening_headers(request: Request) -> dict[str, str]:
    """Return headers that make htmx load a whole page instead of inserting the response into the page that is shown.

    Return {} if the request is not from htmx.
    """
    if "hx-request" not in request.headers:
        return {}
    if _is_part(request):
        return {"HX-Refresh": "true"}
    return {"HX-Redirect": f"{request.url.path}?{request.url.query}"}


def _pending(request: Request, error: Exception) -> Response:
    template = request.app.state.templates.get_template("pending.html")
    headers = _opening_headers(request) or {"Refresh": "1"}
    return HTMLResponse(template.render(here=""), 202, headers)


def _not_found(request: Request, error: Exception) -> Response:
    detail = error.detail if isinstance(error, HTTPException) else str(error)
    status = error.status_code if isinstance(error, HTTPException) else 404
    return _error(request, status, "Not found" if status == 404 else "Refused", detail)


def _cannot_read(request: Request, error: Exception) -> Response:
    return _error(request, 422, "This cannot be shown", str(error))


def _unexpected(request: Request, error: Exception) -> Response:
    text = f"unexpected {type(error).__name__}: {error}; please report it"
    return _error(request, 500, "This page failed", text)
