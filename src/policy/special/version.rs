//! `cargo --version` and its like: what the tools that build things say of themselves.

use crate::policy::Reason;
use crate::policy::options::Arg;
use crate::policy::programs::Program;
use crate::policy::review::Scene;

/// Files by which a workspace chooses which version of a tool runs, and from where.
const CHOOSERS: [&str; 16] = [
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

/// Says which `node` and which package manager a project wants; Volta and Corepack heed it.
const PACKAGE: &str = "package.json";

/// One word that only asks, and nothing in the workspace that chooses who answers.
pub(super) fn check(name: &str, program: &Program, args: &[Arg], scene: &Scene) -> Vec<Reason> {
    let asks = match args {
        [only] => program.options.contains_key(&only.text),
        _ => false,
    };
    if !asks {
        return vec![Reason::whole(format!(
            "`{name}` is only known to look when it is asked for its version"
        ))];
    }
    let choosers: Vec<&str> = match name {
        "node" | "npm" | "yarn" | "pnpm" => CHOOSERS.into_iter().chain([PACKAGE]).collect(),
        _ => CHOOSERS.to_vec(),
    };
    if let Some(path) = scene.facts.above(scene.cwd, &choosers) {
        return vec![Reason::whole(format!(
            "`{}` may choose which `{name}` runs",
            path.display()
        ))];
    }
    // `npm` is a script that `node` runs.
    let runs = (name == "npm").then_some("node");
    super::archive::trusted(name, runs.as_slice(), scene)
}
