#!/bin/sh
# What a commit should pass: every static check, and beside them the quick tests, which start no server, no Java, and build nothing
# of thousands of parts. Laws have few examples here. Two runs of tests, each of its own files: workers that share all tests
# would each collect all of them.
set -eu
cd "$(dirname "$0")/.."
reports=$(mktemp -d)
trap 'rm -rf "$reports"; kill $lint $laws 2>/dev/null || true' EXIT
lint= laws=

quick() {
  .venv/bin/python -m pytest -q -p no:xdist --hypothesis-profile=brief -m "not spark and not kafka and not bulk" "$@"
}

quick tests/property tests/contract \
  tests/architecture/test_api_reference.py tests/architecture/test_class_names.py tests/architecture/test_files.py \
  tests/architecture/test_layers.py tests/architecture/test_no_forge.py tests/architecture/test_one_way_out.py \
  tests/architecture/test_schemas.py >"$reports/laws" 2>&1 &
laws=$!
tools/lint.sh >"$reports/lint" 2>&1 &
lint=$!
status=0
quick --durations=5 --durations-min=1 tests/unit tests/features || status=$?
wait "$laws" || status=$?
wait "$lint" || status=$?
lint= laws=
cat "$reports/laws" "$reports/lint"
exit "$status"
