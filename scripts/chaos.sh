#!/usr/bin/env bash
# chaos.sh ROUNDS TEST...: run the tests that kill and cut off, ROUNDS times, and each of their own rounds as often.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/parts.sh

CO_TEST_NVIM=$(tool nvim)
CO_TEST_ROUNDS=$1
export CO_TEST_NVIM CO_TEST_ROUNDS
shift

for round in $(seq "$CO_TEST_ROUNDS"); do
  part "round $round" cargo test --locked --test it --no-fail-fast -- "$@"
done
part 'messages to Lua' env CO_TEST_CASES=$((CO_TEST_ROUNDS * 5000)) "$CO_TEST_NVIM" --headless --clean -l tests/lua/run.lua 'messages that no backend'
finish
