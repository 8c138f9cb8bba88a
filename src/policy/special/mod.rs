//! Programs whose words are a small language of their own.

mod awk;
mod find;
mod jq;
mod printf;
mod ps;
mod sed;
mod test;
pub(super) mod xargs;

use super::Reason;
use super::git;
use super::options::{self, Arg, Parsed};
use super::programs::{Program, Special};
use super::review::Scene;

pub(super) use find::name_filters;

/// Checks a command by its table and by what its program's own language says.
pub(super) fn check(name: &str, program: &Program, args: &[Arg], scene: &Scene) -> Vec<Reason> {
    match program.special {
        Some(Special::Find) => find::check(args, scene),
        Some(Special::Test) => test::check(name, args, scene),
        Some(Special::Ps) => ps::check(args),
        Some(Special::Echo) => Vec::new(),
        Some(Special::Printf) => printf::check(args),
        Some(Special::CommandV) => command_v(args),
        Some(Special::Xargs) => xargs::check(args, scene),
        Some(Special::Git) => git::check(args, scene),
        special => {
            let mut parsed = options::parse(name, program, args);
            match special {
                Some(Special::Sed) => sed::check(&mut parsed),
                Some(Special::Awk) => awk::check(&mut parsed),
                Some(Special::Jq) => jq::check(&mut parsed),
                Some(Special::Yq) => jq::check_yq(&mut parsed),
                Some(Special::Date) => date(&mut parsed),
                _ => {}
            }
            options::check(name, program, &mut parsed, scene);
            parsed.reasons
        }
    }
}

/// `command -v NAME…` only tells; every other form runs something.
fn command_v(args: &[Arg]) -> Vec<Reason> {
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
    vec![Reason::whole("`command` runs another program".to_owned())]
}

/// `date` sets the clock unless its operand is a format.
fn date(parsed: &mut Parsed) {
    for operand in parsed.operands.clone() {
        if !operand.text.starts_with('+') {
            parsed.reasons.push(Reason::at(
                "`date` sets the clock to what is not a `+FORMAT`".to_owned(),
                operand.span.clone(),
            ));
        }
    }
}
