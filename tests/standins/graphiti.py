"""The Graphiti server. It reports no status: a queue is processed in the background, here at every search."""

from __future__ import annotations

from typing import Any

from tests.doubles.stub import Call

from .base import Answer, Document, Hit, StandIn, body, checked, lines, route

MESSAGE = {"content": str, "role_type": {"user", "assistant", "system"}, "role": (str, type(None)), "timestamp?": str}


class Graphiti(StandIn):
    authorization = None

    @route("POST", "/messages")
    def add(self, call: Call) -> Any:
        given = body(call, {"group_id": str, "messages": list})
        for message in given["messages"]:
            checked(message, MESSAGE, "messages[]")
            texts = lines(message["content"])
            self.store(Document(self.new_id(), given["group_id"], texts, at=message.get("timestamp")))
        return Answer(202, {"message": "Messages added to processing queue", "success": True})

    @route("POST", "/search")
    def search(self, call: Call) -> Any:
        given = body(call, {"group_ids": list, "query": str, "max_facts?": int})
        [group] = given["group_ids"]
        for document in self.documents.values():
            if document.scope == group:
                self.ask_about(document)
        return {"facts": [_fact(hit) for hit in self.found(group, given["query"], given.get("max_facts", 10))]}

    @route("DELETE", "/group/{group}")
    def delete(self, call: Call, group: str) -> Any:
        self.forget(group)
        return {"message": "Group deleted", "success": True}


def _fact(hit: Hit) -> Any:
    times = {"valid_at": hit.document.at, "invalid_at": None, "created_at": hit.document.at, "expired_at": None}
    return {"uuid": hit.id, "name": "RELATES_TO", "fact": hit.text, **times}
