//! Checks printf of bash, which can set variables and so run commands.

use crate::args::Arg;
use crate::reason::Reason;

pub(super) fn check(args: &[Arg]) -> Vec<Reason> {
    let mut rest = args.iter();
    let mut format = rest.next();
    if format.is_some_and(|arg| arg.text == "--") {
        format = rest.next();
    } else if let Some(arg) = format
        && arg.text.starts_with('-')
    {
        return vec![arg.reason("`printf` with an option sets a variable")];
    }
    let mut reasons: Vec<Reason> = args
        .iter()
        .filter(|arg| arg.dynamic)
        .map(|arg| arg.unknown())
        .collect();
    if let Some(format) = format
        && sets_variable(&format.text)
    {
        reasons.push(format.reason("`%n` sets a variable"));
    }
    reasons
}

fn sets_variable(format: &str) -> bool {
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            continue;
        }
        let conversion = chars.find(|c| {
            !matches!(
                c,
                '0'..='9'
                    | '#'
                    | '-'
                    | '+'
                    | ' '
                    | '\''
                    | '.'
                    | '*'
                    | 'l'
                    | 'h'
                    | 'j'
                    | 'z'
                    | 't'
                    | 'L'
                    | 'q'
                    | 'w'
            )
        });
        if conversion == Some('n') {
            return true;
        }
    }
    false
}
