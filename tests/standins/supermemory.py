"""Supermemory, API v5 as its client 5 speaks it."""

from __future__ import annotations

from typing import Any

from tests.doubles.stub import Call

from .base import LONG_AGO, Document, Hit, Refused, StandIn, body, checked, flat, lines, query, route

DOCUMENT = {"content": str, "id?": str, "metadata?": dict, "date?": str}
SYSTEM = {"createdAt": LONG_AGO, "updatedAt": LONG_AGO}


class Supermemory(StandIn):
    @route("POST", "/ns/{namespace}/document")
    def add(self, call: Call, namespace: str) -> Any:
        return self._accepted(namespace, body(call, {**DOCUMENT, "dreaming": {"instant", "dynamic"}}))

    @route("POST", "/ns/{namespace}/document/batch")
    def add_batch(self, call: Call, namespace: str) -> Any:
        given = body(call, {"documents": list, "dreaming": {"instant", "dynamic"}})
        results = [self._accepted(namespace, checked(one, DOCUMENT, "documents[]")) for one in given["documents"]]
        return {"results": results, "count": len(results), "failed": 0}

    @route("GET", "/ns/{namespace}/document/{id}")
    def status(self, call: Call, namespace: str, id: str) -> Any:
        query(call, {})
        document = self.documents.get((namespace, id))
        if document is None:
            raise Refused(404, f"no document {id} in {namespace}")
        state = self.ask_about(document)
        system = {
            **SYSTEM,
            "status": {"working": "done" if document.waiting == 1 else "indexing"}.get(state, state),
            "dreamingStatus": "done" if state == "done" else "dreaming",
        }
        return {"id": id, "type": "text", "metadata": document.metadata, "system": system}

    @route("POST", "/ns/{namespace}/search")
    def search(self, call: Call, namespace: str) -> Any:
        shape = {"query": str, "searchMode?": {"hybrid", "memories", "chunks"}, "limit?": int, "include?": dict}
        given = body(call, {**shape, "threshold?": (int, float)})
        included = checked(given.get("include", {}), {"documents?": bool}, "include").get("documents", False)
        hits = self.found(namespace, given["query"], given.get("limit", 10))
        return {"results": [_result(hit, included) for hit in hits], "searchTime": 1}

    @route("DELETE", "/ns/{namespace}")
    def delete(self, call: Call, namespace: str) -> Any:
        query(call, {})
        gone = self.forget(namespace)
        counts = {"deletedDocumentsCount": gone, "deletedMemoriesCount": gone}
        return {"status": "deleted", "namespace": namespace, **counts}

    def _accepted(self, namespace: str, given: Any) -> Any:
        metadata = flat(given.get("metadata"), str, int, float, bool, list)
        id = given.get("id") or self.new_id()
        document = Document(id, namespace, lines(given["content"]), metadata, given.get("date"))
        return {"id": id, "status": "queued" if self.store(document).waiting else "done"}


def _result(hit: Hit, included: bool) -> Any:
    result = {
        "id": hit.id,
        "memory": hit.text,
        "metadata": {},
        "similarity": hit.score,
        "isLatest": True,
        "isInference": False,
        "system": SYSTEM,
    }
    if included:
        source = {"id": hit.document.id, "type": "text", "metadata": hit.document.metadata, "system": SYSTEM}
        result["included"] = {"document": source}
    return result
