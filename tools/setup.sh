#!/bin/sh
# Prepares .venv for this checkout: checks what the machine must have, then installs the pinned dependencies.
# Does nothing when a finished set-up already matches pyproject.toml and constraints.txt. A set-up that was cut short
# leaves .venv/.unfinished behind, and the next one starts from nothing.
#   tools/setup.sh                  everything, Java included
#   tools/setup.sh --without-java   enough for linting and formatting
#   PYTHON=/path/to/python3.12 tools/setup.sh
set -eu
cd "$(dirname "$0")/.."
unset PYTHONHOME PYTHONPATH

venv=.venv
stamp=$venv/.finished
unfinished=$venv/.unfinished
log=$venv/setup.log
extras=traffic,spark,dev,docs

say() { printf 'set-up: %s\n' "$*"; }
fail() { printf 'set-up: %s\n' "$*" >&2; exit 1; }

check_java() {
  java=${JAVA_HOME:+$JAVA_HOME/bin/}java
  banner=$("$java" -version 2>&1) ||
    fail "no Java found: install Java 17 or newer (on Debian and Ubuntu: apt install openjdk-17-jre-headless), or point JAVA_HOME at one."
  release=$(printf '%s\n' "$banner" | sed -n 's/^[a-z]* version "\([0-9]*\).*/\1/p' | head -n 1)
  [ "${release:-0}" -ge 17 ] ||
    fail "Java 17 or newer is needed, but $java is version ${release:-unknown}: install a newer one, or point JAVA_HOME at it."
}

# Sets $python. The first that works wins: $PYTHON, the machine's python3, then one by its version's name.
find_python() {
  old= bare=
  for python in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.14}; do
    found=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
    case $found in
      2.* | 3.[0-9] | 3.10) old="$old $python is $found;" ;;
      *) if "$python" -c 'import ensurepip, venv' 2>/dev/null; then return; else bare=${bare:-$found}; fi ;;
    esac
  done
  [ -z "$bare" ] ||
    fail "Python $bare is here without its venv module: install it (on Debian and Ubuntu: apt install python$bare-venv)."
  fail "Python 3.11 or newer is needed${old:+, but${old%;}}: install one, or point PYTHON at it (make PYTHON=/path/to/python3 ...)."
}

# What a finished set-up was made of: the pins, the extras, the interpreter, and the folder, because scripts in a venv name it.
fingerprint() {
  cat pyproject.toml constraints.txt | cksum
  printf '%s %s\n%s\n' "$extras" "$("$venv/bin/python" -V 2>&1)" "$PWD"
}

is_finished() {
  [ -f "$stamp" ] && [ ! -e "$unfinished" ] && "$venv/bin/python" -c '' 2>/dev/null && [ "$(fingerprint)" = "$(cat "$stamp")" ]
}

install_everything() {
  started=$(date +%s)
  if [ -e "$unfinished" ] || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    find_python
    say "creating $venv with $("$python" -V)"
    rm -rf "$venv"
    mkdir "$venv"
    : >"$unfinished"
    "$python" -m venv "$venv" >"$log" 2>&1 || show_log "the virtual environment could not be created"
  fi
  : >"$unfinished"
  rm -f "$stamp"
  say "installing dependencies (the first time about 0.5 GB to download; log in $log)"
  with_uv || with_pip -e ".[$extras]" || show_log "pip could not install the dependencies"
  fingerprint >"$stamp"
  rm -f "$unfinished"
  say "done in $(($(date +%s) - started)) s"
}

with_pip() {
  # Nothing is compiled before it is imported: most modules of most packages never are.
  "$venv/bin/python" -m pip install --disable-pip-version-check --no-input --no-compile -c constraints.txt "$@" >>"$log" 2>&1 </dev/null
}

pip_config() { "$venv/bin/python" -m pip config get "global.$1" 2>/dev/null || :; }

# uv fetches at the same time what pip fetches in turn, and PySpark's wheel is built without compressing its jars again: a
# quarter of the time. uv gets the index and the certificates of pip's settings. If it still fails, pip does the work.
with_uv() (
  with_pip --only-binary uv uv || return
  index=${UV_DEFAULT_INDEX:-${PIP_INDEX_URL:-$(pip_config index-url)}}
  certificates=${SSL_CERT_FILE:-${PIP_CERT:-$(pip_config cert)}}
  links=${UV_FIND_LINKS:-${PIP_FIND_LINKS:-}}
  [ -z "$index" ] || export UV_DEFAULT_INDEX="$index"
  [ -z "$certificates" ] || export SSL_CERT_FILE="$certificates"
  [ -z "$links" ] || export UV_FIND_LINKS="$links"
  "$venv/bin/uv" pip install --no-cache --no-progress --python "$venv/bin/python" -c constraints.txt -e ".[$extras]" \
    --config-settings-package 'pyspark:--build-option=--compression=stored' >>"$log" 2>&1 </dev/null
)

show_log() {
  tail -n 20 "$log" >&2
  fail "$1: the end of $log is above; run the command again once the cause is gone."
}

[ "${1:-}" = --without-java ] || check_java
# Two at once (make demo in one terminal, make test in another) take turns, where the machine can say so.
if command -v flock >/dev/null; then
  exec 9>.setup.lock
  flock 9
fi
is_finished || install_everything
