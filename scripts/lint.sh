#!/usr/bin/env bash
# Check, without running it, everything that can be checked so. With --format, mend formats instead.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/parts.sh

lua=(build.lua lua tests/lua tests/it/editor demo)

lua_types() {
  # The types of Neovim's own functions come with Neovim.
  local runtime
  runtime=$("$nvim" --headless --clean -c 'lua io.stdout:write(vim.env.VIMRUNTIME)' -c 'quit')
  local check=("$emmylua" --config .emmyrc.json --warnings-as-errors)
  VIMRUNTIME=$runtime "${check[@]}" "${lua[@]}" || return
  # `plugin` in a run of its own: else `require('co')` sometimes means plugin/co.lua, which has no types.
  VIMRUNTIME=$runtime "${check[@]}" lua plugin
}

rust_docs() {
  RUSTDOCFLAGS='-D warnings' cargo doc --workspace --locked --no-deps --document-private-items
}

shell_syntax() {
  local file status=0
  for file in .ci/run scripts/*.sh; do
    bash -n "$file" || status=1
  done
  return $status
}

python_syntax() {
  python3 -W error - scripts/*.py scripts/agents/*.py tests/setup/*.py <<'PYTHON'
import pathlib, sys
for name in sys.argv[1:]:
    compile(pathlib.Path(name).read_text(), name, "exec")
PYTHON
}

stylua=$(tool stylua)

if [[ ${1-} == --format ]]; then
  part 'rustfmt' cargo fmt
  part 'StyLua' "$stylua" "${lua[@]}" plugin
  finish
  exit
fi

nvim=$(tool nvim)
typos=$(tool typos)
emmylua=$(tool emmylua)

part 'rustfmt' cargo fmt --check
part 'StyLua' "$stylua" --check "${lua[@]}" plugin
part 'spelling' "$typos"
part 'shell syntax' shell_syntax
part 'Python syntax' python_syntax
part 'Lua types' lua_types
part 'clippy' cargo clippy --workspace --all-targets --locked -- -D warnings
part 'Rust documentation' rust_docs
finish
