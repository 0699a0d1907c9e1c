#!/bin/sh
# Every static check: one line for each that passes, the whole output of each that does not. mypy takes longer than all others.
set -eu
cd "$(dirname "$0")/.."
bin=.venv/bin
reports=$(mktemp -d)
types=
trap 'kill $types 2>/dev/null || true; rm -rf "$reports"' EXIT
failed=0

check() {
  name=$1
  shift
  if output=$("$@" 2>&1); then
    printf 'lint: %s: ok\n' "$name"
  else
    printf '%s\nlint: %s: failed\n' "$output" "$name" >&2
    failed=1
  fi
}

(check mypy "$bin/mypy" --num-workers 2 && exit $failed) >"$reports/types" 2>&1 &
types=$!
check 'ruff check' "$bin/ruff" check --no-fix .
check 'ruff format' "$bin/ruff" format --check .
check import-linter "$bin/lint-imports"
check words "$bin/python" tools/words.py
check zizmor "$bin/zizmor" --offline --no-progress --quiet .github examples/gitops-repository/.github
# A Go program, so not among the pinned dependencies; this repository's CI always has it. CONTRIBUTING.md says how to get it.
PATH=$PWD/$bin:$PATH
if command -v actionlint >/dev/null; then
  check actionlint actionlint
  check 'actionlint of the template' actionlint examples/gitops-repository/.github/workflows/*.yml
else
  printf 'lint: actionlint: not installed, left to CI\n'
fi
wait "$types" || failed=1
types=
cat "$reports/types"
exit $failed
