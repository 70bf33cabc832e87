"""memorybench measures how good an AI agent's memory is.

Only the names in `__all__` are stable. Each is loaded when it is first used, so that importing is cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_NAMES = {
    "memorybench.api": (
        *("audit", "compare", "evaluate", "extraction_evaluator", "load_run", "merge", "run", "scan"),
        "RunResult",
    ),
    "memorybench.core.contracts": ("Completion", "Embedder", "Listing", "Model", "Provider", "Receipt", "Scope"),
    "memorybench.core.conversation": ("Haystack", "Memory", "Session", "Turn"),
    "memorybench.core.errors": ("MemorybenchError",),
    "memorybench.core.extraction": ("Extractor",),
    "memorybench.core.measures": ("Measure", "Metric", "RetrievalMetric"),
    "memorybench.core.questions": ("Dataset", "Question"),
    "memorybench.core.stores": ("MemoryStore",),
    "memorybench.core.trials": ("Outcome", "Subject"),
    "memorybench.testing": ("ProviderContract",),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}
__all__ = ["__version__", *sorted(_HOMES)]

if TYPE_CHECKING:
    from memorybench.api import RunResult as RunResult
    from memorybench.api import audit as audit
    from memorybench.api import compare as compare
    from memorybench.api import evaluate as evaluate
    from memorybench.api import extraction_evaluator as extraction_evaluator
    from memorybench.api import load_run as load_run
    from memorybench.api import merge as merge
    from memorybench.api import run as run
    from memorybench.api import scan as scan
    from memorybench.core.contracts import Completion as Completion
    from memorybench.core.contracts import Embedder as Embedder
    from memorybench.core.contracts import Listing as Listing
    from memorybench.core.contracts import Model as Model
    from memorybench.core.contracts import Provider as Provider
    from memorybench.core.contracts import Receipt as Receipt
    from memorybench.core.contracts import Scope as Scope
    from memorybench.core.conversation import Haystack as Haystack
    from memorybench.core.conversation import Memory as Memory
    from memorybench.core.conversation import Session as Session
    from memorybench.core.conversation import Turn as Turn
    from memorybench.core.errors import MemorybenchError as MemorybenchError
    from memorybench.core.extraction import Extractor as Extractor
    from memorybench.core.measures import Measure as Measure
    from memorybench.core.measures import Metric as Metric
    from memorybench.core.measures import RetrievalMetric as RetrievalMetric
    from memorybench.core.questions import Dataset as Dataset
    from memorybench.core.questions import Question as Question
    from memorybench.core.stores import MemoryStore as MemoryStore
    from memorybench.core.trials import Outcome as Outcome
    from memorybench.core.trials import Subject as Subject
    from memorybench.testing import ProviderContract as ProviderContract


def __dir__() -> list[str]:
    return [*__all__, "__doc__"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'memorybench' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(home), name)
