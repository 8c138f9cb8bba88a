//! Checks for programs that an option table cannot describe, because their words are a small language.

mod archive;
mod awk;
mod find;
mod jq;
mod printf;
mod ps;
mod sed;
mod test;
pub(super) mod trusted;
mod version;
pub(super) mod xargs;

use crate::args::Arg;
use crate::facts::LocalFacts;
use crate::git;
use crate::options::{self, Parsed};
use crate::programs::{Program, Special};
use crate::reason::Reason;

/// Checks a command by its table and by the rules of its program.
pub(super) fn check(
    name: &str,
    program: &Program,
    args: &[Arg],
    local: &LocalFacts,
) -> Vec<Reason> {
    match program.special {
        Some(Special::Find) => find::check(args, local),
        Some(Special::Test) => test::check(name, args, local),
        Some(Special::Ps) => ps::check(args),
        Some(Special::Echo) => Vec::new(),
        Some(Special::Printf) => printf::check(args),
        Some(Special::CommandV) => check_command_v(args),
        Some(Special::Xargs) => xargs::check(args, local),
        Some(Special::Git) => git::check(args, local),
        Some(Special::Gzip) => archive::gzip(name, args, local),
        Some(Special::Tar) => archive::tar(args, local),
        Some(Special::Version) => version::check(name, program, args, local),
        special => {
            let mut parsed = options::parse(name, program, args);
            match special {
                Some(Special::Sed) => sed::check(&mut parsed),
                Some(Special::Awk) => awk::check(&mut parsed),
                Some(Special::Jq) => jq::check(&mut parsed),
                Some(Special::Yq) => jq::check_yq(&mut parsed, local),
                Some(Special::Date) => check_date(&mut parsed),
                Some(Special::Seq) => check_seq(args, &mut parsed),
                Some(Special::Strings) => check_response_files(args, &mut parsed),
                _ => {}
            }
            options::check(name, program, &mut parsed, local);
            parsed.reasons
        }
    }
}

/// Allows only `command -v NAME…`, which prints; the other forms start a program.
fn check_command_v(args: &[Arg]) -> Vec<Reason> {
    let tells = args
        .first()
        .is_some_and(|arg| arg.text == "-v" || arg.text == "-V");
    let plain = args
        .iter()
        .skip(1)
        .all(|arg| !arg.dynamic && !arg.text.starts_with('-'));
    if tells && plain && args.len() > 1 {
        return Vec::new();
    }
    vec![Reason::whole("`command` runs another program")]
}

/// Refuses operands of `date` that are no format, because they set the clock.
fn check_date(parsed: &mut Parsed) {
    for operand in parsed.operands.clone() {
        if !operand.text.starts_with('+') {
            parsed.ask(operand, "`date` sets the clock to what is not a `+FORMAT`");
        }
    }
}

/// Refuses numbers of `seq` that are large or not written plainly.
fn check_seq(args: &[Arg], parsed: &mut Parsed) {
    let digits = |text: &str, most: usize| {
        !text.is_empty() && text.len() <= most && text.bytes().all(|b| b.is_ascii_digit())
    };
    let small = |text: &str| {
        let text = text.strip_prefix('-').unwrap_or(text);
        let (whole, rest) = text.split_once('.').unwrap_or((text, "0"));
        digits(whole, 7) && digits(rest, 3)
    };
    let negative = |arg: &&Arg| arg.text[1..].starts_with(|c: char| c.is_ascii_digit());
    let below = args
        .iter()
        .filter(|arg| arg.text.starts_with('-'))
        .filter(negative);
    let bounds: Vec<&Arg> = parsed.operands.iter().copied().chain(below).collect();
    for bound in bounds.into_iter().filter(|bound| !small(&bound.text)) {
        parsed.ask(
            bound,
            format!("`seq` may count to `{}` without an end", bound.text),
        );
    }
}

/// Refuses `@file` words of `strings`, which name files with more options.
fn check_response_files(args: &[Arg], parsed: &mut Parsed) {
    if let Some(arg) = args.iter().find(|arg| arg.text.starts_with('@')) {
        parsed.ask(
            arg,
            format!("`{}` names a file with more options", arg.text),
        );
    }
}
