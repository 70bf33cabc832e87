"""Reads results that a service returns in pages: by cursor, offset or link."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from email.message import Message
from typing import Any

from msgspec import Struct, field
from yarl import URL

from memorybench.core.errors import ServiceError
from memorybench.core.records import digest
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document
from memorybench.http.replies import Reply
from memorybench.providers.config.requests import Pages

from .requests import parse_path
from .results import ResponseTemplate

_LINK = re.compile(r"""<(?P<url>[^>]*)>(?P<parameters>(?:[^,<"]|"(?:[^"\\]|\\.)*")*)""")
"""Pattern for one link in the header Link (RFC 8288); quoted parameters may contain commas."""

SendPage = Callable[[Mapping[str, Any], str | None], Awaitable[Reply | None]]
"""A function that requests a page. Arguments: the variables of the request, and the URL of the page (None: the URL of
the template). Returns None if the service replied with an error status that the config accepts.
"""


class PageTemplate(Struct, frozen=True):
    """How pages are requested: the section `pages` of the config, with its paths parsed."""

    config: Pages
    next: Path | None
    more: Path | None

    @classmethod
    def parse(cls, part: Document, pages: Pages) -> PageTemplate:
        return cls(pages, parse_path(pages.next, part.where("next")), parse_path(pages.more, part.where("more")))


class PageProgress(Struct):
    """The pages that a search has read so far. A retry after an error continues after them, because a page may cost
    money."""

    results: list[tuple[Reply, Any]] = field(default_factory=list)
    pages: int = 0
    received: int = 0
    """Number of results on all pages, including repeated ones."""
    cursor: str | int | None = None
    url: str | None = None
    is_complete: bool = False
    ids: set[str] = field(default_factory=set)
    seen: dict[str, int] = field(default_factory=dict)
    """Maps each list of results (as a digest), cursor and link to the number of the page where it first occurred. If
    one occurs on a second page, reading would never end."""


async def read_pages(
    template: PageTemplate, response: ResponseTemplate, progress: PageProgress, limit: int | None, send: SendPage
) -> bool:
    """Read pages into `progress` until it has `limit` results (None: no limit) or there are no more pages.

    Return True if reading stopped before that, because `maxPages` pages had been read; otherwise False.
    """
    while not progress.is_complete and (limit is None or len(progress.results) < limit):
        if progress.pages >= template.config.max_pages:
            return True
        variables: dict[str, Any] = {
            "cursor": progress.cursor,
            "offset": progress.received,
            "page": template.config.first_page + progress.pages,
        }
        if limit is not None:
            variables["limit"] = min(limit, template.config.size or limit)
        reply = await send(variables, progress.url)
        if reply is None:
            progress.is_complete = True
        else:
            _read_page(template, response, progress, reply)
    return False


def _read_page(template: PageTemplate, response: ResponseTemplate, progress: PageProgress, reply: Reply) -> None:
    """Add the results of the page in `reply` to `progress`. If it is invalid, raise Malformed and add nothing."""
    results, number = response.read_results(reply), progress.pages + 1
    if results:
        _check_new(progress, f"results {digest(results)}", number, reply, "results")
    is_last = template.more is not None and not _read_more(template.more, reply)
    cursor: str | int | None = None
    url: str | None = None
    if not is_last and template.config.by == "cursor":
        assert template.next is not None
        cursor = _read_next(template.next, reply)
        is_last = cursor is None
    elif not is_last and template.config.by == "link":
        url = _read_link(template.next, reply)
        is_last = url is None
    elif not is_last and not results:
        if template.more is not None:
            raise reply.malformed(f"page {number} is empty, but {template.more.text} says that there are more pages")
        is_last = True
    if not is_last and template.config.by != "offset":
        _check_new(progress, f"next {cursor!r} {url}", number, reply, template.config.by)
    earlier = frozenset(progress.ids)
    for result in results:
        id = response.id_of(result)
        if id is None or str(id) not in earlier:  # results may move to another page between two requests
            progress.ids.add(str(id))
            progress.results.append((reply, result))
    progress.received += len(results)
    progress.pages, progress.cursor, progress.url, progress.is_complete = number, cursor, url, is_last


def _check_new(progress: PageProgress, mark: str, number: int, reply: Reply, what: str) -> None:
    earlier = progress.seen.setdefault(mark, number)
    if earlier != number:
        # reading on would never end, and the results would count twice
        raise reply.malformed(f"page {number} has the same {what} as page {earlier}, so that reading would never end")


def _read_more(path: Path, reply: Reply) -> bool:
    value = path.first(reply.json())
    if not isinstance(value, bool):
        raise reply.malformed(
            f"invalid value at {path.text}, which says whether there are more pages; expected true or false"
        )
    return value


def _read_next(path: Path, reply: Reply) -> str | int | None:
    value = path.first(reply.json())
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise reply.malformed(f"invalid cursor of the next page at {path.text}; expected a text or a whole number")
    return value


def _next_link(reply: Reply) -> str | None:
    """Return the URL of the first link in the header `Link` with the relation `next`; None if there is none."""
    # the header may occur several times, which means the same as one with commas
    header = ", ".join(value for name, value in reply.headers.items() if name.lower() == "link")
    for link in _LINK.finditer(header):
        parsed = Message()
        parsed["Link"] = f"link{link['parameters']}"
        relations = parsed.get_param("rel", header="Link")
        if isinstance(relations, str) and "next" in relations.lower().split():
            return link["url"]
    return None


def _read_link(path: Path | None, reply: Reply) -> str | None:
    """Return the URL of the next page, at `path` in the reply or (None) in the header Link; None on the last page.

    Raise ServiceError if the URL is on another server, because the request would send credentials there.
    """
    if path is None:
        value: Any = _next_link(reply)
    else:
        value = path.first(reply.json())
    if value is None or value == "":
        return None
    where = "the header Link" if path is None else path.text
    try:
        url = reply.url.join(URL(value))
    except (TypeError, ValueError):
        raise reply.malformed(f"invalid link to the next page at {where}; expected a URL") from None
    if url.origin() != reply.url.origin():
        raise ServiceError(
            f"{reply.where}: the link to the next page at {where} leads to another server and is not followed"
        )
    return str(url)
