//! Checks sed: scripts that only select, edit and print lines.

use crate::options::Parsed;
use crate::reason::Reason;

pub(super) fn check(parsed: &mut Parsed) {
    let mut scripts: Vec<(String, std::ops::Range<usize>)> = parsed
        .options
        .iter()
        .filter(|(option, _)| option == "-e" || option == "--expression")
        .filter_map(|(_, value)| value.clone())
        .collect();
    if scripts.is_empty() {
        match parsed.operands.first() {
            Some(script) => scripts.push((script.text.clone(), script.span.clone())),
            None => parsed.reasons.push(Reason::whole("`sed` lacks its script")),
        }
    }
    let mut names = String::new();
    for (script, span) in scripts {
        match commands(&script) {
            Some(used) => names.push_str(&used),
            None => parsed.reasons.push(Reason::at(
                "the sed script may write, read or run something",
                span,
            )),
        }
    }
    // `D` restarts the script without reading a line if a newline is left. With a command that adds newlines it never ends.
    if names.contains('D') && names.contains(['G', 'g', 'x', 's', 'y']) {
        parsed
            .reasons
            .push(Reason::whole("the sed script may not end by itself"));
    }
}

/// Returns the names of a script's commands; `None` if one of them does more than edit the stream.
fn commands(script: &str) -> Option<String> {
    let chars: Vec<char> = script.chars().collect();
    let mut names = String::new();
    let mut at = 0;
    let mut depth = 0;
    loop {
        while matches!(chars.get(at), Some(c) if c.is_whitespace() || *c == ';') {
            at += 1;
        }
        if at >= chars.len() {
            return (depth == 0).then_some(names);
        }
        at = command(&chars, at, &mut depth, &mut names)?;
    }
}

fn command(chars: &[char], from: usize, depth: &mut usize, names: &mut String) -> Option<usize> {
    let mut at = addresses(chars, from)?;
    let name = *chars.get(at)?;
    names.push(name);
    at += 1;
    match name {
        '{' => {
            *depth += 1;
            return Some(at);
        }
        '}' => *depth = depth.checked_sub(1)?,
        'p' | 'd' | '=' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | 'D' | 'P' => {}
        'q' | 'Q' | 'l' => {
            while chars.get(at).is_some_and(|c| *c == ' ') {
                at += 1;
            }
            at = digits(chars, at);
        }
        's' | 'y' => at = substitution(chars, at, name)?,
        _ => return None,
    }
    while matches!(chars.get(at), Some(' ' | '\t')) {
        at += 1;
    }
    matches!(chars.get(at), None | Some(';' | '\n' | '}')).then_some(at)
}

fn digits(chars: &[char], mut at: usize) -> usize {
    while chars.get(at).is_some_and(char::is_ascii_digit) {
        at += 1;
    }
    at
}

/// Skips addresses, such as `1,20`, `$`, `/re/I`, `\,re,`, `0~3`, `+4`, and the `!` after them.
fn addresses(chars: &[char], mut at: usize) -> Option<usize> {
    for place in 0..2 {
        at = address(chars, at)?;
        while chars.get(at) == Some(&' ') {
            at += 1;
        }
        if place == 0 {
            if chars.get(at) != Some(&',') {
                break;
            }
            at += 1;
            while chars.get(at) == Some(&' ') {
                at += 1;
            }
        }
    }
    while matches!(chars.get(at), Some(' ' | '!')) {
        at += 1;
    }
    Some(at)
}

fn address(chars: &[char], at: usize) -> Option<usize> {
    match chars.get(at) {
        Some('$') => Some(at + 1),
        Some('+' | '~') => Some(digits(chars, at + 1)),
        Some(c) if c.is_ascii_digit() => {
            let mut end = digits(chars, at);
            if chars.get(end) == Some(&'~') {
                end = digits(chars, end + 1);
            }
            Some(end)
        }
        Some('/') => regex(chars, at + 1, '/').map(|end| flags(chars, end, "IM")),
        Some('\\') => {
            let close = *chars.get(at + 1)?;
            if close == '\n' || close == '\\' {
                return None;
            }
            regex(chars, at + 2, close).map(|end| flags(chars, end, "IM"))
        }
        _ => Some(at),
    }
}

fn flags(chars: &[char], mut at: usize, allowed: &str) -> usize {
    while chars.get(at).is_some_and(|c| allowed.contains(*c)) {
        at += 1;
    }
    at
}

