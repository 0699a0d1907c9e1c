#!/bin/sh
# What a commit should pass: every static check, and beside them the quick tests, which start no server and no other process of
# minutes. Laws have few examples here. The checks are printed last.
set -eu
cd "$(dirname "$0")/.."
report=$(mktemp)
trap 'rm -f "$report"' EXIT
tools/lint.sh >"$report" 2>&1 &
lint=$!
status=0
.venv/bin/python -m pytest -q -n 2 --dist loadgroup --durations=5 --durations-min=1 --hypothesis-profile=brief \
  -m "not spark and not kafka" tests/unit tests/property tests/contract \
  tests/architecture/test_api_reference.py tests/architecture/test_class_names.py tests/architecture/test_files.py \
  tests/architecture/test_no_forge_below_integrations.py tests/architecture/test_one_way_out.py tests/architecture/test_schemas.py ||
  status=$?
wait "$lint" || status=$?
cat "$report"
exit "$status"
