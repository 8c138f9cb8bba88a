//! Globs of bash and of `find -name`: `*`, `?`, `[…]` and backslash.

/// A parsed glob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
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
    pub fn new(source: &str) -> Self {
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

    /// Splits the glob at its slashes, one part for each directory.
    pub fn segments(&self) -> Vec<Self> {
        self.tokens
            .split(|token| *token == Token::Char('/'))
            .map(|tokens| Self {
                tokens: tokens.to_vec(),
            })
            .collect()
    }

    /// Returns the text of a glob without wildcards.
    pub fn literal(&self) -> Option<String> {
        self.tokens
            .iter()
            .map(|token| match token {
                Token::Char(c) => Some(*c),
                _ => None,
            })
            .collect()
    }

    /// True if the glob starts with a dot. Only such a glob matches names that start with a dot.
    pub fn wants_dot(&self) -> bool {
        matches!(self.tokens.first(), Some(Token::Char('.')))
    }

    /// True if one name may match both globs. The case of letters is ignored.
    ///
    /// Returns false if one starts with `*` and the other ends with it. Such a common name is accidental: `id_a.rs` matches
    /// both `*.rs` and `id_*`.
    pub fn meets(&self, other: &Self) -> bool {
        let (a, b) = (&self.tokens, &other.tokens);
        let many = |token: Option<&Token>| token == Some(&Token::Many);
        if a.contains(&Token::Many)
            && b.contains(&Token::Many)
            && (many(a.first()) && many(b.last()) || many(a.last()) && many(b.first()))
        {
            return false;
        }
        // `rest[j]` is true if one text can match both the rest of `a` and `b[j..]`.
        let mut rest = vec![false; b.len() + 1];
        for i in (0..=a.len()).rev() {
            let after = std::mem::replace(&mut rest, vec![false; b.len() + 1]);
            for j in (0..=b.len()).rev() {
                rest[j] = match (a.get(i), b.get(j)) {
                    (None, None) => true,
                    (Some(Token::Many), None) => after[j],
                    (Some(Token::Many), Some(_)) => after[j] || rest[j + 1],
                    (None, Some(Token::Many)) => rest[j + 1],
                    (Some(_), Some(Token::Many)) => rest[j + 1] || after[j],
                    (Some(Token::Char(a)), Some(Token::Char(b))) => {
                        a.eq_ignore_ascii_case(b) && after[j + 1]
                    }
                    (Some(_), Some(_)) => after[j + 1],
                    _ => false,
                };
            }
        }
        rest[0]
    }

    /// True if a name may match. The case of letters is ignored.
    pub fn may_match(&self, name: &str) -> bool {
        let tokens = name.chars().map(Token::Char).collect();
        self.meets(&Self { tokens })
    }

    /// True if the glob matches the whole name.
    pub fn matches(&self, name: &str) -> bool {
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

/// Reads a class after its `[`. Returns the token and the number of characters read.
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
    fn patterns_meet() {
        for (a, b, meet) in [
            (".en[v].ci", ".env.*", true),
            (".EN?", ".env", true),
            ("*", ".env", true),
            ("*nv*", ".env", true),
            (".e*", ".env.*", true),
            ("*.p?m", "*.pem", true),
            ("s*.pem", "*.pem", true),
            ("*.rs", "*.pem", false),
            ("*.rs", "id_*", false),
            ("x.*", "*.pem", false),
            (".github*", ".git", false),
            (".env", ".env.*", false),
            ("", "*", true),
            ("", ".env", false),
        ] {
            let patterns = (Glob::new(a), Glob::new(b));
            assert_eq!(patterns.0.meets(&patterns.1), meet, "{a} {b}");
        }
    }

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
