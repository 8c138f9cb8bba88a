//! Globs as in bash and `find -name`: `*`, `?`, `[…]` and backslash.

/// A parsed glob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Glob {
    tokens: Vec<Token>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Char(char),
    One,
    Many,
    Class {
        not: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Glob {
    /// Parses a glob. A `[` without `]` is a plain character, as in bash.
    pub(crate) fn new(source: &str) -> Self {
        let chars: Vec<char> = source.chars().collect();
        let mut tokens = Vec::new();
        let mut at = 0;
        while at < chars.len() {
            match chars[at] {
                '\\' if at + 1 < chars.len() => {
                    tokens.push(Token::Char(chars[at + 1]));
                    at += 1;
                }
                '*' => tokens.push(Token::Many),
                '?' => tokens.push(Token::One),
                '[' => match class(&chars[at + 1..]) {
                    Some((token, used)) => {
                        tokens.push(token);
                        at += used;
                    }
                    None => tokens.push(Token::Char('[')),
                },
                c => tokens.push(Token::Char(c)),
            }
            at += 1;
        }
        Self { tokens }
    }

    /// Returns true if the glob matches the whole name.
    pub(crate) fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut t, mut n) = (0, 0);
        let mut star: Option<(usize, usize)> = None;
        while n < name.len() {
            let hit = match self.tokens.get(t) {
                Some(Token::Many) => {
                    star = Some((t, n));
                    t += 1;
                    continue;
                }
                Some(Token::Char(c)) => *c == name[n],
                Some(Token::One) => true,
                Some(Token::Class { not, ranges }) => {
                    ranges.iter().any(|(a, b)| (*a..=*b).contains(&name[n])) != *not
                }
                None => false,
            };
            if hit {
                t += 1;
                n += 1;
            } else if let Some((at, from)) = star {
                star = Some((at, from + 1));
                t = at + 1;
                n = from + 1;
            } else {
                return false;
            }
        }
        self.tokens[t..].iter().all(|token| *token == Token::Many)
    }
}

/// Parses a character class after its `[`. Returns the class and the number of characters that it took.
fn class(rest: &[char]) -> Option<(Token, usize)> {
    let mut at = 0;
    let not = matches!(rest.first(), Some('!' | '^'));
    if not {
        at += 1;
    }
    let first = at;
    let mut ranges = Vec::new();
    let mut named = false;
    loop {
        let mut c = *rest.get(at)?;
        if c == ']' && at > first {
            let token = match named {
                true => Token::One,
                false => Token::Class { not, ranges },
            };
            return Some((token, at + 1));
        }
        if c == '/' {
            return None;
        }
        if c == '[' && matches!(rest.get(at + 1), Some(':' | '.' | '=')) {
            // A class with a name, such as `[:alpha:]`, is read as any character. This can only add matches.
            let kind = rest[at + 1];
            let end = rest[at + 2..]
                .windows(2)
                .position(|two| two == [kind, ']'])?;
            named = true;
            at += end + 4;
            continue;
        }
        if c == '\\' {
            at += 1;
            c = *rest.get(at)?;
        }
        at += 1;
        if rest.get(at) == Some(&'-') && rest.get(at + 1).is_some_and(|next| *next != ']') {
            let end = rest[at + 1];
            ranges.push((c, end));
            at += 2;
        } else {
            ranges.push((c, c));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Glob;

    #[test]
    fn patterns_match_as_in_bash() {
        let cases = [
            ("*.rs", "a.rs", true),
            ("*.rs", "a.rc", false),
            ("a?c", "abc", true),
            ("[a-c]x", "bx", true),
            ("[!a]x", "ax", false),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("[", "[", true),
            ("*a*b*", "xxaxxbxx", true),
            ("[[:alpha:]]", "q", true),
            ("[]x]", "]", true),
            ("[a-c]", "d", false),
            ("[a-c]-", "b-", true),
            ("[a-]", "-", true),
            ("[!a]x", "bx", true),
            ("[^a]x", "ax", false),
            ("x[b]c", "xbc", true),
            ("a\\*b", "a*b", true),
            ("a\\*b", "axb", false),
            ("a\\", "a\\", true),
            ("a*", "a", true),
            ("a?", "a", false),
        ];
        for (pattern, name, hit) in cases {
            assert_eq!(Glob::new(pattern).matches(name), hit, "{pattern} {name}");
        }
    }
}
