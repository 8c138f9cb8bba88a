//! The reasons why a command cannot be confined.

use std::path::PathBuf;

/// The reason why a command cannot be confined, in one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SandboxRefusal {
    /// The system or the path of the workspace does not allow the confinement. Contains a sentence with advice.
    #[error("{0}")]
    Unable(String),
    /// The secrets cannot be hidden. A person may decide to run the command without hiding them.
    #[error(transparent)]
    Unready(#[from] HidingRefusal),
}

/// The reason why the secrets of a workspace cannot be hidden from a read-only command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HidingRefusal {
    #[error("co has not looked for secrets everywhere in {}, so it cannot hide them", .0.display())]
    NotSurveyed(PathBuf),
    #[error("co cannot hide the secrets in {}, because that takes {rules} rules", workspace.display())]
    TooManyRules { workspace: PathBuf, rules: usize },
    #[error("co cannot protect {}, because it was moved or replaced each time before the command could start: end the program that does that", .0.display())]
    Moving(PathBuf),
}
