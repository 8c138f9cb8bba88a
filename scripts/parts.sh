# For scripts that run several parts, all of them whatever comes of the first. Sourced, not run.

failed=()

# part NAME COMMAND...: runs a command and remembers if it failed.
part() {
  local name=$1
  shift
  printf '\n== %s\n' "$name"
  "$@" || failed+=("$name")
}

# tool NAME: prints the path of a tool, which is installed if it is not there.
tool() {
  python3 scripts/tools.py "$1"
}

# finish: says what failed, and fails if anything did.
finish() {
  if ((${#failed[@]})); then
    printf '\n== failed:'
    printf ' %s;' "${failed[@]}"
    printf '\n'
    return 1
  fi
}
