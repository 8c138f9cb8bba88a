//! Reads simple commands from the grammar's tree. Every node is known or refused, and no text is skipped.

use std::ops::Range;

use tree_sitter::Node;

use super::forms::{RESERVED, calls_itself, describe, operator_is_whole, push_or_extend};
use super::script::{Join, MAX_COMMANDS, Redirect, Script, Simple};
use crate::reason::Reason;
use crate::word::{self, Word};

/// Deeper syntax trees are refused.
const MAX_DEPTH: usize = 200;
/// Kinds of nodes that a subshell runs.
const SUBSHELLS: [&str; 3] = ["subshell", "command_substitution", "process_substitution"];

/// A command or operator, in the order of the text.
enum ScriptEvent {
    Command(usize),
    Operator(&'static str, Range<usize>),
}

pub(super) struct ScriptReader<'a> {
    source: &'a str,
    events: Vec<ScriptEvent>,
    script: Script,
    /// The last command that is not inside a word of another command.
    last: Option<usize>,
}

impl<'a> ScriptReader<'a> {
    /// A reader that adds to `script`.
    pub(super) fn new(source: &'a str, script: Script) -> Self {
        Self {
            source,
            events: Vec::new(),
            script,
            last: None,
        }
    }

    fn refuse(&mut self, why: impl Into<String>, span: Range<usize>) {
        // Spans of refused forms may overlap, but a reason must name bytes that exist.
        let span = match self.source.get(span.clone()) {
            Some(_) => span,
            None => 0..self.source.len(),
        };
        let reason = Reason::at(why.into(), span);
        if !self.script.refusals.contains(&reason) && self.script.refusals.len() < 20 {
            self.script.refusals.push(reason);
        }
    }

    /// Reads the whole tree.
    pub(super) fn program(&mut self, root: Node) {
        if root.has_error() {
            self.refuse("it is not plain, complete bash", root.byte_range());
        }
        self.statements(root, 0..self.source.len(), 0);
    }

