//! Walks the grammar's tree and collects the simple commands.

use std::ops::Range;

use tree_sitter::Node;

use super::script::{Redirect, Script, SimpleCommand};
use super::word::Word;
use crate::reason::Reason;

/// The largest depth up to which the grammar's tree is read.
const MAX_DEPTH: usize = 200;
/// The largest number of simple commands that are read.
const MAX_COMMANDS: usize = 400;

/// Reads the whole tree of `source`.
pub(super) fn read(source: &str, root: Node) -> Script {
    let mut reader = Reader {
        source,
        script: Script::default(),
        dirs: Directories::default(),
    };
    reader.node(root, 0);
    reader.script
}

struct Reader<'a> {
    source: &'a str,
    script: Script,
    dirs: Directories,
}

/// The current and the previous directory of the shell, as the text names them.
#[derive(Debug, Clone, Default)]
struct Directories {
    here: Option<String>,
    before: Option<String>,
}

impl Reader<'_> {
    fn node(&mut self, node: Node, depth: usize) {
        if depth > MAX_DEPTH || self.script.commands.len() >= MAX_COMMANDS {
            self.too_much();
            return;
        }
        if node.is_missing() {
            self.problem("co cannot read it as bash", node.byte_range());
        }
        match node.kind() {
            "command" | "declaration_command" | "unset_command" => self.command(node, depth),
            "test_command" | "((" => self.test(node, depth),
            "variable_assignment" => self.assignment(node, depth),
            "redirected_statement" => self.redirected(node, depth),
            // One behind the start of a here-document, `cat <<X >file`.
            "file_redirect" => {
                let mut simple = self.simple(node);
                self.redirect(node, &mut simple);
                self.finish(simple);
                self.children(node, depth);
            }
            "function_definition" => self.function(node, depth),
            "subshell" | "command_substitution" | "process_substitution" | "pipeline" => {
                // A `cd` in it does not affect the commands after it.
                let outer = self.dirs.clone();
                self.children(node, depth);
                self.dirs = outer;
            }
            "ERROR" => {
                self.problem("co cannot read it as bash", node.byte_range());
                self.children(node, depth);
            }
            // In an expression it is an operator.
            "&" if node
                .parent()
                .is_none_or(|it| it.kind() != "binary_expression") =>
            {
                self.problem(
                    "leaves a command running in the background",
                    node.byte_range(),
                )
            }
            _ => self.children(node, depth),
        }
    }

    fn children(&mut self, node: Node, depth: usize) {
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            self.node(child, depth + 1);
        }
    }

    fn too_much(&mut self) {
        if !self.script.incomplete {
            self.script.incomplete = true;
            self.script.problems.push(Reason::whole(
                "it holds too many commands, or nests them too deeply",
            ));
        }
    }

    fn problem(&mut self, why: &str, span: Range<usize>) {
        // The grammar's spans of errors may end inside a character.
        let span = self.source.get(span.clone()).map(|_| span);
        let reason = Reason {
            text: why.to_owned(),
            span,
        };
        if !self
            .script
            .problems
            .iter()
            .any(|known| known.text == reason.text)
        {
            self.script.problems.push(reason);
        }
    }

    /// Reads a command with a name, its assignments and its redirections.
    fn command(&mut self, node: Node, depth: usize) {
        let mut simple = self.simple(node);
        let mut words: Vec<Range<usize>> = Vec::new();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            let here = child.byte_range();
            match child.kind() {
                "variable_assignment" if words.is_empty() => {
                    simple.assigned.push(self.variable(child));
                }
                "file_redirect" | "herestring_redirect" => self.redirect(child, &mut simple),
                // Nodes without a blank between them are one word for bash.
                _ => match words.last_mut() {
                    Some(last) if last.end == here.start => last.end = here.end,
                    _ => words.push(here),
                },
            }
        }
        let words = words.into_iter().map(|span| Word::read(self.source, span));
        simple.words.extend(words);
        self.finish(simple);
        self.nested(node, depth);
    }

    /// Reads the commands inside the words, assignments and redirections of a command, such as substitutions.
    fn nested(&mut self, node: Node, depth: usize) {
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "variable_assignment" | "file_redirect" | "herestring_redirect" => {
                    self.children(child, depth + 1);
                }
                _ => self.node(child, depth + 1),
            }
        }
    }

    /// Reads `[ … ]`, `[[ … ]]` or `(( … ))`. The grammar treats them as expressions.
    fn test(&mut self, node: Node, depth: usize) {
        let mut simple = self.simple(node);
        let text = &self.source[node.byte_range()];
        let names = ["[[", "[", "(("];
        let name = names.into_iter().find(|name| text.starts_with(name));
        let name = name.unwrap_or_default();
        let span = node.start_byte()..node.start_byte() + name.len();
        simple.words.push(Word::literal(name.to_owned(), span));
        self.finish(simple);
        self.children(node, depth);
    }

    fn assignment(&mut self, node: Node, depth: usize) {
        let mut simple = self.simple(node);
        simple.assigned.push(self.variable(node));
        self.finish(simple);
        self.children(node, depth);
    }

    fn function(&mut self, node: Node, depth: usize) {
        if let Some(name) = node.child_by_field_name("name") {
            let name = self.source[name.byte_range()].to_owned();
            self.script.fork_bomb |= calls_itself(node, &name, self.source);
            self.script.functions.push(name);
        }
        self.children(node, depth);
    }

    /// Reads a statement with redirections. If the statement is a loop or a group, the redirections form a command of their own.
    fn redirected(&mut self, node: Node, depth: usize) {
        let body = node.child_by_field_name("body");
        let own = self.script.commands.len();
        let mut cursor = node.walk();
        let (redirects, others): (Vec<Node>, Vec<Node>) = node
            .children(&mut cursor)
            .partition(|child| matches!(child.kind(), "file_redirect" | "herestring_redirect"));
        let documents: Vec<Word> = others.iter().filter_map(|it| self.document(*it)).collect();
        for child in others {
            self.node(child, depth + 1);
        }
        let is_command = body.is_some_and(|body| body.kind() == "command");
        let mut simple = match self.script.commands.get_mut(own) {
            Some(command) if is_command => std::mem::take(command),
            _ => self.simple(node),
        };
        for redirect in &redirects {
            self.redirect(*redirect, &mut simple);
        }
        simple.documents = documents;
        match self.script.commands.get_mut(own) {
            Some(command) if is_command => *command = simple,
            _ if simple.redirects.is_empty() => {}
            _ => self.finish(simple),
        }
        for redirect in redirects {
            self.children(redirect, depth + 1);
        }
    }

    /// Returns the text of a here-document. Variables and substitutions in it stay as written.
    fn document(&self, redirect: Node) -> Option<Word> {
        let mut cursor = redirect.walk();
        let mut children = redirect.children(&mut cursor);
        let body = children.find(|child| child.kind() == "heredoc_body")?;
        let span = body.byte_range();
        Some(Word::literal(
            self.source.get(span.clone())?.to_owned(),
            span,
        ))
    }

    fn redirect(&mut self, node: Node, simple: &mut SimpleCommand) {
        let mut operator = String::new();
        let mut words: Vec<Range<usize>> = Vec::new();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            let here = child.byte_range();
            if words.is_empty() && (child.kind() == "file_descriptor" || !child.is_named()) {
                operator.push_str(&self.source[here]);
            } else if let Some(last) = words.last_mut().filter(|last| last.end == here.start) {
                last.end = here.end;
            } else {
                words.push(here);
            }
        }
        let mut words = words.into_iter().map(|span| Word::read(self.source, span));
        let Some(target) = words.next() else {
            return;
        };
        simple.redirects.push(Redirect {
            span: node.start_byte()..target.span.end,
            operator,
            target,
        });
        // The grammar reads words after a redirection's target as more targets. For bash they are arguments.
        simple.words.extend(words);
        simple.words.sort_by_key(|word| word.span.start);
        simple.span.start = simple.span.start.min(node.start_byte());
        simple.span.end = simple.span.end.max(node.end_byte());
    }

    fn simple(&self, node: Node) -> SimpleCommand {
        SimpleCommand {
            span: node.byte_range(),
            dir: self.dirs.here.clone(),
            ..SimpleCommand::default()
        }
    }

    fn variable(&self, assignment: Node) -> String {
        let text = &self.source[assignment.byte_range()];
        let name = text.split(['=', '+', '[']).next();
        name.unwrap_or_default().to_owned()
    }

    /// Adds a command. `NAME=value` words before its name are assignments, also after a redirection.
    fn finish(&mut self, mut simple: SimpleCommand) {
        let assigns = |word: &Word| {
            let name = word.text().split_once('=').map(|(name, _)| name);
            name.is_some_and(is_name)
        };
        let count = simple.words.iter().take_while(|it| assigns(it)).count();
        for word in simple.words.drain(..count) {
            let name = word.text().split('=').next().unwrap_or_default();
            simple.assigned.push(name.to_owned());
        }
        if let Some(target) = change_of_directory(&simple.words) {
            self.dirs.enter(&target);
        }
        self.script.commands.push(simple);
    }
}

