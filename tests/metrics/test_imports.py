import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "module", ["intervals", "comparison", "rates", "retrieval", "answers", "locomo_f1", "agreement"]
)
def test_importing_loads_neither_numpy_nor_scipy(module: str) -> None:
    program = f"import sys, memorybench.metrics.{module}; print({{'numpy', 'scipy'}} & set(sys.modules) or 'none')"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={"PYTHONPATH": "src"})
    assert loaded.stdout.strip() == "none", loaded.stderr
