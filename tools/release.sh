#!/bin/sh
# Builds what a release publishes, from the committed files: tools/release.sh [FOLDER]   (dist when none is given)
#   FOLDER/python/*.whl and *.tar.gz    the wheel and the sdist. Each is built twice, in two folders: other bytes are an error
#   FOLDER/kafka-quotas.cdx.json        the parts of the container image (CycloneDX), from requirements/image.txt
#   FOLDER/SHA256SUMS                   of all three
# Needs requirements/build.txt and requirements/release.txt, in the Python that PYTHON names (python3 when none is).
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
mkdir -p "${1:-dist}"
target=$(cd "${1:-dist}" && pwd)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/commit" "$folder/other" "$folder/sdist"
git archive HEAD | tar -x -C "$folder/commit"
(cd "$folder/commit" && "$python" -P -m hatchling build -d "$folder/first")
# Once more: the sdist in another folder with another umask, and the wheel from the sdist alone.
(umask 077 && git archive HEAD | tar -x -C "$folder/other" && cd "$folder/other" && "$python" -P -m hatchling build -t sdist -d "$folder/second")
tar -x -z --strip-components=1 -C "$folder/sdist" -f "$folder"/first/*.tar.gz
(umask 077 && cd "$folder/sdist" && "$python" -P -m hatchling build -t wheel -d "$folder/second")
for file in "$folder"/first/*; do
  cmp "$file" "$folder/second/${file##*/}"
done

rm -rf "$target/python"
mkdir "$target/python"
cp "$folder"/first/* "$target/python/"
"$python" -P -m cyclonedx_py requirements "$folder/commit/requirements/image.txt" --pyproject "$folder/commit/pyproject.toml" \
  --mc-type application --output-reproducible --of JSON -o "$target/kafka-quotas.cdx.json"
(cd "$target" && sha256sum python/* kafka-quotas.cdx.json >SHA256SUMS)
