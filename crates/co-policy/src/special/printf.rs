//! printf of bash, which can set variables and thereby run things.

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
        return vec![Reason::at(
            "`printf` with an option sets a variable".to_owned(),
            arg.span.clone(),
        )];
    }
    let mut reasons: Vec<Reason> = args
        .iter()
        .filter(|arg| arg.dynamic)
        .map(|arg| {
            Reason::at(
                format!("nobody knows yet what `{}` will be", arg.text),
                arg.span.clone(),
            )
        })
        .collect();
    if let Some(format) = format
        && sets_variable(&format.text)
    {
        reasons.push(Reason::at(
            "`%n` sets a variable".to_owned(),
            format.span.clone(),
        ));
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
