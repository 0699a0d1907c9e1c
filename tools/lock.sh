#!/bin/sh
# Writes requirements/*.txt: what the reusable workflows, the template's pipelines, the container image and a release install, each
# file of each package by its hash.
# Versions are those of constraints.txt. The files name no package index. Run it after constraints.txt has changed (make lock).
set -eu
cd "$(dirname "$0")/.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
.venv/bin/python -m venv "$folder/venv"
"$folder/venv/bin/python" -P -m pip install --disable-pip-version-check --quiet 'uv>=0.8,<1'

lock() {
  target=$1
  shift
  {
    echo '# Written by tools/lock.sh (make lock). Install with: pip install --require-hashes -r FILE'
    "$folder/venv/bin/uv" pip compile "$@" --quiet --universal --python-version 3.11 --generate-hashes \
      --constraints constraints.txt --no-header --no-annotate --no-emit-index-url --no-emit-find-links
  } >"$folder/lock.txt"
  mv "$folder/lock.txt" "$target"
}

mkdir -p requirements
printf '%s\n' hatchling setuptools >"$folder/build.in"
lock requirements/build.txt "$folder/build.in"
printf '%s\n' 'cyclonedx-bom>=7.5,<8' >"$folder/release.in"
lock requirements/release.txt "$folder/release.in"
lock requirements/image.txt pyproject.toml --extra service --extra github --extra msk
lock requirements/pipeline.txt pyproject.toml --extra github
lock requirements/pipeline-traffic.txt pyproject.toml --extra github --extra traffic
lock requirements/pipeline-spark.txt pyproject.toml --extra github --extra traffic --extra spark