/// Returns the index after the unescaped `close`. A bracket expression that contains one is refused, because versions of
/// sed differ.
fn regex(chars: &[char], mut at: usize, close: char) -> Option<usize> {
    let mut bracket = false;
    loop {
        match *chars.get(at)? {
            '\n' => return None,
            '\\' => {
                if bracket {
                    return None;
                }
                at += 1;
                if *chars.get(at)? == '\n' {
                    return None;
                }
            }
            c if c == close => return (!bracket).then_some(at + 1),
            '[' if !bracket => {
                bracket = true;
                if chars.get(at + 1) == Some(&'^') {
                    at += 1;
                }
                if chars.get(at + 1) == Some(&']') {
                    at += 1;
                }
            }
            '[' if matches!(chars.get(at + 1), Some(':' | '.' | '=')) => {
                let kind = chars[at + 1];
                at += 2;
                while !(chars.get(at) == Some(&kind) && chars.get(at + 1) == Some(&']')) {
                    if chars.get(at).is_none_or(|c| !c.is_ascii_alphabetic()) {
                        return None;
                    }
                    at += 1;
                }
                at += 1;
            }
            ']' if bracket => bracket = false,
            _ => {}
        }
        at += 1;
    }
}

fn substitution(chars: &[char], at: usize, name: char) -> Option<usize> {
    let close = *chars.get(at)?;
    if close.is_whitespace() || close == '\\' || close.is_alphanumeric() || close == ';' {
        return None;
    }
    let mut end = if name == 's' {
        regex(chars, at + 1, close)?
    } else {
        replacement(chars, at + 1, close)?
    };
    end = replacement(chars, end, close)?;
    if name == 's' {
        loop {
            match chars.get(end) {
                Some('g' | 'p' | 'i' | 'I') => end += 1,
                Some(c) if c.is_ascii_digit() => end += 1,
                _ => break,
            }
        }
    }
    Some(end)
}

fn replacement(chars: &[char], mut at: usize, close: char) -> Option<usize> {
    loop {
        match *chars.get(at)? {
            '\n' => return None,
            '\\' => at += 1,
            c if c == close => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::commands;

    fn is_safe(script: &str) -> bool {
        commands(script).is_some()
    }

    #[test]
    fn scripts() {
        for script in [
            "1,120p",
            "$p",
            "/a/,/b/p",
            "s/a/b/g",
            "s|a|b|",
            "1d;$d",
            "/x/!d",
            "10q",
            "y/ab/cd/",
            "s/[/]x/b/",
            "1~2p",
            "/a/{p;n}",
            "s/a\\/b/c/2p",
            "/^$/d",
            "",
            "s/[^]]*//",
            "$=",
            "5,$p",
            "s/[[:space:]]*$//",
            "s/[[:digit:]a]x/y/",
            "s/[]a]x/y/",
            "\\,a,p",
            "\\xaxp",
            "s/a/\\/w x/",
            "2,~4p",
            "0~3,+2p",
            "1, 3 p",
            "h;H;g;G;x",
            "5Q",
            "q 3",
            "l 40",
            "s/a/b/3I",
        ] {
            let expected = script != "s/[/]x/b/";
            assert_eq!(is_safe(script), expected, "{script}");
        }
        for script in [
            "w out",
            "1w out",
            "s/a/b/w out",
            "s/a/b/e",
            "e rm x",
            "1e id",
            "r /etc/passwd",
            "R x",
            "a hi",
            "i hi",
            "c hi",
            "W x",
            "s/x/y/;w z",
            "p;e",
            "1!G;h;$!d;w x",
            "b",
            "t",
            ":a",
            "v 4.2",
            "s/a/b/gw x",
            "F",
            "p\nw x",
            "/a/w x",
            "s,a,b,e",
            "{p",
            "}",
            "s/a/b",
            "z",
            "\\xaxe id",
            "/[/]/e id",
            // To one sed a bracket hides the end of a pattern, to another it does not.
            "s/[/]a/g;s/w x/y/g",
            "s/[]/]a/g;s/w x/y/g",
            "s/[^]/]a/g;s/w x/y/g",
            "s/[[:alpha:]/]a/g;s/w x/y/g",
            "s/[a\\/]a/g;s/w x/y/g",
            "s/\\\\/x/w y/p",
            "s/a/\\\\/w x/p",
            "\\\\a\\p",
        ] {
            assert!(!is_safe(script), "{script}");
        }
    }
}
