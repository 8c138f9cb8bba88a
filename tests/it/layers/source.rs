//! As much of Rust as it takes to see which paths a file names.

/// What a file names and declares, without what only tests are built from.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Full paths; those to the crate's own start with `crate`. `*` stands for all.
    pub(super) paths: Vec<Vec<String>>,
    pub(super) modules: Vec<Module>,
}

/// `mod name;`
#[derive(Debug)]
pub(super) struct Module {
    /// Below the file's own module; inline modules come first: `inner/name`.
    pub(super) name: String,
    /// Under `#[cfg(test)]`.
    pub(super) test: bool,
}

/// Reads the text of the file that is the module `place` of its crate.
pub(super) fn read(text: &str, place: &[String]) -> Found {
    let mut reader = Reader {
        tokens: tokens(text),
        at: 0,
        place: place.to_vec(),
        inline: Vec::new(),
        found: Found::default(),
    };
    while reader.at < reader.tokens.len() {
        reader.step();
    }
    reader.found
}

struct Reader {
    tokens: Vec<String>,
    at: usize,
    /// Where we are, inline modules included.
    place: Vec<String>,
    /// For each open brace, whether it is an inline module's.
    inline: Vec<bool>,
    found: Found,
}

impl Reader {
    fn peek(&self, ahead: usize) -> &str {
        self.tokens.get(self.at + ahead).map_or("", String::as_str)
    }

    fn step(&mut self) {
        let is = |reader: &Self, want: &[&str]| {
            want.iter()
                .enumerate()
                .all(|(ahead, want)| reader.peek(ahead) == *want)
        };
        if is(self, &["#", "[", "cfg", "(", "test", ")", "]"]) {
            self.at += 7;
            self.skip_item();
        } else if self.peek(0) == "mod" && self.peek(2) == "{" {
            self.place.push(self.peek(1).to_owned());
            self.inline.push(true);
            self.at += 3;
        } else if self.peek(0) == "mod" && self.peek(2) == ";" {
            self.declare(false);
            self.at += 3;
        } else if word(self.peek(0)) && !self.after_path_or_dot() {
            self.path(&[]);
        } else {
            if self.peek(0) == "{" {
                self.inline.push(false);
            } else if self.peek(0) == "}" && self.inline.pop() == Some(true) {
                self.place.pop();
            }
            self.at += 1;
        }
    }

    /// A field or method is no path.
    fn after_path_or_dot(&self) -> bool {
        self.at > 0 && self.tokens[self.at - 1] == "."
    }

    fn declare(&mut self, test: bool) {
        let depth = self.inline.iter().filter(|inline| **inline).count();
        let mut names = self.place[self.place.len() - depth..].to_vec();
        names.push(self.peek(1).to_owned());
        self.found.modules.push(Module {
            name: names.join("/"),
            test,
        });
    }

    /// Skips what `#[cfg(test)]` is on: to its semicolon, or past its braces.
    fn skip_item(&mut self) {
        let mut depth = 0_usize;
        while self.at < self.tokens.len() {
            if depth == 0 && self.peek(0) == "mod" && self.peek(2) == ";" {
                self.declare(true);
            }
            match self.peek(0) {
                "{" | "(" | "[" => depth += 1,
                // A field or an arm was the last of its block, whose end is not ours.
                "}" | ")" | "]" if depth == 0 => return,
                "}" | ")" | "]" => depth -= 1,
                _ => {}
            }
            let ended = match self.peek(0) {
                ";" => depth == 0,
                // `use a::{b};` goes on after its brace.
                "}" => depth == 0 && self.peek(1) != ";",
                _ => false,
            };
            self.at += 1;
            if ended {
                return;
            }
        }
    }

