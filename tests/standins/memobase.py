"""Memobase, API v1 as its client 0.0.27 speaks it."""

from __future__ import annotations

from typing import Any
from uuid import NAMESPACE_URL, uuid5

from tests.doubles.stub import Call

from .base import LONG_AGO, Document, Hit, Refused, StandIn, body, checked, query, route

USER = {"data?": (dict, type(None)), "id?": (str, type(None))}
BLOB = {"blob_type": {"chat"}, "blob_data": dict, "fields?": (dict, type(None))}
MESSAGE = {
    "role": {"user", "assistant"},
    "content": str,
    "alias?": (str, type(None)),
    "created_at?": (str, type(None)),
}
BOOLEANS = {"true", "false", "True", "False"}
SEARCH = {"query": str, "topk": str, "similarity_threshold": str, "time_range_in_days": str}


class Memobase(StandIn):
    """Chats are buffered until a flush, which answers when they are extracted."""

    def __init__(self) -> None:
        super().__init__()
        self._users: set[str] = set()

    @route("POST", "/api/v1/users")
    def create_user(self, call: Call) -> Any:
        body(call, USER)
        user = self.new_id()
        self._users.add(user)
        return _reply({"id": user})

    @route("POST", "/api/v1/blobs/insert/{user}")
    def insert(self, call: Call, user: str) -> Any:
        self._check_user(user)
        query(call, {"wait_process?": BOOLEANS})
        given = body(call, BLOB)
        messages = checked(given["blob_data"], {"messages": list}, "blob_data")["messages"]
        texts = []
        for message in messages:
            checked(message, MESSAGE, "messages[]")
            date = message.get("created_at")
            texts.append(message["content"] + (f" [mention {date[:10]}]" if date else ""))
        at = next((message["created_at"] for message in messages if message.get("created_at")), None)
        blob = self.new_id()
        self.store(Document(blob, user, tuple(texts), at=at))
        return _reply({"id": blob})

    @route("POST", "/api/v1/users/buffer/{user}/chat")
    def flush(self, call: Call, user: str) -> Any:
        self._check_user(user)
        query(call, {"wait_process": BOOLEANS})
        if call.body:
            raise Refused(422, "a flush has no body")
        mine = [document for (scope, _), document in self.documents.items() if scope == user]
        for document in mine:
            document.waiting = 0
        if any(document.failed for document in mine):
            return {"errno": 500, "errmsg": "extraction failed", "data": None}
        return _reply({})

    @route("GET", "/api/v1/users/event_gist/search/{user}")
    def search(self, call: Call, user: str) -> Any:
        self._check_user(user)
        given = query(call, SEARCH)
        return _reply({"gists": [_gist(hit) for hit in self.found(user, given["query"], int(given["topk"]))]})

    @route("DELETE", "/api/v1/users/{user}")
    def delete(self, call: Call, user: str) -> Any:
        self._check_user(user)
        self._users.discard(user)
        self.forget(user)
        return _reply(None)

    def _check_user(self, user: str) -> None:
        if user not in self._users:
            raise Refused(404, f"no user {user}")


def _reply(data: Any) -> Any:
    return {"errno": 0, "errmsg": "", "data": data}


def _gist(hit: Hit) -> Any:
    id = str(uuid5(NAMESPACE_URL, hit.id))
    dates = {"created_at": LONG_AGO, "updated_at": LONG_AGO}
    return {"id": id, "gist_data": {"content": hit.text}, "similarity": hit.score, **dates}
