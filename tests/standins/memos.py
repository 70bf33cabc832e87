"""MemOS Cloud, API openmem v1 as its client 2.0.33 speaks it."""

from __future__ import annotations

from typing import Any
from uuid import NAMESPACE_URL, uuid5

from tests.doubles.stub import Call

from .base import KEY, Document, Hit, StandIn, body, checked, route

NULL = type(None)
ADD = {
    "user_id": str,
    "conversation_id": str,
    "messages": list,
    "async_mode": {True},
    "allow_public?": bool,
    **dict.fromkeys(
        ("info?", "source?", "app_id?", "agent_id?", "allow_knowledgebase_ids?", "allow_memory_view?", "tags?"), NULL
    ),
}
MESSAGE = {"role": {"user", "assistant", "system", "tool"}, "content": str, "chat_time?": str}
SEARCH = {
    "query": str,
    "user_id": str,
    "memory_limit_number": int,
    "preference_limit_number": int,
    "relativity": (int, float),
    **dict.fromkeys(("include_preference?", "include_tool_memory?", "include_skill?"), bool),
    **dict.fromkeys(("tool_memory_limit_number?", "skill_limit_number?"), int),
    **dict.fromkeys(
        ("conversation_id?", "agent_id?", "knowledgebase_ids?", "filter?", "include_memory_view?", "source?"), NULL
    ),
    "context_format?": {"memory"},
}


class Memos(StandIn):
    """Conversations are processed in the background; odd lines become preferences."""

    authorization = f"Token {KEY}"

    def __init__(self) -> None:
        super().__init__()
        self._tasks: dict[str, Document] = {}
        self.most = 25
        """Maximum number of results of a search."""

    @route("POST", "/api/openmem/v1/add/message")
    def add(self, call: Call) -> Any:
        given = body(call, ADD)
        if not given["messages"]:
            return _failure(40001, "messages is empty")
        texts, at = [], None
        for message in given["messages"]:
            checked(message, MESSAGE, "messages[]")
            at = at or message.get("chat_time")
            texts.append(message["content"] + (f" [on {at[:10]}]" if at else ""))
        task, conversation = self.new_id(), given["conversation_id"]
        metadata = {"conversation_id": conversation}
        self._tasks[task] = self.store(Document(conversation, given["user_id"], tuple(texts), metadata, at))
        return _reply({"success": True, "task_id": task, "status": "running"})

    @route("POST", "/api/openmem/v1/get/status")
    def status(self, call: Call) -> Any:
        task = body(call, {"task_id": str})["task_id"]
        if task not in self._tasks:
            return _failure(40004, "unknown task")
        states = {"working": "running", "failed": "failed", "done": "completed"}
        return _reply([{"task_id": task, "status": states[self.ask_about(self._tasks[task])]}])

    @route("POST", "/api/openmem/v1/search/memory")
    def search(self, call: Call) -> Any:
        given = body(call, SEARCH)
        limit = given["memory_limit_number"]
        if not given["query"].strip() or not 0 < limit <= self.most:
            return _failure(40001, "query or limit")
        hits = self.found(given["user_id"], given["query"], limit)
        return _reply(
            {
                "memory_detail_list": [_memory(hit, "memory_value") for hit in hits[::2]],
                "preference_detail_list": [_memory(hit, "preference") for hit in hits[1::2]],
            }
        )

    @route("POST", "/api/openmem/v1/delete/memory")
    def delete(self, call: Call) -> Any:
        self.forget(body(call, {"user_id": str})["user_id"])
        return _reply({"success": True})


def _reply(data: Any) -> Any:
    return {"code": 0, "message": "ok", "data": data}


def _failure(code: int, message: str) -> Any:
    """Errors have status 200."""
    return {"code": code, "message": message, "data": None}


def _memory(hit: Hit, text_field: str) -> Any:
    shared = {"conversation_id": hit.document.metadata["conversation_id"], "relativity": hit.score}
    return {"id": str(uuid5(NAMESPACE_URL, hit.id)), text_field: hit.text, "status": "activated", **shared}
