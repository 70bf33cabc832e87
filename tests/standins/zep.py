"""Zep Cloud, API v4 as its client 4 speaks it."""

from __future__ import annotations

from typing import Any

from tests.doubles.stub import Call

from .base import KEY, Answer, Document, Hit, Refused, StandIn, body, flat, lines, query, route

EPISODE = {"data": str, "type?": {"text", "json", "message"}, "reference_time?": str, "metadata?": dict}
MOST_METADATA = 10
LONGEST_EPISODE = 10_000
LONGEST_QUERY = 400


class Zep(StandIn):
    authorization = f"Api-Key {KEY}"

    def __init__(self) -> None:
        super().__init__()
        self._users: dict[str, dict[str, Any]] = {}
        """By uuid."""
        self._tasks: dict[str, Document] = {}
        self._deletes: dict[str, tuple[str, int]] = {}
        """By task: the user that goes, and how often it is still reported as pending."""
        self._seen: dict[str, Answer] = {}
        """By idempotency key: what was answered."""

    @route("POST", "/api/v4/users")
    def create_user(self, call: Call) -> Any:
        name = body(call, {"user_id": str})["user_id"]
        if any(user["user_id"] == name for user in self._users.values()):
            raise Refused(409, f"there is a user {name}")
        user = {"uuid": self.new_id(), "graph_uuid": self.new_id(), "user_id": name}
        self._users[user["uuid"]] = user
        return Answer(201, user)

    @route("POST", "/api/v4/users/lookup")
    def look_up_user(self, call: Call) -> Any:
        name = body(call, {"user_id": str})["user_id"]
        for user in self._users.values():
            if user["user_id"] == name:
                return user
        raise Refused(404, f"no user {name}")

    @route("POST", "/api/v4/graphs/{graph}/episodes")
    def add(self, call: Call, graph: str) -> Any:
        self._check_graph(graph)
        given = body(call, EPISODE)
        if len(flat(given.get("metadata"), str, int, float, bool, list)) > MOST_METADATA:
            raise Refused(400, f"more than {MOST_METADATA} keys in metadata")
        if len(given["data"]) > LONGEST_EPISODE:
            raise Refused(400, f"data is longer than {LONGEST_EPISODE} characters")
        key = call.headers.get("Idempotency-Key")
        if key is None:
            raise Refused(400, "Idempotency-Key is missing")
        if key not in self._seen:
            self._seen[key] = self._accepted(graph, given)
        return self._seen[key]

    @route("GET", "/api/v4/tasks/{task}")
    def status(self, call: Call, task: str) -> Any:
        return {"uuid": task, "status": self._status(task)}

    @route("POST", "/api/v4/graphs/{graph}/search/edges")
    def search(self, call: Call, graph: str) -> Any:
        self._check_graph(graph)
        size = int(query(call, {"page_size?": str}).get("page_size", 10))
        query_text = body(call, {"query": str, "reranker?": {"rrf", "cross_encoder"}})["query"]
        if not 1 <= len(query_text) <= LONGEST_QUERY:
            raise Refused(400, f"query has {len(query_text)} characters, not 1 to {LONGEST_QUERY}")
        hits = self.found(graph, query_text, size)
        return {"items": [_edge(hit) for hit in hits], "next_cursor": None, "total_size": len(hits)}

    @route("DELETE", "/api/v4/users/{uuid}")
    def delete(self, call: Call, uuid: str) -> Any:
        if uuid not in self._users:
            raise Refused(404, f"no user {uuid}")
        task = self.new_id()
        self._deletes[task] = (uuid, self.polls if self.slow_delete else 0)
        return Answer(202, {"task": {"uuid": task, "status": "pending"}})

    def _accepted(self, graph: str, given: Any) -> Answer:
        episode, task = self.new_id(), self.new_id()
        at = given.get("reference_time")
        document = Document(episode, graph, lines(given["data"]), given.get("metadata") or {}, at)
        self._tasks[task] = self.store(document)
        stored = {"uuid": episode, "content": given["data"], "graph_uuid": graph, "processed": False}
        return Answer(202, {"episode": stored, "task": {"uuid": task, "status": "pending"}})

    def _status(self, task: str) -> str:
        if task in self._deletes:
            uuid, waiting = self._deletes[task]
            if waiting:
                self._deletes[task] = (uuid, waiting - 1)
                return "processing"
            user = self._users.pop(uuid, None)
            if user is not None:
                self.forget(user["graph_uuid"])
            return "succeeded"
        if task not in self._tasks:
            raise Refused(404, f"no task {task}")
        return {"working": "processing", "done": "succeeded"}.get(state := self.ask_about(self._tasks[task]), state)

    def _check_graph(self, graph: str) -> None:
        if all(user["graph_uuid"] != graph for user in self._users.values()):
            raise Refused(404, f"no graph {graph}")


def _edge(hit: Hit) -> Any:
    known = {"uuid": hit.id, "fact": hit.text, "name": "RELATES_TO", "graph_uuid": hit.document.scope}
    times = {"valid_at": hit.document.at, "invalid_at": None}
    return {**known, **times, "score": hit.score, "episode_uuids": [hit.document.id]}
