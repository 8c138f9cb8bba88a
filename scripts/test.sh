#!/usr/bin/env bash
# Run every test. A tool that is missing is an error that names it; nothing is left out in silence.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/parts.sh

CO_TEST_NVIM=$(tool nvim)
CO_TEST_MODEL_PYTHON=$(tool model)
CO_TEST_MODEL_SCRIPT=$PWD/scripts/model.py
CO_TEST_NODE=$(tool node)
CO_TEST_AIMOCK=$(tool aimock)
CO_TEST_GO=${CO_TEST_GO-$(command -v go || echo none)}
export CO_TEST_NVIM CO_TEST_MODEL_PYTHON CO_TEST_MODEL_SCRIPT CO_TEST_NODE CO_TEST_AIMOCK CO_TEST_GO

# Runs the tests of Rust, and tells the reasons of those that failed once more at the end of the long output.
rust_tests() {
  local log status=0
  log=$(mktemp)
  # The tests wait for other processes a third of the time, so one thread more than cores keeps the cores busy.
  export RUST_TEST_THREADS=${RUST_TEST_THREADS-$(($(nproc) + 1))}
  python3 scripts/containers.py cargo test --workspace --locked --no-fail-fast 2>&1 | tee "$log" || status=1
  if ((status)); then
    printf '\n== why they failed\n'
    awk '/^---- .* stdout ----$/ { lines = 20 } /^failures:$/ { lines = 0 } lines-- > 0 { print substr($0, 1, 600) }' "$log"
  fi
  rm -f "$log"
  return $status
}

# The other parts drive the backend that this builds.
cargo test --workspace --locked --no-run
CO_TEST_BIN=$(cargo metadata --locked --no-deps --format-version 1 |
  python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')/debug/co-nvim
export CO_TEST_BIN

part 'set-up' python3 -m unittest discover -s tests/setup
part 'Lua' "$CO_TEST_NVIM" --headless --clean -l tests/lua/run.lua
part 'the demo' python3 scripts/demo.py --check --bin "$CO_TEST_BIN"
part 'Rust' rust_tests
if [[ ${CO_TEST_NO_CONTAINERS-} == 1 ]]; then
  printf '\n== left out, because CO_TEST_NO_CONTAINERS=1: all tests with containers\n'
fi
if [[ $CO_TEST_GO == none ]]; then
  printf '\n== left out, because no go is on PATH: the test in which go fetches through the proxy\n'
fi
finish
