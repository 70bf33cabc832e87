"""memorybench tells how good an AI agent's memory is.

Only what is named here is promised to stay. Each name is loaded when it is first used, so that importing is cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "audit": "memorybench.api",
    "evaluate": "memorybench.api",
    "extraction_evaluator": "memorybench.api",
    "load_run": "memorybench.api",
    "RunResult": "memorybench.api",
    "Completion": "memorybench.vocabulary.contracts",
    "Embedder": "memorybench.vocabulary.contracts",
    "Listing": "memorybench.vocabulary.contracts",
    "Model": "memorybench.vocabulary.contracts",
    "Provider": "memorybench.vocabulary.contracts",
    "Receipt": "memorybench.vocabulary.contracts",
    "Scope": "memorybench.vocabulary.contracts",
    "Haystack": "memorybench.vocabulary.conversation",
    "Memory": "memorybench.vocabulary.conversation",
    "Session": "memorybench.vocabulary.conversation",
    "Turn": "memorybench.vocabulary.conversation",
    "Measure": "memorybench.vocabulary.measures",
    "Metric": "memorybench.vocabulary.measures",
    "Extractor": "memorybench.vocabulary.extraction",
    "MemoryStore": "memorybench.vocabulary.stores",
    "Dataset": "memorybench.vocabulary.questions",
    "Question": "memorybench.vocabulary.questions",
    "Outcome": "memorybench.vocabulary.trials",
    "Subject": "memorybench.vocabulary.trials",
    "MemorybenchError": "memorybench.vocabulary.errors",
    "ProviderContract": "memorybench.testing",
}
__all__ = ["__version__", *sorted(_HOMES)]

if TYPE_CHECKING:
    from memorybench.api import RunResult as RunResult
    from memorybench.api import audit as audit
    from memorybench.api import evaluate as evaluate
    from memorybench.api import extraction_evaluator as extraction_evaluator
    from memorybench.api import load_run as load_run
    from memorybench.testing import ProviderContract as ProviderContract
    from memorybench.vocabulary.contracts import Completion as Completion
    from memorybench.vocabulary.contracts import Embedder as Embedder
    from memorybench.vocabulary.contracts import Listing as Listing
    from memorybench.vocabulary.contracts import Model as Model
    from memorybench.vocabulary.contracts import Provider as Provider
    from memorybench.vocabulary.contracts import Receipt as Receipt
    from memorybench.vocabulary.contracts import Scope as Scope
    from memorybench.vocabulary.conversation import Haystack as Haystack
    from memorybench.vocabulary.conversation import Memory as Memory
    from memorybench.vocabulary.conversation import Session as Session
    from memorybench.vocabulary.conversation import Turn as Turn
    from memorybench.vocabulary.errors import MemorybenchError as MemorybenchError
    from memorybench.vocabulary.extraction import Extractor as Extractor
    from memorybench.vocabulary.measures import Measure as Measure
    from memorybench.vocabulary.measures import Metric as Metric
    from memorybench.vocabulary.questions import Dataset as Dataset
    from memorybench.vocabulary.questions import Question as Question
    from memorybench.vocabulary.stores import MemoryStore as MemoryStore
    from memorybench.vocabulary.trials import Outcome as Outcome
    from memorybench.vocabulary.trials import Subject as Subject


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'memorybench' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(home), name)
