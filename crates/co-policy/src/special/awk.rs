//! Checks awk: programs that only compare, compute and print to standard output.

use crate::options::Parsed;
use crate::reason::Reason;
use crate::text::has_word;

/// Names by which a program can reach files, processes or the environment.
const FORBIDDEN: [&str; 16] = [
    "system", "getline", "close", "fflush", "ENVIRON", "ARGV", "ARGC", "ARGIND", "PROCINFO",
    "SYMTAB", "FUNCTAB", "BINMODE", "function", "func", "nextfile", "adump",
];

pub(super) fn check(parsed: &mut Parsed) {
    let Some(program) = parsed.operands.first() else {
        parsed
            .reasons
            .push(Reason::whole("`awk` lacks its program"));
        return;
    };
    if let Err(why) = scan(&program.text) {
        parsed.ask(program, why.to_owned());
    }
}

/// The kind of the last token. It decides if a `/` divides or starts a pattern.
#[derive(PartialEq)]
enum LastToken {
    Value,
    Operator,
    /// Versions of awk disagree about a `/` after the token, or may disagree.
    Either,
}

/// Keywords and functions that need no parentheses. After them, a `/` starts a pattern in some versions of awk: `length /x/`
/// is a division in one and a length beside a pattern in another.
const KEYWORDS: &str = "BEGIN BEGINFILE END ENDFILE break case continue default delete do else exit for if in next \
    print printf return switch while and asort asorti atan2 bindtextdomain compl cos dcgettext \
    dcngettext exp gensub gsub index int intdiv isarray length log lshift match mkbool mktime or \
    patsplit rand rshift sin split sprintf sqrt srand strftime strtonum sub substr systime \
    tolower toupper typeof xor";

/// The state of the scan.
struct ScanState {
    last: LastToken,
    /// True if the last token was a string or a pattern.
    after_text: bool,
    braces: usize,
    parens: usize,
    brackets: usize,
}

impl ScanState {
    fn push(&mut self, last: LastToken, is_text: bool) {
        (self.last, self.after_text) = (last, is_text);
    }

    /// True if a `>` compares: outside of actions or in parentheses, where no awk reads a redirection.
    fn compares(&self) -> bool {
        self.brackets == 0 && (self.braces == 0 || self.parens > 0)
    }

    fn bracket(&mut self, c: char) -> Option<()> {
        match c {
            '{' => self.braces += 1,
            '}' => self.braces = self.braces.checked_sub(1)?,
            '(' => self.parens += 1,
            ')' => self.parens = self.parens.checked_sub(1)?,
            '[' => self.brackets += 1,
            ']' => self.brackets = self.brackets.checked_sub(1)?,
            _ => {}
        }
        Some(())
    }
}

fn scan(program: &str) -> Result<(), &'static str> {
    const PIPES: &str = "the awk program may run a program or write a file";
    const UNKNOWN: &str = "the awk program is not understood";
    let chars: Vec<char> = program.chars().collect();
    let mut state = ScanState {
        last: LastToken::Operator,
        after_text: false,
        braces: 0,
        parens: 0,
        brackets: 0,
    };
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let next = chars.get(at + 1).copied();
        match c {
            '"' => {
                at = skip(&chars, at + 1, '"').ok_or(UNKNOWN)?;
                state.push(LastToken::Value, true);
                continue;
            }
            '/' if state.last == LastToken::Operator => {
                at = skip(&chars, at + 1, '/').ok_or(UNKNOWN)?;
                state.push(LastToken::Either, true);
                continue;
            }
            '/' if state.last == LastToken::Either => return Err(UNKNOWN),
            '#' => {
                while chars.get(at).is_some_and(|c| *c != '\n') {
                    at += 1;
                }
                continue;
            }
            c if c.is_ascii_alphabetic() || c == '_' => {
                let name = run(&chars, at, |c| c.is_ascii_alphanumeric() || c == '_');
                at += name.len();
                if FORBIDDEN.contains(&name.as_str()) {
                    return Err(PIPES);
                }
                // `print` exists only in actions. Outside of them a `>` compares.
                if state.braces == 0 && name.starts_with("print") {
                    return Err(UNKNOWN);
                }
                let last = match has_word(KEYWORDS, &name) {
                    true => LastToken::Either,
                    false => LastToken::Value,
                };
                state.push(last, false);
                continue;
            }
            c if c.is_ascii_digit() || c == '.' => {
                let number = run(&chars, at, |c| c.is_ascii_digit() || c == '.');
                at += number.len();
                state.push(LastToken::Value, false);
                continue;
            }
            '|' if next == Some('|') => at += 1,
            '&' if next == Some('&') => at += 1,
            '>' if next == Some('=') => {}
            '>' if state.compares() && !matches!(next, Some('>' | '&' | '|')) => {}
            '|' | '>' | '&' => return Err(PIPES),
            // `x++ / y /` could be read both ways.
            '+' | '-' if next == Some(c) => {
                at += 2;
                while chars.get(at).is_some_and(|c| c.is_whitespace()) {
                    at += 1;
                }
                if chars.get(at) == Some(&'/') {
                    return Err(UNKNOWN);
                }
                state.after_text = false;
                continue;
            }
            ' ' | '\t' => {
                at += 1;
                continue;
            }
            '{' | '}' | '(' | ')' | '[' | ']' => {
                state.bracket(c).ok_or(UNKNOWN)?;
            }
            '$' | ',' | ';' | '\n' | '=' | '!' | '<' | '~' | '+' | '-' | '*' | '/' | '%' | '^'
            | '?' | ':' => {}
            _ => return Err(UNKNOWN),
        }
        let last = match c {
            ')' | '$' => LastToken::Either,
            ']' => LastToken::Value,
            // After `)` and some keywords, but not after a pattern, awk ignores the end of the line.
            '\n' if state.last == LastToken::Either && !state.after_text => LastToken::Either,
            _ => LastToken::Operator,
        };
        state.push(last, false);
        at += 1;
    }
    if state.braces + state.parens + state.brackets > 0 {
        return Err(UNKNOWN);
    }
    Ok(())
}

