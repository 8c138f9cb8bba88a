//! The result of reading one command.

use std::ops::Range;

use crate::deny::Denied;
use crate::proved::Rewritten;
use crate::reason::Reason;
use crate::rules;

/// What was found of a whole command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assessment {
    /// The command; of an argument vector, the words as a shell would have them.
    pub command: String,
    pub segments: Vec<Segment>,
    /// Why the whole is not understood.
    pub refusals: Vec<Reason>,
    pub denied: Vec<Denied>,
    /// Words of every command in it, those inside wrappers too.
    pub all_commands: Vec<Vec<String>>,
    pub destructive: bool,
    /// What the workspace's own file adds.
    pub workspace_deny: Vec<rules::Pattern>,
    pub workspace_ask: Vec<rules::Pattern>,
    /// Why the workspace's own file cannot be read.
    pub workspace_error: Option<String>,
    /// Something in it is too long, too many or too deep to be read: no rule can be tried on that.
    pub unread: bool,
    /// The words of each simple command, and the targets of its redirections, as bash expands them now: once for each
    /// directory it may run in. A word that is not known before it runs is here as it is written.
    pub expanded: Vec<Vec<String>>,
    /// co itself reads; no process starts.
    pub in_process: bool,
    /// The locale that a proved command runs in.
    pub locale: &'static str,
}

/// One simple command of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Segment {
    pub span: Range<usize>,
    /// The words after expansion; none where one cannot be known.
    pub words: Option<Vec<String>>,
    /// The program with its sub-command, for the list of safe commands.
    pub name: Vec<String>,
    /// Why it is not proved; empty is proved.
    pub unproved: Vec<Reason>,
    /// Why a prefix rule does not cover it.
    pub uncovered: Vec<Reason>,
    /// A `cd`, which is no program.
    pub is_cd: bool,
    pub git: bool,
    /// The command as it runs if all of it is proved.
    pub rewritten: Option<Rewritten>,
}

impl Segment {
    /// Joins what was found of the same command in another directory.
    pub(crate) fn merge(&mut self, other: Self) {
        for (mine, theirs) in [
            (&mut self.unproved, other.unproved),
            (&mut self.uncovered, other.uncovered),
        ] {
            for reason in theirs {
                if !mine.contains(&reason) {
                    mine.push(reason);
                }
            }
        }
        if self.words != other.words {
            self.words = None;
        }
        if self.rewritten != other.rewritten {
            let text = "its file names depend on whether an earlier `cd` succeeds";
            self.unproved
                .push(Reason::at(text.to_owned(), self.span.clone()));
        }
    }
}
