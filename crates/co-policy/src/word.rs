//! Reads one word of bash: quotes, globs, variables and literal brace lists.
//!
//! A span of text is either one word that is understood whole, or opaque.

use std::ops::Range;

use crate::{glob, proved};

/// A word of bash.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    pub span: Range<usize>,
    /// The words to which braces expand; one without braces.
    pub forms: Vec<Vec<WordPart>>,
    /// A reason, if the word is not understood.
    pub opaque: Option<&'static str>,
    /// True if nothing in it is quoted or escaped.
    pub bare: bool,
    /// The word as it was written.
    pub raw: String,
}

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WordPart {
    Text { text: String, quoted: bool },
    Variable(String),
}

/// A word whose braces expand to more words is opaque.
const MAX_FORMS: usize = 64;

impl Word {
    /// Returns the text of the word if it has no braces, globs or variables.
    pub fn literal(&self) -> Option<String> {
        let [form] = self.forms.as_slice() else {
            return None;
        };
        if self.opaque.is_some() || has_glob(form) {
            return None;
        }
        literal(form)
    }

    /// Returns the words to which it expands. Globs and variables stay as written.
    pub fn expansions(&self) -> Vec<String> {
        if self.opaque.is_some() {
            return vec![self.raw.replace(['"', '\'', '\\'], "")];
        }
        self.forms
            .iter()
            .filter(|form| !form.is_empty())
            .map(|form| {
                form.iter()
                    .map(|piece| match piece {
                        WordPart::Text { text, .. } => text.clone(),
                        WordPart::Variable(name) => format!("${name}"),
                    })
                    .collect()
            })
            .collect()
    }
}

/// Returns the text of a form without variables.
pub(super) fn literal(form: &[WordPart]) -> Option<String> {
    let mut all = String::new();
    for piece in form {
        match piece {
            WordPart::Text { text, .. } => all.push_str(text),
            WordPart::Variable(_) => return None,
        }
    }
    Some(all)
}

/// Quotes a form so that bash expands only its variables, each to a part of the same word.
pub(super) fn quoted(form: &[WordPart]) -> String {
    let pieces = form.iter().map(|piece| match piece {
        WordPart::Text { text, .. } => proved::quoted(text),
        WordPart::Variable(name) => format!("\"${{{name}}}\""),
    });
    pieces.collect()
}

/// True if the form contains an unquoted `*`, `?` or `[…]`.
pub(super) fn has_glob(form: &[WordPart]) -> bool {
    let unquoted = |c: char| {
        form.iter().position(
            |piece| matches!(piece, WordPart::Text { text, quoted: false } if text.contains(c)),
        )
    };
    unquoted('*').is_some()
        || unquoted('?').is_some()
        || (unquoted('[').is_some() && unquoted(']').is_some())
}

/// Returns the form as a glob.
pub(super) fn pattern(form: &[WordPart]) -> glob::Glob {
    let mut source = String::new();
    for piece in form {
        if let WordPart::Text { text, quoted } = piece {
            for c in text.chars() {
                if *quoted && matches!(c, '*' | '?' | '[' | ']' | '\\' | '-' | '!' | '^') {
                    source.push('\\');
                }
                source.push(c);
            }
        }
    }
    glob::Glob::new(&source)
}

/// True for the name of a shell variable.
pub(super) fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Splits a span into words at its unquoted blanks.
pub(super) fn split(source: &str, span: Range<usize>) -> Vec<Range<usize>> {
    let mut words: Vec<Range<usize>> = Vec::new();
    let mut start = None;
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in source[span.clone()].char_indices() {
        let at = span.start + at;
        if quote.is_none() && !escaped && matches!(c, ' ' | '\t') {
            words.extend(start.take().map(|start| start..at));
            continue;
        }
        start.get_or_insert(at);
        match (quote, c) {
            _ if escaped => escaped = false,
            (None | Some('"'), '\\') => escaped = true,
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
    }
    words.extend(start.map(|start| start..span.end));
    words
}

/// Reads one whole word.
pub(super) fn read(source: &str, span: Range<usize>) -> Word {
    let raw = source.get(span.clone()).unwrap_or_default();
    let mut scanner = WordScanner {
        chars: raw.chars().peekable(),
        tokens: Vec::new(),
        opaque: None,
        bare: true,
        before: None,
    };
    scanner.scan();
    let (forms, braces) = match scanner.opaque {
        None => expand_braces(&scanner.tokens),
        Some(_) => (vec![join_tokens(&scanner.tokens)], None),
    };
    Word {
        span,
        forms,
        opaque: scanner.opaque.or(braces),
        bare: scanner.bare,
        raw: raw.to_owned(),
    }
}

#[derive(Debug, Clone)]
enum WordToken {
    /// A character; true if it is quoted.
    Char(char, bool),
    Variable(String),
    /// The start of quotes. A word that is only `''` still exists.
    Quotes,
}

struct WordScanner<'a> {
    chars: std::iter::Peekable<std::str::Chars<'a>>,
    tokens: Vec<WordToken>,
    opaque: Option<&'static str>,
    bare: bool,
    before: Option<char>,
}

