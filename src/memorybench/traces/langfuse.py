"""Sends scores to Langfuse. Langfuse's own client is not used, because it is large and sends in the background."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from uuid import UUID, uuid5

from memorybench.http.client import Http

API_URL = "https://cloud.langfuse.com"
_NAMESPACE = UUID("6b1f5c7e-0c53-5b0e-9a55-3f0f4f1d8c11")


class LangfuseScores:
    """Posts scores of observations to Langfuse."""

    def __init__(self, http: Http, public_key: str, secret_key: str, *, url: str = API_URL) -> None:
        self._http = http
        self._url = url.rstrip("/")
        self._authorization = base64.b64encode(f"{public_key}:{secret_key}".encode()).decode()

    async def post(self, trace: str, name: str, value: float, counts: Mapping[str, float], comment: str) -> None:
        """Post one score. `trace` is TRACE/OBSERVATION: the ids of a trace and of an observation in it.

        The id of the score is derived from `trace` and `name`, so that posting the score again replaces it.
        """
        trace_id, _, observation = trace.rpartition("/")
        score = {
            "id": str(uuid5(_NAMESPACE, f"{trace}/{name}")),
            "traceId": trace_id,
            "observationId": observation,
            "name": name,
            "value": value,
            "dataType": "NUMERIC",
            "comment": comment,
            "metadata": {"program": "memorybench", **counts},
        }
        headers = {"authorization": f"Basic {self._authorization}"}
        await self._http.request("POST", f"{self._url}/api/public/scores", headers=headers, json=score)
