//! Parses one word of bash: quotes, escapes and brace lists. Also finds out whether bash would expand the word.

use std::iter::Peekable;
use std::ops::Range;
use std::str::Chars;

/// The largest number of texts that one word may expand to. The braces of a word that would expand to more texts are not
/// expanded.
const MAX_FORMS: usize = 64;

/// A word of bash.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    pub span: Range<usize>,
    /// The texts that the brace lists expand to. Most words have only one. Variables and globs stay as written.
    forms: Vec<String>,
    literal: bool,
}

impl Word {
    /// Makes a word that is exactly this text.
    pub(crate) fn literal(text: String, span: Range<usize>) -> Self {
        Self {
            span,
            forms: vec![text],
            literal: true,
        }
    }

    /// Makes a word that another program adds to the words at `span`. Its text is `{}`, as in `find -exec`.
    pub(crate) fn added(span: Range<usize>) -> Self {
        Self {
            span,
            forms: vec!["{}".to_owned()],
            literal: false,
        }
    }

    /// Parses the word at `span` of the source.
    pub(super) fn read(source: &str, span: Range<usize>) -> Self {
        let raw = source.get(span.clone()).unwrap_or_default();
        let mut scanner = Scanner::default();
        scanner.scan(raw);
        let forms = expand_braces(&scanner.chars);
        Self {
            span,
            literal: !scanner.dynamic && forms.len() == 1,
            forms,
        }
    }

    /// Returns the text of the word without quotes. Variables, globs and substitutions stay as written.
    pub fn text(&self) -> &str {
        self.forms.first().map_or("", String::as_str)
    }

    /// Returns the texts that the brace lists expand to.
    pub fn forms(&self) -> &[String] {
        &self.forms
    }

    /// Returns true if bash expands nothing in the word, apart from `~`.
    pub fn is_literal(&self) -> bool {
        self.literal
    }
}

/// A character of a word, and whether it is quoted.
#[derive(Debug, Clone, Copy)]
struct WordChar {
    char: char,
    quoted: bool,
}

#[derive(Default)]
struct Scanner {
    chars: Vec<WordChar>,
    dynamic: bool,
}

impl Scanner {
    fn scan(&mut self, raw: &str) {
        let mut chars = raw.chars().peekable();
        let mut quote = None;
        while let Some(c) = chars.next() {
            match (quote, c) {
                (None, '\'' | '"') => {
                    quote = Some(c);
                }
                (Some(open), _) if open == c => quote = None,
                (Some('\''), _) => self.push(c, true),
                (None, '\\') => {
                    let next = chars.next().unwrap_or('\\');
                    self.push(next, true);
                }
                (Some(_), '\\') => match chars.peek() {
                    Some('$' | '`' | '"' | '\\') => self.push(chars.next().unwrap_or('\\'), true),
                    _ => self.push('\\', true),
                },
                (None, '$') if chars.next_if_eq(&'\'').is_some() => {
                    self.dynamic = true;
                    self.escapes(&mut chars);
                }
                // Another form of quotes. Bash may translate what is in it.
                (None, '$') if chars.peek() == Some(&'"') => self.dynamic = true,
                (_, '$' | '`') => {
                    self.dynamic |= c == '`' || chars.peek().is_some_and(|next| begins(*next));
                    self.push(c, quote.is_some());
                }
                (None, '*' | '?' | '[' | '(' | ')') => {
                    self.dynamic = true;
                    self.push(c, false);
                }
                (_, _) => self.push(c, quote.is_some()),
            }
        }
        self.dynamic |= quote.is_some();
    }

    /// Reads the rest of `$'…'`, in which backslashes start escapes as in C.
    fn escapes(&mut self, chars: &mut Peekable<Chars>) {
        while let Some(c) = chars.next() {
            match c {
                '\'' => return,
                '\\' => self.escape(chars),
                _ => self.push(c, true),
            }
        }
    }

    fn escape(&mut self, chars: &mut Peekable<Chars>) {
        let octal = chars.peek().is_some_and(|c| c.is_digit(8));
        let c = match chars.next_if(|_| !octal) {
            None => number(chars, 8, 3),
            Some('x') => number(chars, 16, 2),
            Some('u') => number(chars, 16, 4),
            Some('U') => number(chars, 16, 8),
            Some('n') => '\n',
            Some('t') => '\t',
            Some(c @ ('\\' | '\'' | '"' | '?')) => c,
            // The others are control characters, or no escapes.
            Some(c) => {
                self.push('\\', true);
                c
            }
        };
        self.push(c, true);
    }

    fn push(&mut self, char: char, quoted: bool) {
        self.chars.push(WordChar { char, quoted });
    }
}

/// Reads a character that is written as a number in this radix, with at most `most` digits.
fn number(chars: &mut Peekable<Chars>, radix: u32, most: usize) -> char {
    let digits = std::iter::from_fn(|| chars.next_if(|c| c.is_digit(radix))?.to_digit(radix));
    let code = digits
        .take(most)
        .fold(0, |code: u32, digit| code * radix + digit);
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Returns true if this character after `$` starts an expansion.
fn begins(next: char) -> bool {
    next.is_ascii_alphanumeric() || "_{('\"?#@*!$-".contains(next)
}

/// Expands brace lists such as `{a,b}`. A list of numbers, `{1..3}`, stays as written.
fn expand_braces(chars: &[WordChar]) -> Vec<String> {
    let text = |chars: &[WordChar]| chars.iter().map(|it| it.char).collect::<String>();
    let Some((open, commas, close)) = first_list(chars) else {
        return vec![text(chars)];
    };
    let mut forms = Vec::new();
    let starts = [open].into_iter().chain(commas.iter().copied());
    let ends = commas.iter().copied().chain([close]);
    for (start, end) in starts.zip(ends) {
        let choice = [&chars[..open], &chars[start + 1..end], &chars[close + 1..]].concat();
        forms.extend(expand_braces(&choice));
        if forms.len() > MAX_FORMS {
            return vec![text(chars), String::new()];
        }
    }
    forms
}

/// Returns the indices of the first brace list: of its `{`, its commas and its `}`.
fn first_list(chars: &[WordChar]) -> Option<(usize, Vec<usize>, usize)> {
    let is = |at: usize, c: char| !chars[at].quoted && chars[at].char == c;
    let opens = (0..chars.len()).filter(|at| is(*at, '{') && (*at == 0 || !is(at - 1, '$')));
    opens.into_iter().find_map(|open| {
        let (mut depth, mut commas) = (0, Vec::new());
        for at in open..chars.len() {
            if is(at, '{') {
                depth += 1;
            } else if is(at, '}') {
                depth -= 1;
            } else if is(at, ',') && depth == 1 {
                commas.push(at);
            }
            if depth == 0 {
                return (!commas.is_empty()).then_some((open, commas, at));
            }
        }
        None
    })
}
