//! Checks build tools, of which only `cargo --version` and similar forms are proved.

use crate::args::Arg;
use crate::facts::LocalFacts;
use crate::programs::Program;
use crate::reason::Reason;
use crate::special::trusted::check_started_programs;

/// Files by which a workspace chooses the version and path of a tool. `package.json` is not one of them: it only chooses
/// among versions that the person installed, and every project of that language has one.
const VERSION_FILES: [&str; 16] = [
    "rust-toolchain",
    "rust-toolchain.toml",
    ".tool-versions",
    "mise.toml",
    "mise.local.toml",
    ".mise.toml",
    ".mise.local.toml",
    ".mise",
    ".config/mise.toml",
    ".config/mise/config.toml",
    ".python-version",
    ".node-version",
    ".nvmrc",
    ".go-version",
    ".java-version",
    ".volta",
];

/// Allows one word that asks for the version, if no file of the workspace chooses the program.
pub(super) fn check(
    name: &str,
    program: &Program,
    args: &[Arg],
    local: &LocalFacts,
) -> Vec<Reason> {
    let asks = match args {
        [only] => program.options.contains_key(&only.text),
        _ => false,
    };
    if !asks {
        return vec![Reason::whole(format!(
            "`{name}` is only known to look when it is asked for its version"
        ))];
    }
    if let Some(path) = local.facts.find_upward(local.cwd, &VERSION_FILES) {
        return vec![Reason::whole(format!(
            "`{}` may choose which `{name}` runs",
            path.display()
        ))];
    }
    // `npm` is a script that `node` runs.
    let runs = (name == "npm").then_some("node");
    check_started_programs(name, runs.as_slice(), local)
}
