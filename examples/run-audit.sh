#!/bin/sh
# Audits what a model remembers of the conversations in data/sample-dataset.json.
#
#   examples/run-audit.sh                          offline: scripted models play subject and judge
#   examples/run-audit.sh gpt-4o-mini gpt-4o       a model, and the judge of its answers
#   examples/run-audit.sh ollama/llama3.2 none     a model that runs here, without a judge
set -eu

here=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
model=${1:-scripted/quote}
judge=${2:-scripted/judge}
program=$here/.venv/bin/memaudit
[ -x "$program" ] || program=memaudit

"$program" validate "$here/data/sample-dataset.json"
# exit 1: some answers could not be told right or wrong; the report says which
"$program" audit "$here/data/sample-dataset.json" --model "$model" --judge-model "$judge" || [ $? -eq 1 ]
