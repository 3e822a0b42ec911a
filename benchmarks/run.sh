#!/usr/bin/env bash
# Makes an environment with PyTorch 2.13.0 and runs the benchmarks there against the built tree.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ ! -x .venv-bench/bin/python ] || ! .venv-bench/bin/python -c 'import torch' 2>/dev/null; then
  python3 -m venv .venv-bench
  .venv-bench/bin/pip install -q torch==2.13.0 numpy
fi
PYTHONPATH="${BUILD:-build}/python" exec .venv-bench/bin/python benchmarks/run.py "$@"
