//! The text of the benchmarks: markdown as models write it.

use std::fmt::Write;

/// One exchange: headings, paragraphs in one long line each, a list, code in two languages, a table.
const EXCHANGE: &str = "\
## You

The test NUMBER fails since yesterday, only on the second run. What is wrong with `load` in `src/load.lua`?

## Co

### What happens

The function keeps what it has read in **one table for all files**, and `load` returns that table itself, so the \
second caller changes what the first one was given. See [the manual](https://www.lua.org/manual/5.1/) on tables, and \
number NUMBER of the list below; *nothing else* in the module depends on it.

- `load` returns a copy, which costs one allocation a file
- the cache is keyed by its *whole* path, no longer by its last part
- **the test** that failed reads two files of one name

```lua
local cache = {}

--- Returns the lines of a file.
local function load(path)
  local lines = cache[path]
  if not lines then
    lines = {}
    for line in io.lines(path) do
      lines[#lines + 1] = line
    end
    cache[path] = lines
  end
  return { unpack(lines) }
end
```

1. Run the test again with `cargo test load -- NUMBER`.
2. If it still fails, look at the order:

```rust
#[test]
fn two_files_of_one_name() {
    let first = load(\"a/name\");
    assert_ne!(first, load(\"b/name\"), \"{NUMBER}\");
}
```

| file | lines | read |
|---|---|---|
| `a/name` | 12 | once |
| `b/name` | NUMBER | twice |

> Nothing was changed outside of `src/load.lua`.

";

/// A conversation of at least so many lines.
pub(super) fn history(lines: usize) -> String {
    let mut text = String::new();
    for number in 1..=lines.div_ceil(EXCHANGE.lines().count()) {
        text.push_str(&EXCHANGE.replace("NUMBER", &number.to_string()));
    }
    text
}

/// The token of that number in an answer without an end.
pub(super) fn token(number: usize) -> String {
    let mut text = String::new();
    let place = number % 100;
    let _ = match place {
        0 => write!(text, "\n\n### Part {}\n\nHere", number / 100),
        20 => write!(text, " **bold"),
        21 => write!(text, "** and"),
        30 | 40 | 50 => write!(text, "\n- item"),
        60 => write!(text, "\n\n```lua\nlocal"),
        80 => write!(text, "\n```\n\nAnd"),
        61..80 if place.is_multiple_of(6) => write!(text, "\n  call("),
        61..80 => write!(text, " name{place},"),
        _ if place.is_multiple_of(12) => write!(text, " `word`"),
        _ => write!(text, " tok{place}"),
    };
    text
}
