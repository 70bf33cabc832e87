"""Supermemory, API v3 and v4 as its client 3 speaks them."""

from __future__ import annotations

import re
from typing import Any

from tests.doubles.stub import Call

from .base import LONG_AGO, Document, Hit, Refused, StandIn, body, checked, flat, lines, route

DOCUMENT = {"content": str, "customId?": str, "metadata?": dict, "documentDate?": str}
NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")


class SupermemoryV4(StandIn):
    @route("POST", "/v3/documents")
    def add(self, call: Call) -> Any:
        given = body(call, {**DOCUMENT, "dreaming": {"instant", "dynamic"}, "containerTag": str})
        return self._accepted(given["containerTag"], given)

    @route("GET", "/v3/documents/{id}")
    def status(self, call: Call, id: str) -> Any:
        document = next((document for document in self.documents.values() if document.id == id), None)
        if document is None:
            raise Refused(404, f"no document {id}")
        state = self.ask_about(document)
        return {
            "id": id,
            "createdAt": LONG_AGO,
            "updatedAt": LONG_AGO,
            "status": {"working": "done" if document.waiting == 1 else "indexing"}.get(state, state),
            "dreamingStatus": "done" if state == "done" else "dreaming",
            "latestRevision": 1,
            "raw": None,
            "taskType": "memory",
            "type": "text",
        }

    @route("POST", "/v4/search")
    def search(self, call: Call) -> Any:
        shape = {"q": str, "containerTag": str, "searchMode?": {"memories", "hybrid", "documents"}, "limit?": int}
        given = body(call, {**shape, "threshold?": (int, float), "rerank?": bool, "include?": dict})
        included = checked(given.get("include", {}), {"documents?": bool}, "include").get("documents", False)
        hits = self.found(given["containerTag"], given["q"], given.get("limit", 10))
        return {"results": [_result(hit, included) for hit in hits], "timing": 1, "total": len(hits)}

    @route("DELETE", "/v3/documents/bulk")
    def delete(self, call: Call) -> Any:
        given = body(call, {"containerTags": list})
        return {"success": True, "deletedCount": sum(self.forget(tag) for tag in given["containerTags"])}

    def _accepted(self, tag: str, given: Any) -> Any:
        for name in (tag, given.get("customId", "none")):
            if not NAME.fullmatch(name):
                raise Refused(400, f"{name!r} is no tag or id")
        document = Document(
            id="-".join((tag, given.get("customId") or self.new_id())),  # the server's own, not the customer's
            scope=tag,
            texts=lines(given["content"]),
            metadata=flat(given.get("metadata"), str, int, float, bool),
            at=given.get("documentDate"),
        )
        return {"id": document.id, "status": "queued" if self.store(document).waiting else "done"}


def _result(hit: Hit, included: bool) -> Any:
    result = {"id": hit.id, "memory": hit.text, "metadata": None, "similarity": hit.score, "updatedAt": LONG_AGO}
    if included:
        dates = {"createdAt": LONG_AGO, "updatedAt": LONG_AGO}
        result["documents"] = [{"id": hit.document.id, "metadata": hit.document.metadata, "type": "text", **dates}]
    return result
