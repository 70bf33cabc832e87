"""The public surface: small, named, and cheap to import."""

import subprocess
import sys

import memorybench


def test_every_public_name_is_there_and_nothing_else_is_promised() -> None:
    for name in memorybench.__all__:
        assert getattr(memorybench, name) is not None
    assert sorted(memorybench.__all__) == sorted(
        [
            "Completion",
            "Dataset",
            "Embedder",
            "Extractor",
            "Haystack",
            "Listing",
            "Measure",
            "Memory",
            "MemoryStore",
            "MemorybenchError",
            "Metric",
            "Model",
            "Outcome",
            "Provider",
            "ProviderContract",
            "Question",
            "Receipt",
            "RetrievalMetric",
            "RunResult",
            "Scope",
            "Session",
            "Subject",
            "Turn",
            "__version__",
            "audit",
            "compare",
            "evaluate",
            "extraction_evaluator",
            "load_run",
            "merge",
            "run",
            "scan",
        ]
    )


def test_importing_memorybench_and_asking_for_help_load_nothing_heavy() -> None:
    heavy = ("numpy", "scipy", "aiohttp", "pydantic", "rich", "yaml", "wordllama", "genai_prices")
    script = (
        "import sys, memorybench.cli.main as m\n"
        "try: m.main(['--help'])\n"
        "except SystemExit: pass\n"
        f"print('LOADED', [name for name in {heavy!r} if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[-1] == "LOADED []"
