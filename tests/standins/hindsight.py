"""Hindsight, API v1 as its client 1 speaks it."""

from __future__ import annotations

from typing import Any

from tests.doubles.stub import Call

from .base import Document, Hit, Refused, StandIn, body, checked, flat, lines, query, route

NONE = type(None)
"""The client writes null where nothing is given."""
BANK = "/v1/default/banks/{bank}"
ITEM = {"content": str, "timestamp?": str, "metadata?": dict, "document_id?": str}
DEFAULTS = {
    "context?": NONE,
    "entities?": NONE,
    "tags?": NONE,
    "observation_scopes?": NONE,
    "strategy?": NONE,
    "update_mode?": NONE,
    "resolve_entities?": bool,
}
"""What the client fills in by itself."""
RECALL = {"query": str, "budget?": {"low", "mid", "high"}, "max_tokens?": int, "query_timestamp?": (str, NONE)}
RECALL_DEFAULTS = {
    "trace?": bool,
    "include?": dict,
    "tags_match?": {"any"},
    "types?": NONE,
    "tags?": NONE,
    "tag_groups?": NONE,
    "prefer_observations?": NONE,
    "min_scores?": NONE,
    "temporal_window?": NONE,
}


class Hindsight(StandIn):
    """Searching a missing bank returns nothing; adding to it is rejected, although Hindsight would create it."""

    def __init__(self) -> None:
        super().__init__()
        self._banks: set[str] = set()
        self._operations: dict[tuple[str, str], list[Document]] = {}
        """By bank and operation."""

    @route("PUT", BANK)
    def create(self, call: Call, bank: str) -> Any:
        body(call, {})
        self._banks.add(bank)
        disposition = {"skepticism": 3, "literalism": 3, "empathy": 3}
        return {"bank_id": bank, "name": bank, "disposition": disposition, "mission": ""}

    @route("POST", f"{BANK}/memories")
    def add(self, call: Call, bank: str) -> Any:
        self._check_bank(bank)
        given = body(call, {"items": list, "async": bool, "document_tags?": NONE})
        items = [checked(one, {**ITEM, **DEFAULTS}, "items[]") for one in given["items"]]
        operation = self.new_id()
        documents = [self.store(self._document(bank, item)) for item in items]
        self._operations[bank, operation] = documents
        if not given["async"]:
            for document in documents:
                document.waiting = 0
        reply = {"success": True, "bank_id": bank, "items_count": len(items), "async": given["async"]}
        return {**reply, "operation_id": operation} if given["async"] else reply

    @route("GET", f"{BANK}/operations/{{operation}}")
    def status(self, call: Call, bank: str, operation: str) -> Any:
        query(call, {})
        documents = self._operations.get((bank, operation))
        if documents is None:
            raise Refused(404, f"no operation {operation} of {bank}")
        states = {self.ask_about(document) for document in documents}
        worst = next((state for state in ("failed", "working") if state in states), "done")
        status = {"working": "processing", "failed": "failed", "done": "completed"}[worst]
        return {"operation_id": operation, "status": status, "operation_type": "retain"}

    @route("POST", f"{BANK}/memories/recall")
    def search(self, call: Call, bank: str) -> Any:
        given = body(call, {**RECALL, **RECALL_DEFAULTS})
        if not given["query"].strip():
            raise Refused(422, "query is empty")
        return {"results": _within(given.get("max_tokens", 4096), self.found(bank, given["query"], 1000))}

    @route("GET", f"{BANK}/memories/list")
    def list(self, call: Call, bank: str) -> Any:
        limit = int(query(call, {"limit?": str, "offset?": str}).get("limit", 100))
        facts = [_fact(memory) for memory in self.memories(bank)]
        return {"items": facts[:limit], "total": len(facts), "limit": limit, "offset": 0}

    @route("DELETE", BANK)
    def delete(self, call: Call, bank: str) -> Any:
        self._check_bank(bank)
        self._banks.discard(bank)
        return {"success": True, "message": None, "deleted_count": self.forget(bank)}

    def _document(self, bank: str, item: Any) -> Document:
        metadata = flat(item.get("metadata"), str)
        id = item.get("document_id") or self.new_id()
        return Document(id, bank, lines(item["content"]), metadata, item.get("timestamp"))

    def _check_bank(self, bank: str) -> None:
        if bank not in self._banks:
            raise Refused(404, f"no bank {bank}")


def _within(tokens: int, hits: list[Hit]) -> list[Any]:
    """Return the best hits that fit the budget; a token is four characters."""
    facts = []
    for hit in hits:
        tokens -= len(hit.text) // 4 + 1
        if tokens < 0:
            break
        facts.append(_fact(hit))
    return facts


def _fact(hit: Hit) -> Any:
    source = {"document_id": hit.document.id, "metadata": hit.document.metadata, "mentioned_at": hit.document.at}
    return {"id": hit.id, "text": hit.text, "type": "world", **source, "scores": {"final": hit.score}}