/// Returns the characters of one kind that start at `at`.
fn run(chars: &[char], at: usize, kind: impl Fn(char) -> bool) -> String {
    chars[at..]
        .iter()
        .copied()
        .take_while(|c| kind(*c))
        .collect()
}

/// Returns the index after the unescaped `close`. A class in a pattern may not contain one.
fn skip(chars: &[char], mut at: usize, close: char) -> Option<usize> {
    loop {
        match *chars.get(at)? {
            '\\' => at += 1,
            '\n' => return None,
            '[' if close == '/' => {
                // All versions of awk agree only about the end of a plain class.
                let inside = chars[at + 1..].split(|c| *c == ']').next()?;
                let members = inside.strip_prefix(&['^']).unwrap_or(inside);
                if members.is_empty() || inside.iter().any(|c| matches!(c, '/' | '[' | '\\')) {
                    return None;
                }
                at += inside.len() + 1;
            }
            c if c == close => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::scan;

    #[test]
    fn programs() {
        for program in [
            "{print $1}",
            "NR>=2 {print $2}",
            "/foo/ {print}",
            "NR==1 || NR==3",
            "{s+=$1} END {print s}",
            "BEGIN{FS=\",\"}{print $2 / 2}",
            "!seen[$0]++",
            "{printf \"%s\\n\", $1}",
            "length($0) >= 80",
            "$1 ~ /^a|b$/ {print \"x > y\"}",
            "$0 > 3",
            "NR>1",
            "NR > 1 && $2 > 5 {print $1}",
            "{if ($3 > 100) print $1}",
            "{print ($1 > 2)}",
            "NR==1,NR==5",
            "length > 80 {print length}",
            "{print $NF / 2, $(NF-1)}",
            "{print a[1] / 2, 1 / 2, \"4\" / 2}",
            "NR==1\n/foo/ {print}",
            "/foo/\n/bar/ {print}",
            "BEGIN{do x++; while(x<3); for(;;) exit}",
        ] {
            assert!(scan(program).is_ok(), "{program}");
        }
        for program in [
            "BEGIN{system(\"id\")}",
            "{print > \"x\"}",
            "{print | \"sh\"}",
            "{\"id\" | getline}",
            "BEGIN{print ENVIRON[\"K\"]}",
            "BEGIN{while((getline l < \"/etc/passwd\")>0)print l}",
            "{print >> \"x\"}",
            "a++ / system(\"id\") / 1",
            "BEGIN{ARGV[1]=\"/etc/passwd\";ARGC=2}{print}",
            "@load \"x\"",
            "@f()",
            "{print |& \"x\"}",
            "x / system(\"id\") / 1",
            "length / system(\"id\") / 1",
            "NR>1{print > \"x\"}",
            "NR>1{print ($1) > \"x\"}",
            "NR>1{if (1) print $1 > $2}",
            "NR>>1",
            "(print > \"x\")",
            "NR>1 print > \"x\"",
            "{a[1 > 2]}",
            "}{print > \"x\"",
            "(}){print > \"x\"}",
            "BEGIN{a=/[]/]\"/; system(\"id\")} #\"",
            "BEGIN{a=/[[:alpha:]/]\"/; system(\"id\")} #\"",
            "BEGIN{if(0);else /\"/; system(\"id\") } #\"",
            "BEGIN{if(1)/\"/;system(\"id\")}#\"",
            "BEGIN{x=$/\"/; system(\"id\")} #\"",
            "BEGIN{x=$ /\"/; system(\"id\")} #\"",
            "BEGIN{x=length /\"/; system(\"id\")} #\"",
            "BEGIN{x=length\n/\"/; system(\"id\")} #\"",
            "BEGIN{switch($0){case /\"/: system(\"id\")}} #\"",
            "BEGIN{x=rand /\"/; system(\"id\")} #\"",
            "BEGIN{x=/a/ /\"/; system(\"id\")} #\"",
            "BEGIN{return /\"/; system(\"id\")} #\"",
            "BEGIN{x=1 in /\"/; system(\"id\")} #\"",
            "BEGIN{getline x; print x}",
            "{getline x < \"/etc/passwd\"; print x}",
            "BEGIN{ARGV[1]=\"/etc/passwd\"}{print}",
            "BEGIN{length\n/1; system(\"id\"); x=1/1}",
            "BEGIN{x=(1)/1; system(\"id\"); y=1/1}",
            "BEGIN{x=$1; y=$/1; system(\"id\"); z=1/1}",
            "BEGIN{if(1)/\"/;system(\"id\")}#\"}",
            "BEGIN{x++ /1; system(\"id\"); y=1/1}",
            "{print $1",
            "NR==(1",
            "$a[1",
        ] {
            assert!(scan(program).is_err(), "{program}");
        }
    }
}