    /// Reads one path or tree of paths, `before` being what stands before it.
    fn path(&mut self, before: &[String]) {
        let mut path = before.to_vec();
        loop {
            match self.peek(0) {
                "{" => {
                    self.at += 1;
                    while !matches!(self.peek(0), "}" | "") {
                        if word(self.peek(0)) || matches!(self.peek(0), "*" | "{") {
                            self.path(&path);
                        } else {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    return;
                }
                "*" => {
                    path.push("*".to_owned());
                    self.at += 1;
                    break;
                }
                name if word(name) => {
                    path.push(name.to_owned());
                    self.at += 1;
                }
                _ => break,
            }
            let tree = word(self.peek(1)) || matches!(self.peek(1), "{" | "*");
            if self.peek(0) != "::" || !tree {
                break;
            }
            self.at += 1;
        }
        if self.peek(0) == "as" {
            // The other name; a crate renamed may be anything.
            self.at += 2;
            if path.len() == 1 && path[0] == "crate" {
                path.push("*".to_owned());
            }
        }
        self.found.paths.extend(self.resolve(path));
    }

    /// Turns `self` and `super` into a path from the crate's root.
    fn resolve(&self, path: Vec<String>) -> Option<Vec<String>> {
        let ups = path.iter().take_while(|name| *name == "super").count();
        let from_self = usize::from(path.first().is_some_and(|name| name == "self"));
        if path == ["crate"] {
            return None;
        }
        if ups + from_self == 0 {
            return Some(path);
        }
        let base = self.place.len().saturating_sub(ups);
        let base = self.place[..base].iter().cloned();
        let rest = path.into_iter().skip(ups + from_self);
        let full: Vec<String> = ["crate".to_owned()]
            .into_iter()
            .chain(base)
            .chain(rest)
            .collect();
        (full.len() > 1).then_some(full)
    }
}

fn word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Splits Rust into words, `::` and single signs; comments, literals and lifetimes are left out.
fn tokens(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            comment(rest)
        } else if let Some(length) = literal(rest) {
            length
        } else if first == '_' || first.is_alphanumeric() {
            let end = rest.find(|c: char| c != '_' && !c.is_alphanumeric());
            let end = end.unwrap_or(rest.len());
            found.push(rest[..end].to_owned());
            end
        } else if rest.starts_with("::") {
            found.push("::".to_owned());
            2
        } else {
            if !first.is_whitespace() {
                found.push(first.to_string());
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    found
}

/// Returns the length of a block comment, those inside it included.
fn comment(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => (at, depth) = (at + 2, depth + 1),
            [b'*', b'/', ..] => {
                (at, depth) = (at + 2, depth - 1);
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Returns the length of the string, character or lifetime that `text` starts with, if it does.
fn literal(text: &str) -> Option<usize> {
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|prefix| {
        let rest = text.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.starts_with(['"', '\'', '#']))
    })?;
    let rest = &text[prefix.len()..];
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    let body = &rest[hashes..];
    if prefix.ends_with('r') && body.starts_with('"') {
        let close = format!("\"{}", "#".repeat(hashes));
        let end = body[1..]
            .find(&close)
            .map_or(body.len(), |end| 1 + end + close.len());
        return Some(prefix.len() + hashes + end);
    }
    if hashes > 0 {
        // A raw word, or an attribute.
        return (prefix == "r").then_some(prefix.len() + hashes);
    }
    let quote = body.chars().next()?;
    if quote == '\'' && lifetime(&body[1..]) {
        let end = body[1..].find(|c: char| c != '_' && !c.is_alphanumeric());
        return Some(prefix.len() + end.map_or(body.len(), |end| 1 + end));
    }
    let mut escaped = false;
    for (at, c) in body.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(prefix.len() + at + 1),
            _ => {}
        }
    }
    Some(text.len())
}

/// `'a` is a lifetime, `'a'` a character.
fn lifetime(after_quote: &str) -> bool {
    let mut letters = after_quote.chars();
    let first = letters.next();
    first.is_some_and(|c| c == '_' || c.is_alphabetic()) && letters.next() != Some('\'')
}
