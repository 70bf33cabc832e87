"""Mem0's platform, API v3 as its client 2 speaks it."""

from __future__ import annotations

from typing import Any

from tests.doubles.stub import Call

from .base import KEY, LONG_AGO, Document, Hit, Refused, StandIn, body, checked, query, route

ADD = {"messages": list, "user_id": str, "metadata?": dict, "infer?": bool, "timestamp?": int}
SEARCH = {"query": str, "filters": dict, "top_k?": int, "threshold?": (int, float), "rerank?": bool}


class Mem0(StandIn):
    authorization = f"Token {KEY}"

    def __init__(self) -> None:
        super().__init__()
        self._events: dict[str, Document] = {}
        self._deletes: dict[str, tuple[str, int]] = {}
        """By event: the user whose memories go, and how often it is still reported as running."""

    @route("GET", "/v1/ping/")
    def ping(self, call: Call) -> Any:
        return {"status": "ok", "user_email": "stand-in@example.com", "org_id": "org", "project_id": "project"}

    @route("POST", "/v3/memories/add/")
    def add(self, call: Call) -> Any:
        given = body(call, ADD)
        messages = [
            checked(one, {"role": {"user", "assistant", "system"}, "content": str}, "messages[]")
            for one in given["messages"]
        ]
        if not messages:
            raise Refused(400, "messages is empty")
        event = self.new_id()
        texts = tuple(message["content"] for message in messages if message["content"].strip())
        at = str(given["timestamp"]) if "timestamp" in given else None
        self._events[event] = self.store(Document(event, given["user_id"], texts, given.get("metadata") or {}, at))
        return {"message": "Memory processing has been queued", "status": "PENDING", "event_id": event}

    @route("GET", "/v1/event/{event}/")
    def status(self, call: Call, event: str) -> Any:
        query(call, {})
        return {"id": event, "event_type": "ADD", "status": self._status(event)}

    @route("POST", "/v3/memories/search/")
    def search(self, call: Call) -> Any:
        given = body(call, SEARCH)
        if not given["query"].strip():
            raise Refused(400, "query is empty")
        user = checked(given["filters"], {"user_id": str}, "filters")["user_id"]
        return {"results": [_memory(hit) for hit in self.found(user, given["query"], given.get("top_k", 10))]}

    @route("DELETE", "/v1/memories/")
    def delete(self, call: Call) -> Any:
        user = query(call, {"user_id": str})["user_id"]
        event = self.new_id()
        self._deletes[event] = (user, self.polls if self.slow_delete else 0)
        if not self.slow_delete:
            self.forget(user)
        return {"message": "Delete in progress. This may take some time.", "event_id": event}

    def _status(self, event: str) -> str:
        if event in self._deletes:
            user, waiting = self._deletes[event]
            if waiting:
                self._deletes[event] = (user, waiting - 1)
                return "RUNNING"
            self.forget(user)
            return "SUCCEEDED"
        if event not in self._events:
            raise Refused(404, f"no event {event}")
        return {"working": "RUNNING", "failed": "FAILED", "done": "SUCCEEDED"}[self.ask_about(self._events[event])]


def _memory(hit: Hit) -> Any:
    owner = {"user_id": hit.document.scope, "metadata": hit.document.metadata}
    dates = {"created_at": hit.document.at or LONG_AGO, "updated_at": LONG_AGO}
    return {"id": hit.id, "memory": hit.text, "score": hit.score, "categories": [], **owner, **dates}
