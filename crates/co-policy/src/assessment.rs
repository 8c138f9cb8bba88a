//! The assessment of a command: [`crate::assess()`] makes it, [`crate::decide`] turns it into a verdict.

use std::ops::Range;

use crate::deny::Denied;
use crate::proved::Rewritten;
use crate::reason::Reason;
use crate::rules;

/// The findings about a whole command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assessment {
    /// The text of the command. An argument vector is quoted for a shell.
    pub command: String,
    pub segments: Vec<Segment>,
    /// Reasons why the command as a whole is not proved.
    pub refusals: Vec<Reason>,
    pub denied: Vec<Denied>,
    /// The words of every command in it, with the commands that wrappers such as `sudo` start.
    pub all_commands: Vec<Vec<String>>,
    pub destructive: bool,
    /// Rules of the workspace's own file.
    pub workspace_deny: Vec<rules::Pattern>,
    pub workspace_ask: Vec<rules::Pattern>,
    /// The error, if the workspace's own file cannot be read.
    pub workspace_error: Option<String>,
    /// True if a part is too long, too large or nested too deeply to be read. No rule can match that part.
    pub unread: bool,
    /// The words and redirection targets of each simple command, as bash expands them now, for each directory in which the
    /// command may run. A word with an unknown value stands as written.
    pub expanded: Vec<Vec<String>>,
    /// True if co reads a file itself and starts no process.
    pub in_process: bool,
    /// The locale in which a proved command runs.
    pub locale: &'static str,
}

/// The findings about one simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Segment {
    pub span: Range<usize>,
    /// The words after expansion; `None` if the value of one is unknown.
    pub words: Option<Vec<String>>,
    /// The program with its sub-command, for the setting `shell_safe_commands`.
    pub name: Vec<String>,
    /// Reasons why it is not proved. It is proved if there are none.
    pub unproved: Vec<Reason>,
    /// Reasons why no prefix rule covers it.
    pub uncovered: Vec<Reason>,
    /// True for `cd`, which starts no program.
    pub is_cd: bool,
    pub git: bool,
    /// The command as bash runs it, if the whole command is proved.
    pub rewritten: Option<Rewritten>,
}

impl Segment {
    /// Adds the findings about the same command in another directory.
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
