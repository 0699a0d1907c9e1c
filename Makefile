# Every target sets up what it needs first; that takes a few minutes once, and no time when nothing changed.
# Nothing is written outside .venv, the caches that git ignores, and the user's cache folder (Kafka's jars).
.PHONY: help demo pictures test check large interop test-packages test-all soak site lint format setup pins lock clean compiled

BIN = .venv/bin
# The arguments of pytest. Three at a time: where one waits for a broker's timeout, two cores have other work.
PYTEST_ARGS = -q -n 3 --dist loadgroup --no-loadscope-reorder --durations=10
# With it, each of the thousand processes of a test run would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

help: ## what can be made
	@sed -n 's/^\([a-z-]*\):[^#]*## /  make \1\t/p' Makefile | expand -t 18

demo: setup ## the whole road on a real local Kafka: validate, plan, backtest, apply, verify
	@exec $(BIN)/kafka-quotas sandbox demo

pictures: setup ## the pictures of README and docs; runs the demo, Chromium and npm
	@$(BIN)/python tools/pictures.py

test: setup ## set-up, every check, every test, real servers included
	@$(MAKE) --no-print-directory --jobs=2 lint compiled
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

check: setup ## before a commit: lint, types, unit and law tests with few examples; about a minute
	@tools/check.sh

interop: setup ## the tests that need more than Python, Java, make and git: Go 1.25, JDK, Maven, Prometheus, Chromium, fish, zsh, systemd-analyze, MIT Kerberos
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[kerberos]'
	@$(BIN)/python -m pytest -m interop tests/interop

test-packages: setup ## the wheel by pip, pipx and uv on each Python, older PySparks, the image, the chart: buildah, debootstrap, bubblewrap, Go
	@$(BIN)/python -m pytest -q -m interop tests/interop/test_packages.py tests/interop/test_spark_versions.py \
	  tests/interop/test_container_image.py tests/interop/test_kubernetes_packages.py

large: setup ## the long tests: more processes, kills, sizes and examples for what the tests of make test cover in small
	@$(BIN)/python -m pytest $(PYTEST_ARGS) -m large
	@$(BIN)/python -m pytest $(PYTEST_ARGS) --hypothesis-profile=many -m 'hypothesis and not kafka and not spark'

test-all: test large interop ## all three

soak: setup ## twenty minutes of faults around kafka-quotas run
	@$(BIN)/python -m pytest -s -m soak tests/soak

site: ## the documentation in build/site; a link that leads nowhere is an error
	@tools/setup.sh --without-java
	@$(BIN)/sphinx-build -W --keep-going -q -b html docs build/site

lint: ## ruff, mypy, import-linter, and the checks of the workflows
	@tools/setup.sh --without-java
	@tools/lint.sh

# In a fresh clone, each of pytest's processes would compile every test: the work of nine seconds, three times.
compiled: setup
	@find tests/unit -name '*-pytest-*.pyc' 2>/dev/null | grep -q . || $(BIN)/python -m pytest -q --collect-only >/dev/null || true

format: ## rewrite the code in the house format, and schemas/ of documents
	@tools/setup.sh --without-java
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format .
	@$(BIN)/python tools/document_schemas.py

setup: ## check the machine, make .venv with the pinned dependencies
	@tools/setup.sh

pins: ## write the versions in .venv to constraints.txt
	@tools/setup.sh --without-java
	@sed '/^#/!d' constraints.txt > constraints.txt.new
	@$(BIN)/python -m pip freeze --exclude-editable >> constraints.txt.new
	@mv constraints.txt.new constraints.txt

lock: ## write requirements/*.txt: the versions of constraints.txt that pipelines install, with hashes
	@tools/setup.sh --without-java
	@tools/lock.sh

clean: ## remove .venv, caches and built files; Kafka's jars stay in the user's cache folder
	rm -rf .venv .setup.lock .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage* dist build
	rm -rf spark-warehouse metastore_db derby.log
	find reconciler tests -name __pycache__ -type d -prune -exec rm -rf {} +
