#!/bin/sh
# Build the wheel of the Python package, see that it is small, install it into a new virtual environment
# and test it there. `WHEEL=FILE` tests one that is there.
set -eu
target=${CARGO_TARGET_DIR:-target}
python=$target/python/bin/python

python3 -m venv --clear "$target/python"
"$python" -m pip install --quiet --upgrade pip
if [ -z "${WHEEL:-}" ]; then
	"$python" -m pip install --quiet maturin
	rm -rf "$target/wheels"
	(PATH=$(realpath "$target/python/bin"):$PATH && out=$(realpath "$target")/wheels && cd python &&
		maturin build --quiet --profile release --out "$out")
	WHEEL=$(echo "$target"/wheels/*.whl)
fi
echo "$(basename "$WHEEL"): $(stat -c %s "$WHEEL") bytes"
test "$(stat -c %s "$WHEEL")" -lt 15000000
"$python" -m pip install --quiet "$WHEEL[arrow,tune,plot]" --group python/pyproject.toml:test
"$target/python/bin/pytest" python/tests
