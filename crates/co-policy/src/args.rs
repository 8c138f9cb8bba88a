//! Words of a command after bash expanded them.

use std::ops::Range;

/// One word of a command after expansion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arg {
    pub text: String,
    pub span: Range<usize>,
    /// A glob that starts with a wildcard came to this.
    pub loose_glob: bool,
    /// Holds a variable: its text is what was written.
    pub dynamic: bool,
}

/// A command of a pipeline, as far as xargs must know it.
pub(crate) struct PipelineStage<'a> {
    pub name: &'a str,
    pub args: &'a [Arg],
}