    /// Reads the children of a node that only lists statements and operators.
    fn statements(&mut self, node: Node, range: Range<usize>, depth: usize) {
        if self.is_too_deep(depth, &range) {
            return;
        }
        let mut at = range.start;
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            self.gap(at..child.start_byte(), true);
            at = at.max(child.end_byte());
            self.statement(child, depth + 1);
        }
        self.gap(at..range.end, true);
    }

    fn is_too_deep(&mut self, depth: usize, range: &Range<usize>) -> bool {
        let deep = depth > MAX_DEPTH;
        if deep {
            self.refuse("it is nested too deeply", range.clone());
            self.script.incomplete = true;
        }
        deep
    }

    /// Refuses text between nodes that is not blank.
    fn gap(&mut self, gap: Range<usize>, newlines: bool) {
        let blank = |c: char| matches!(c, ' ' | '\t') || (newlines && c == '\n');
        if gap.start < gap.end && !self.source[gap.clone()].chars().all(blank) {
            self.refuse("part of it is not understood", gap);
        }
    }

    fn statement(&mut self, node: Node, depth: usize) {
        let span = node.byte_range();
        match node.kind() {
            "command" => self.command(node, depth),
            "list" | "pipeline" => self.statements(node, span, depth),
            "redirected_statement" => self.redirected(node, depth),
            "test_command" if !self.source[span.clone()].starts_with("[[") => {
                let index = self.script.commands.len();
                self.bracket(span);
                self.add_nested(node, depth);
                self.last = Some(index);
            }
            "comment" => self.comment(&span),
            "\n" => {}
            ";" if self.source[span.end..].starts_with(['&', ';']) => {
                self.refuse("part of it is not understood", span);
            }
            ";" => self.events.push(ScriptEvent::Operator(";", span)),
            "&&" | "||" | "|" if self.begins_line(span.start) => {
                self.refuse("it is not plain, complete bash", span);
            }
            "&&" => self.events.push(ScriptEvent::Operator("&&", span)),
            "||" => self.events.push(ScriptEvent::Operator("||", span)),
            "|" => self.events.push(ScriptEvent::Operator("|", span)),
            other => {
                self.refuse(describe(other), span);
                self.add_refused(node, depth);
            }
        }
    }

    /// True at the start of a line, except after a continued line.
    fn begins_line(&self, at: usize) -> bool {
        let before = self.source[..at].trim_end_matches([' ', '\t']);
        before.ends_with('\n') && !before.ends_with("\\\n")
    }

    /// Refuses a comment that bash would not read as one: it must start a word and end with its line.
    fn comment(&mut self, span: &Range<usize>) {
        let before = self.source[..span.start].chars().next_back();
        let starts = before.is_none_or(|c| matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|'));
        let text = &self.source[span.clone()];
        let after = self.source[span.end..].chars().next();
        let ends = after.is_none_or(|c| c == '\n') && !text.contains('\n');
        if !starts || !ends || !text.starts_with('#') {
            self.refuse("part of it is not understood", span.clone());
        }
    }

    fn redirected(&mut self, node: Node, depth: usize) {
        if self.is_too_deep(depth, &node.byte_range()) {
            return;
        }
        let mut at = node.start_byte();
        let mut last = None;
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            self.gap(at..child.start_byte(), false);
            at = at.max(child.end_byte());
            match child.kind() {
                "file_redirect" | "herestring_redirect" | "heredoc_redirect" => {
                    let index = last.unwrap_or_else(|| {
                        self.script.commands.push(Simple {
                            span: child.byte_range(),
                            ..Simple::default()
                        });
                        self.events
                            .push(ScriptEvent::Command(self.script.commands.len() - 1));
                        self.script.commands.len() - 1
                    });
                    last = Some(index);
                    self.redirect(child, index);
                    self.add_nested(child, depth);
                }
                _ => {
                    self.statement(child, depth + 1);
                    last = self.last;
                }
            }
        }
        self.gap(at..node.end_byte(), false);
        if let Some(index) = last {
            self.sort_words(index);
        }
        self.last = last;
    }

    fn redirect(&mut self, node: Node, index: usize) {
        let span = node.byte_range();
        if node.kind() != "file_redirect" {
            self.refuse(describe(node.kind()), span);
            return;
        }
        let mut operator = String::new();
        let mut words: Vec<Range<usize>> = Vec::new();
        let mut at = span.start;
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            let here = child.byte_range();
            self.gap(at..here.start, false);
            let first = operator.is_empty();
            let touches = at == here.start;
            at = at.max(here.end);
            if child.kind() == "file_descriptor" || !child.is_named() {
                if !first && !touches || !words.is_empty() {
                    self.refuse("a redirection is not understood", here.clone());
                }
                operator.push_str(&self.source[here]);
            } else {
                push_or_extend(&mut words, here);
            }
        }
        self.gap(at..span.end, false);
        if !operator_is_whole(&self.source[..span.start], &operator) {
            self.refuse("a redirection is not understood", span.clone());
        }
        let mut words = words.into_iter();
        let target = words.next().map(|span| self.word(span));
        let simple = &mut self.script.commands[index];
        simple.span.end = simple.span.end.max(span.end);
        let end = target.as_ref().map_or(span.end, |target| target.span.end);
        simple.redirects.push(Redirect {
            span: span.start..end,
            operator,
            target,
        });
        // The grammar reads words after a redirection's target as more targets. For bash they are arguments.
        for extra in words {
            let extra = self.word(extra);
            self.script.commands[index].words.push(extra);
        }
    }

    /// Sorts the words of a command. Words such as `x=1` before the name are assignments, also after a redirection.
    fn sort_words(&mut self, index: usize) {
        let simple = &self.script.commands[index];
        let goes_on = |word: &Word| {
            let end = |redirect: &Redirect| redirect.span.end == word.span.start;
            simple.redirects.iter().any(end)
        };
        if let Some(word) = simple.words.iter().find(|word| goes_on(word)) {
            self.refuse("a redirection is not understood", word.span.clone());
        }
        let words = &mut self.script.commands[index].words;
        words.sort_by_key(|word| word.span.start);
        let assigns = |word: &&Word| {
            let name = word.raw.split_once('=').map(|(name, _)| name);
            name.is_some_and(word::is_name)
        };
        let count = words.iter().take_while(assigns).count();
        let first: Vec<Word> = words.drain(..count).collect();
        for word in first {
            let name = word.raw.split('=').next().unwrap_or_default().to_owned();
            let start = word.span.start + name.len() + 1;
            let value = self.word(start..word.span.end);
            self.script.commands[index].assignments.push((name, value));
        }
    }

    fn command(&mut self, node: Node, depth: usize) {
        let index = self.script.commands.len();
        self.script.commands.push(Simple {
            span: node.byte_range(),
            ..Simple::default()
        });
        self.events.push(ScriptEvent::Command(index));
        let mut words: Vec<Range<usize>> = Vec::new();
        let mut at = node.start_byte();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            let here = child.byte_range();
            self.gap(at..here.start, false);
            at = at.max(here.end);
            match child.kind() {
                "variable_assignment" if words.is_empty() => self.assignment(child, index),
                "file_redirect" | "herestring_redirect" | "heredoc_redirect" => {
                    self.redirect(child, index);
                }
                "command_name" | "word" | "string" | "raw_string" | "number" | "concatenation"
                | "simple_expansion" | "==" | "=~" | "$" => push_or_extend(&mut words, here),
                other => {
                    self.refuse(describe(other), here.clone());
                    push_or_extend(&mut words, here);
                }
            }
        }
        self.add_nested(node, depth);
        self.gap(at..node.end_byte(), false);
        for span in words {
            let word = self.word(span);
            self.script.commands[index].words.push(word);
        }
        self.sort_words(index);
        let first = self.script.commands[index].words.first();
        if let Some(word) = first
            && word.bare
            && RESERVED.contains(&word.raw.as_str())
        {
            let (why, span) = (
                format!("`{}` is a word of the shell's own", word.raw),
                word.span.clone(),
            );
            self.refuse(why, span);
        }
        self.last = Some(index);
    }

    /// Reads `[ … ]`: a command for bash, an expression for the grammar.
    fn bracket(&mut self, span: Range<usize>) {
        let words = word::split(self.source, span.clone());
        if !self.source[span.clone()].starts_with("[ ") {
            self.refuse(describe("test_command"), span.clone());
        }
        let words = words.into_iter().map(|span| self.word(span)).collect();
        self.events
            .push(ScriptEvent::Command(self.script.commands.len()));
        self.script.commands.push(Simple {
            span,
            words,
            ..Simple::default()
        });
    }

    fn assignment(&mut self, node: Node, index: usize) {
        let span = node.byte_range();
        let text = &self.source[span.clone()];
        let Some((name, _)) = text.split_once('=') else {
            self.refuse("an assignment is not understood", span);
            return;
        };
        if !word::is_name(name) {
            self.refuse("an assignment is not understood", span);
            return;
        }
        let name = name.to_owned();
        let start = span.start + name.len() + 1;
        let value = self.word(start..span.end);
        self.script.commands[index].assignments.push((name, value));
    }

    fn word(&mut self, span: Range<usize>) -> Word {
        let word = word::read(self.source, span.clone());
        if let Some(why) = &word.opaque {
            let why = (*why).to_owned();
            self.refuse(why, span);
        }
        word
    }

    /// Adds the commands inside a refused form, because rules apply to all commands.
    fn add_refused(&mut self, node: Node, depth: usize) {
        if depth > MAX_DEPTH || self.script.commands.len() > 4 * MAX_COMMANDS {
            self.script.incomplete = true;
            return;
        }
        if SUBSHELLS.contains(&node.kind()) {
            self.script.subshells.push(node.byte_range());
        }
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "command" => self.command(child, depth + 1),
                "redirected_statement" => self.redirected(child, depth + 1),
                kind => {
                    if ["word", "concatenation"].contains(&kind) {
                        let word = word::read(self.source, child.byte_range());
                        self.script.loose.push(word);
                    }
                    self.add_refused(child, depth + 1);
                }
            }
        }
        if node.kind() == "function_definition" && calls_itself(node, self.source) {
            self.script.fork_bomb = true;
        }
    }

    /// Adds the commands inside the words and redirections of a command: in substitutions, and after the start of a
    /// here-document, where the grammar puts the rest of the line.
    fn add_nested(&mut self, node: Node, depth: usize) {
        if self.is_too_deep(depth, &node.byte_range()) {
            return;
        }
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "command" => self.command(child, depth + 1),
                "redirected_statement" => self.redirected(child, depth + 1),
                "ERROR" => self.add_refused(child, depth + 1),
                kind if SUBSHELLS.contains(&kind) => self.add_refused(child, depth + 1),
                _ => self.add_nested(child, depth + 1),
            }
        }
    }

    /// Joins the events into pipelines and returns the script.
    pub(super) fn finish(mut self) -> Script {
        let mut join = Join::Then;
        let mut piped = false;
        let mut last: Option<usize> = None;
        let events = std::mem::take(&mut self.events);
        for event in events {
            match event {
                ScriptEvent::Command(index) => {
                    if let Some(before) = last {
                        let between = self.script.commands[before].span.end
                            ..self.script.commands[index].span.start;
                        let text = self.source.get(between.clone()).unwrap_or_default();
                        if !text.contains('\n') {
                            self.refuse("part of it is not understood", between);
                        }
                        join = Join::Then;
                    }
                    match (piped, self.script.pipelines.last_mut()) {
                        (true, Some((_, pipeline))) => pipeline.push(index),
                        _ => self.script.pipelines.push((join, vec![index])),
                    }
                    (piped, last, join) = (false, Some(index), Join::Then);
                }
                ScriptEvent::Operator(operator, span) => {
                    if last.take().is_none() {
                        self.refuse("an operator stands alone", span);
                    }
                    piped = operator == "|";
                    join = match operator {
                        "&&" => Join::And,
                        "||" => Join::Or,
                        _ => Join::Then,
                    };
                }
            }
        }
        self.script
    }
}