impl WordScanner<'_> {
    fn fail(&mut self, why: &'static str) {
        self.opaque.get_or_insert(why);
    }

    fn scan(&mut self) {
        while let Some(c) = self.chars.next() {
            match c {
                '\'' => self.single_quotes(),
                '"' => self.double_quotes(),
                '\\' => self.escape(),
                '`' => self.fail("it runs a command inside a word"),
                '$' => self.dollar(false),
                '~' if self
                    .before
                    .is_none_or(|b| matches!(b, '=' | ':' | '{' | ',')) =>
                {
                    self.fail("it holds a `~`, which bash turns into another path");
                }
                ' ' | '\t' | '\n' | '|' | '&' | ';' | '(' | ')' | '<' | '>' => {
                    self.fail("part of it is not understood");
                }
                c if !c.is_ascii() => self.fail("it holds an unquoted character outside ASCII"),
                c => self.tokens.push(WordToken::Char(c, false)),
            }
            self.before = Some(c);
        }
    }

    fn single_quotes(&mut self) {
        self.bare = false;
        self.tokens.push(WordToken::Quotes);
        loop {
            match self.chars.next() {
                Some('\'') => return,
                Some(c) => self.tokens.push(WordToken::Char(c, true)),
                None => return self.fail("a quote is not closed"),
            }
        }
    }

    fn double_quotes(&mut self) {
        self.bare = false;
        self.tokens.push(WordToken::Quotes);
        loop {
            match self.chars.next() {
                Some('"') => return,
                Some('`') => self.fail("it runs a command inside a word"),
                Some('$') => self.dollar(true),
                Some('\\') => match self.chars.peek().copied() {
                    Some(c @ ('$' | '`' | '"' | '\\')) => {
                        self.chars.next();
                        self.tokens.push(WordToken::Char(c, true));
                    }
                    Some('\n') => {
                        self.chars.next();
                    }
                    _ => self.tokens.push(WordToken::Char('\\', true)),
                },
                Some(c) => self.tokens.push(WordToken::Char(c, true)),
                None => return self.fail("a quote is not closed"),
            }
        }
    }

    fn escape(&mut self) {
        self.bare = false;
        match self.chars.next() {
            Some('\n') => {}
            Some(c) if c.is_ascii() => self.tokens.push(WordToken::Char(c, true)),
            Some(_) => self.fail("it holds an unquoted character outside ASCII"),
            None => self.fail("it ends in a backslash"),
        }
    }

    fn dollar(&mut self, quoted: bool) {
        match self.chars.peek().copied() {
            Some('?') => {
                self.chars.next();
                self.tokens.push(WordToken::Variable("?".to_owned()));
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let mut name = String::new();
                while let Some(c) = self.chars.peek().copied()
                    && (c.is_ascii_alphanumeric() || c == '_')
                {
                    name.push(c);
                    self.chars.next();
                }
                self.tokens.push(WordToken::Variable(name));
            }
            Some('"' | ' ' | '|' | ')') if quoted => self.tokens.push(WordToken::Char('$', true)),
            Some('(' | '`') => self.fail("it runs a command inside a word"),
            Some('\'' | '"') => self.fail("it holds a `$'…'` or `$\"…\"` string"),
            _ => self.fail("it computes a word that nobody has seen"),
        }
    }
}

/// Expands brace lists as bash does. Braces are opaque unless all of them are plain lists or all are plain text, because
/// bash may end a list at another `}`.
fn expand_braces(tokens: &[WordToken]) -> (Vec<Vec<WordPart>>, Option<&'static str>) {
    const WHY: &str = "it holds braces that are more than a plain list";
    let opaque = || (vec![join_tokens(tokens)], Some(WHY));
    let is =
        |c: char| move |item: &WordToken| matches!(item, WordToken::Char(it, false) if *it == c);
    let count = |c: char| tokens.iter().filter(|item| is(c)(item)).count();
    let has_list = count('{') > 0 && count(',') > 0;
    // bash expands braces first: `$a{b,c}` is `$ab $ac`.
    let computed = tokens
        .iter()
        .any(|item| matches!(item, WordToken::Variable(_)));
    if count('{') > 0 && count('{') != count('}') || has_list && computed {
        return opaque();
    }
    let mut forms: Vec<Vec<WordToken>> = vec![Vec::new()];
    let mut rest = tokens;
    while let Some(open) = rest.iter().position(is('{')) {
        let Some(close) = rest.iter().position(is('}')).filter(|close| *close > open) else {
            return opaque();
        };
        let inner = &rest[open + 1..close];
        let choices: Vec<&[WordToken]> = match has_list {
            true => inner.split(is(',')).collect(),
            false => vec![&rest[open..=close]],
        };
        let range = inner
            .windows(2)
            .any(|two| is('.')(&two[0]) && is('.')(&two[1]));
        let alone = has_list && choices.len() < 2;
        if inner.iter().any(is('{')) || range || alone || choices.len() * forms.len() > MAX_FORMS {
            return opaque();
        }
        let longer =
            |form: &Vec<WordToken>, choice: &[WordToken]| [form, &rest[..open], choice].concat();
        forms = (forms.iter())
            .flat_map(|form| choices.iter().map(move |choice| longer(form, choice)))
            .collect();
        rest = &rest[close + 1..];
    }
    let whole = |form: &Vec<WordToken>| join_tokens(&[form, rest].concat());
    (forms.iter().map(whole).collect(), None)
}

fn join_tokens(tokens: &[WordToken]) -> Vec<WordPart> {
    let mut pieces: Vec<WordPart> = Vec::new();
    for item in tokens {
        match (item, pieces.last_mut()) {
            (WordToken::Char(c, q), Some(WordPart::Text { text, quoted })) if q == quoted => {
                text.push(*c)
            }
            (WordToken::Char(c, quoted), _) => pieces.push(WordPart::Text {
                text: c.to_string(),
                quoted: *quoted,
            }),
            (WordToken::Variable(name), _) => pieces.push(WordPart::Variable(name.clone())),
            (WordToken::Quotes, Some(WordPart::Text { quoted: true, .. })) => {}
            (WordToken::Quotes, _) => pieces.push(WordPart::Text {
                text: String::new(),
                quoted: true,
            }),
        }
    }
    pieces
}
