//! The types for a parsed command line and its simple commands.

use std::ops::Range;

use super::Word;
use crate::reason::Reason;

/// A parsed command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// All simple commands, in the order of the text.
    pub commands: Vec<SimpleCommand>,
    /// The names of the functions that the command line defines.
    pub functions: Vec<String>,
    /// The reasons why the command line as a whole cannot be sorted.
    pub problems: Vec<Reason>,
    /// True if a part of the command line is too long, too large or nested too deeply to be parsed.
    pub incomplete: bool,
    /// True if a function calls itself in a pipeline or in the background.
    pub fork_bomb: bool,
}

/// A simple command: a program with its words, a builtin, or an assignment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimpleCommand {
    pub span: Range<usize>,
    pub words: Vec<Word>,
    /// The names of the variables that are assigned before the words.
    pub assigned: Vec<String>,
    pub redirects: Vec<Redirect>,
    /// The texts of the command's here-documents.
    pub documents: Vec<Word>,
    /// The directory that an earlier `cd` names, as written. It is `None` if the command runs in the directory where the command
    /// line starts.
    pub dir: Option<String>,
}

/// A redirection. The operator includes the file descriptor, such as `2>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    pub span: Range<usize>,
    pub operator: String,
    pub target: Word,
}

impl Script {
    /// Returns a script without commands, for a command line that cannot be parsed. `why` is the reason.
    pub(super) fn unread(why: impl Into<String>) -> Self {
        Self {
            problems: vec![Reason::whole(why)],
            incomplete: true,
            ..Self::default()
        }
    }

    /// Applies `change` to every span in the script.
    pub(crate) fn map_spans(&mut self, change: impl Fn(&mut Range<usize>)) {
        for problem in &mut self.problems {
            problem.span.iter_mut().for_each(&change);
        }
        for command in &mut self.commands {
            command.map_spans(&change);
        }
    }
}

impl SimpleCommand {
    /// Makes a command of literal words, each with its span.
    pub(crate) fn literal(words: impl IntoIterator<Item = (String, Range<usize>)>) -> Self {
        let words: Vec<Word> = words
            .into_iter()
            .map(|(text, span)| Word::literal(text, span))
            .collect();
        Self {
            span: 0..words.last().map_or(0, |word| word.span.end),
            words,
            ..Self::default()
        }
    }

    pub(crate) fn map_spans(&mut self, change: impl Fn(&mut Range<usize>)) {
        change(&mut self.span);
        for word in self.words.iter_mut().chain(&mut self.documents) {
            change(&mut word.span);
        }
        for redirect in &mut self.redirects {
            change(&mut redirect.span);
            change(&mut redirect.target.span);
        }
    }

    /// Returns the words as text. Braces are expanded; variables and globs stay as written.
    pub fn texts(&self) -> Vec<String> {
        let forms = self.words.iter().flat_map(Word::forms);
        forms.cloned().collect()
    }

    /// Returns true if bash computes one of the words or redirection targets.
    pub(crate) fn computes(&self) -> bool {
        let targets = self.redirects.iter().map(|it| &it.target);
        !self.words.iter().chain(targets).all(Word::is_literal)
    }

    /// Returns the targets of the redirections that write to a file.
    pub fn writes(&self) -> impl Iterator<Item = &Word> {
        let to_file = |redirect: &&Redirect| redirect.writes_file();
        self.redirects.iter().filter(to_file).map(|it| &it.target)
    }
}

impl Redirect {
    /// Returns true if the redirection writes to a file. Descriptors, `/dev/null` and the command's own output do not count.
    fn writes_file(&self) -> bool {
        const OWN_OUTPUT: [&str; 3] = ["/dev/null", "/dev/stdout", "/dev/stderr"];
        let target = self.target.text();
        let descriptor = target.strip_prefix("/dev/fd/").unwrap_or(target);
        let number = !descriptor.is_empty() && descriptor.bytes().all(|b| b.is_ascii_digit());
        let duplicates = self.operator.ends_with('&') && (number || target == "-");
        let own = OWN_OUTPUT.contains(&target) || (target.starts_with("/dev/fd/") && number);
        self.operator.contains('>') && !duplicates && !(self.target.is_literal() && own)
    }
}