impl Directories {
    fn enter(&mut self, target: &str) {
        if target == "-" {
            std::mem::swap(&mut self.here, &mut self.before);
        } else {
            let there = path_from(self.here.as_deref(), target);
            self.before = self.here.replace(there);
        }
    }
}

/// Joins a directory and a path without resolving them.
pub(crate) fn path_from(dir: Option<&str>, path: &str) -> String {
    match dir {
        Some(dir) if !path.starts_with(['/', '~', '$']) => format!("{dir}/{path}"),
        _ => path.to_owned(),
    }
}

/// Returns the directory of a `cd` or `pushd`, as written.
fn change_of_directory(words: &[Word]) -> Option<String> {
    let (name, rest) = words.split_first()?;
    if !matches!(name.text(), "cd" | "pushd") {
        return None;
    }
    let mut texts = rest.iter().map(Word::text);
    let operand = texts.find(|text| *text == "-" || !text.starts_with('-'));
    Some(operand.unwrap_or("~").to_owned())
}

/// Returns true if a text is the name of a shell variable.
fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns true if the body of a function runs the function itself, in a pipeline or in the background.
fn calls_itself(function: Node, name: &str, source: &str) -> bool {
    let Some(body) = function.child_by_field_name("body") else {
        return false;
    };
    let text = &source[body.byte_range()];
    let calls = text
        .split(|c: char| c.is_whitespace() || "|&;(){}".contains(c))
        .filter(|word| *word == name)
        .count();
    calls > 1 || (calls == 1 && text.contains(['&', '|']))
}
