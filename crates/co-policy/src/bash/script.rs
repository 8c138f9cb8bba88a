//! The simple commands of a parsed text.

use std::ops::Range;

use super::Word;
use crate::reason::Reason;

/// A parsed text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// All simple commands, in the order of the text.
    pub commands: Vec<SimpleCommand>,
    /// The names of the functions that the text defines.
    pub functions: Vec<String>,
    /// Reasons why the text as a whole cannot be sorted.
    pub problems: Vec<Reason>,
    /// True if a part is too long, too large or nested too deeply to be read.
    pub incomplete: bool,
    /// True if a function calls itself in a pipeline or in the background.
    pub fork_bomb: bool,
}

/// A simple command: a program with its words, a builtin, or an assignment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimpleCommand {
    pub span: Range<usize>,
    pub words: Vec<Word>,
    /// The names of the variables that are set before the words.
    pub assigned: Vec<String>,
    pub redirects: Vec<Redirect>,
    /// The texts of its here-documents.
    pub documents: Vec<Word>,
    /// The directory that an earlier `cd` names, as written; `None` if it runs where the text starts.
    pub dir: Option<String>,
}

/// A redirection. The operator includes the descriptor: `2>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    pub span: Range<usize>,
    pub operator: String,
    pub target: Word,
}

impl Script {
    /// A text of which nothing could be read.
    pub(super) fn unread(why: impl Into<String>) -> Self {
        Self {
            problems: vec![Reason::whole(why)],
            incomplete: true,
            ..Self::default()
        }
    }

    /// Changes every span.
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
    /// A command of literal words, with the span of each.
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

    /// True if bash computes one of its words or targets.
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
    /// True if it writes to anything but a descriptor, `/dev/null` or the command's own output.
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
