//! Checks `test` and `[`: operators that only read, and the paths that they read.

use crate::args::Arg;
use crate::facts::LocalFacts;
use crate::paths::{self, PathUse};
use crate::reason::Reason;

const FILE_TESTS: [&str; 18] = [
    "-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h", "-b", "-c", "-p", "-S", "-u", "-g", "-k",
    "-O", "-G",
];
const OPERATORS: [&str; 14] = [
    "-n", "-z", "-a", "-o", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "=", "==", "!=", "!",
];
const FILE_PAIRS: [&str; 3] = ["-nt", "-ot", "-ef"];

pub(super) fn check(name: &str, args: &[Arg], local: &LocalFacts) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for (place, arg) in args.iter().enumerate() {
        let text = arg.text.as_str();
        let before = place.checked_sub(1).map(|at| args[at].text.as_str());
        let after = args.get(place + 1).map(|next| next.text.as_str());
        let file = before.is_some_and(|op| FILE_TESTS.contains(&op) || FILE_PAIRS.contains(&op))
            || after.is_some_and(|op| FILE_PAIRS.contains(&op));
        if arg.dynamic {
            reasons.push(arg.unknown());
        } else if text.starts_with('-')
            && text.parse::<i64>().is_err()
            && !FILE_TESTS.contains(&text)
            && !OPERATORS.contains(&text)
            && !FILE_PAIRS.contains(&text)
        {
            reasons.push(arg.reason(format!("`{name} {text}` is not known to be safe")));
        } else if file && text != "]" {
            let found = paths::check(local, text, PathUse::Read, &arg.span);
            reasons.extend(found.filter(|reason| {
                !reason.text.ends_with("looks like a secret")
                    && !reason.text.ends_with("regular file")
            }));
        }
    }
    reasons
}
