//! The types of a parsed script.

use std::ops::Range;

use crate::reason::Reason;
use crate::text;
use crate::word::Word;

/// More simple commands than this are refused.
pub(super) const MAX_COMMANDS: usize = 50;

/// A parsed command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// All simple commands in order. With `refusals`, those that could be found.
    pub commands: Vec<Simple>,
    /// Words outside of any command in forms that are refused, such as the words of a `for` loop.
    pub loose: Vec<Word>,
    /// The pipelines, as indexes into `commands`. Not valid with `refusals`.
    pub pipelines: Vec<(Join, Vec<usize>)>,
    /// Reasons why a part of the text is not understood.
    pub refusals: Vec<Reason>,
    /// True if a part is too long, too large or nested too deeply to be read.
    pub incomplete: bool,
    /// True if a function calls itself in a pipeline or in the background.
    pub fork_bomb: bool,
    /// Spans that a subshell runs, outer spans first. A `cd` in them does not affect the commands after them.
    pub subshells: Vec<Range<usize>>,
}

/// The operator between a pipeline and the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    Then,
    And,
    Or,
}

/// One simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Simple {
    pub span: Range<usize>,
    pub assignments: Vec<(String, Word)>,
    pub words: Vec<Word>,
    pub redirects: Vec<Redirect>,
}

/// A redirection. The operator includes the descriptor: `2>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    pub span: Range<usize>,
    pub operator: String,
    pub target: Option<Word>,
}

impl Script {
    /// Changes each span to the text before continued lines were joined.
    pub(super) fn shift(&mut self, joined: &text::Joined) {
        let fix = |span: &mut Range<usize>| {
            *span = joined.original(span.start)..joined.original(span.end);
        };
        for reason in &mut self.refusals {
            reason.span.iter_mut().for_each(fix);
        }
        self.subshells.iter_mut().for_each(fix);
        for command in &mut self.commands {
            fix(&mut command.span);
            for word in &mut command.words {
                fix(&mut word.span);
            }
            for redirect in &mut command.redirects {
                fix(&mut redirect.span);
            }
        }
    }
}
