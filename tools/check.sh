#!/bin/sh
# What a commit should pass: every static check, and beside them every test that starts no server. The checks are printed last.
set -eu
cd "$(dirname "$0")/.."
report=$(mktemp)
trap 'rm -f "$report"' EXIT
tools/lint.sh >"$report" 2>&1 &
lint=$!
status=0
.venv/bin/python -m pytest -q -n 2 --dist loadgroup --durations=10 --durations-min=1 -m "not spark and not kafka" || status=$?
wait "$lint" || status=$?
cat "$report"
exit "$status"
