"""Letta, API v1 as its client 1 speaks it: archives and their passages, without an agent."""

from __future__ import annotations

from typing import Any

from tests.doubles.stub import Call

from .base import FAILING, LONG_AGO, Answer, Document, Refused, StandIn, body, checked, query, route

PASSAGE = {"text": str, "created_at?": str, "metadata?": dict, "tags?": list}


class Letta(StandIn):
    """Passages are embedded before the reply: there is nothing to wait for, and a failed embedding fails the add.

    A passage that is added twice is stored twice.
    """

    merges = False

    def __init__(self) -> None:
        super().__init__()
        self.polls = 0
        self._archives: dict[str, dict[str, Any]] = {}

    @route("GET", "/v1/archives/")
    def archives(self, call: Call) -> Any:
        parameters = query(call, {"name": str, "order?": {"asc", "desc"}, "limit?": str, "after?": str})
        if "after" in parameters:  # all there are stand on the first page
            return []
        named = [archive for archive in self._archives.values() if archive["name"] == parameters["name"]]
        return (named if parameters.get("order") == "asc" else named[::-1])[: int(parameters.get("limit", 50))]

    @route("POST", "/v1/archives/")
    def create(self, call: Call) -> Any:
        given = body(call, {"name": str, "description?": str, "embedding?": str})
        archive = {"id": f"archive-{self.new_id()}", "created_at": LONG_AGO, "name": given["name"]}
        self._archives[archive["id"]] = archive
        return archive

    @route("POST", "/v1/archives/{archive}/passages")
    def add(self, call: Call, archive: str) -> Any:
        self._check_archive(archive)
        return self._kept(archive, body(call, PASSAGE))

    @route("POST", "/v1/archives/{archive}/passages/batch")
    def add_batch(self, call: Call, archive: str) -> Any:
        self._check_archive(archive)
        passages = [checked(one, PASSAGE, "passages[]") for one in body(call, {"passages": list})["passages"]]
        return [self._kept(archive, passage) for passage in passages]

    @route("POST", "/v1/passages/search")
    def search(self, call: Call) -> Any:
        given = body(call, {"query": str, "archive_id": str, "limit?": int})
        self._check_archive(given["archive_id"])
        hits = self.found(given["archive_id"], given["query"], given.get("limit", 5))
        return [{"passage": _passage(hit.document), "score": hit.score, "metadata": None} for hit in hits]

    @route("DELETE", "/v1/archives/{archive}")
    def delete(self, call: Call, archive: str) -> Any:
        self._check_archive(archive)
        del self._archives[archive]
        self.forget(archive)
        return Answer(204)

    def _check_archive(self, archive: str) -> None:
        if archive not in self._archives:
            raise Refused(404, f"no archive {archive}")

    def _kept(self, archive: str, given: Any) -> Any:
        if FAILING in given["text"]:
            raise Refused(422, "the text cannot be embedded")
        id = f"passage-{self.new_id()}"
        document = Document(id, archive, (given["text"],), given.get("metadata") or {}, given.get("created_at"))
        self.ask_about(self.store(document))
        return _passage(document)


def _passage(document: Document) -> Any:
    owner = {"id": document.id, "archive_id": document.scope}
    return {**owner, "text": document.texts[0], "created_at": document.at, "metadata": document.metadata, "tags": None}
