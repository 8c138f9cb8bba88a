//! A script as a list of simple commands.

use std::ops::Range;

use crate::reason::Reason;
use crate::text;
use crate::word::Word;

/// More simple commands than this are refused.
pub(super) const MAX_COMMANDS: usize = 50;

/// What was read of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// Every simple command found, in order; where `refusals` is not empty, as far as they could be made out.
    pub commands: Vec<Simple>,
    /// Words of forms that are refused, outside of any command: those that a loop goes through.
    pub loose: Vec<Word>,
    /// The and-or lists of pipelines, by index into `commands`; meaningless where there are refusals.
    pub pipelines: Vec<(Join, Vec<usize>)>,
    /// Why the text is not understood whole.
    pub refusals: Vec<Reason>,
    /// Something in it was not looked into, for its length, its number or its depth.
    pub incomplete: bool,
    /// True where a function calls itself in a pipeline or in the background.
    pub fork_bomb: bool,
    /// Where a shell of its own runs a part of it, the outer ones first: a `cd` in there moves nothing behind it.
    pub subshells: Vec<Range<usize>>,
}

/// What connects a pipeline to the one before it.
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

/// A redirection, its operator with the descriptor before it: `2>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    pub span: Range<usize>,
    pub operator: String,
    pub target: Option<Word>,
}

impl Script {
    /// Moves every span back to the text as it was before continued lines were joined.
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
