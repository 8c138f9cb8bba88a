//! Checks find: its paths, and an expression that only tests and prints.

use crate::args::Arg;
use crate::facts::LocalFacts;
use crate::glob::Glob;
use crate::paths::{self, PathUse};
use crate::reason::Reason;
use crate::text::has_word;

/// Tests and actions that take no value.
const PLAIN: &str = "-print -print0 -ls -prune -quit -empty -readable -writable -executable -depth -d -xdev -mount \
    -daystart -not -and -or -a -o ! ( ) , -true -false -nouser -nogroup -noleaf -ignore_readdir_race \
    -warn -nowarn";

/// Tests and actions that take a value.
const VALUED: &str = "-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -size -mtime \
    -mmin -atime -amin -ctime -cmin -perm -user -group -uid -gid -links -inum -maxdepth -mindepth -fstype \
    -used -lname -ilname -printf";

/// Tests whose value is a file.
const FILED: [&str; 4] = ["-newer", "-anewer", "-cnewer", "-samefile"];

pub(super) fn check(args: &[Arg], local: &LocalFacts) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let mut rest = args.iter().peekable();
    while rest
        .next_if(|arg| matches!(arg.text.as_str(), "-H" | "-P"))
        .is_some()
    {}
    let starts =
        |arg: &Arg| arg.text.starts_with('-') || matches!(arg.text.as_str(), "(" | "!" | ")" | ",");
    while let Some(arg) = rest.next_if(|arg| !starts(arg)) {
        if arg.dynamic {
            reasons.push(arg.unknown());
        } else if arg.loose_glob {
            reasons.push(arg.reason("a glob may turn a file name into an option; write `./*`"));
        } else {
            reasons.extend(paths::check_arg(local, arg, PathUse::Read));
        }
    }
    while let Some(arg) = rest.next() {
        let text = arg.text.as_str();
        if arg.dynamic || arg.loose_glob {
            reasons.push(arg.unknown());
        } else if has_word(PLAIN, text) {
        } else if has_word(VALUED, text)
            || text.strip_prefix("-newer").is_some_and(|x| x.len() == 2)
        {
            match rest.next() {
                Some(value) if value.dynamic || value.loose_glob => {
                    reasons.push(value.unknown());
                }
                Some(value) if text.starts_with("-newer") && !text.ends_with('t') => {
                    reasons.extend(paths::check_arg(local, value, PathUse::Read));
                }
                Some(_) => {}
                None => reasons.push(arg.reason(format!("`find {text}` lacks its value"))),
            }
        } else if FILED.contains(&text) {
            match rest.next() {
                Some(value) => {
                    reasons.extend(paths::check_arg(local, value, PathUse::Read));
                }
                None => reasons.push(arg.reason(format!("`find {text}` lacks its value"))),
            }
        } else {
            reasons.push(arg.reason(describe(text)));
        }
    }
    reasons
}

fn describe(text: &str) -> String {
    match text {
        "-delete" => "`find -delete` removes what it finds".to_owned(),
        "-exec" | "-execdir" | "-ok" | "-okdir" => format!("`find {text}` runs another program"),
        "-fprint" | "-fprint0" | "-fls" | "-fprintf" => format!("`find {text}` writes a file"),
        "-L" | "-follow" => format!("`find {text}` follows links, which may leave the workspace"),
        _ => format!("`find` has no test or action `{text}` that is known to be safe"),
    }
}

/// Returns globs of which each found name matches one; `None` if find can return any name.
pub(crate) fn name_filters(args: &[Arg]) -> Option<Vec<Glob>> {
    // `-not -path X` only excludes names.
    let mut args = args.to_vec();
    let excludes =
        |three: &[Arg]| matches!(three[0].text.as_str(), "!" | "-not") && three[1].text == "-path";
    while let Some(at) = args.windows(3).position(excludes) {
        args.drain(at..at + 3);
    }
    let args = args.as_slice();
    if args
        .iter()
        .any(|arg| matches!(arg.text.as_str(), "-o" | "-or" | "!" | "-not" | "," | "("))
    {
        // Only a plain list of alternatives means "one of these names".
        return alternatives(args);
    }
    let names = values(args);
    (!names.is_empty()).then_some(names)
}

fn is_name(arg: &Arg) -> bool {
    matches!(arg.text.as_str(), "-name" | "-iname")
}

fn values(args: &[Arg]) -> Vec<Glob> {
    args.windows(2)
        .filter(|two| is_name(&two[0]))
        .map(|two| Glob::new(&two[1].text))
        .collect()
}

/// Reads `\( -name A -o -name B \)`, with only tests before and after it.
fn alternatives(args: &[Arg]) -> Option<Vec<Glob>> {
    let from = args
        .iter()
        .position(|arg| arg.text == "(" || is_name(arg))?;
    let mut inside = args[from..].iter();
    let grouped = args[from].text == "(";
    if grouped {
        inside.next();
    }
    let mut patterns = Vec::new();
    loop {
        if !is_name(inside.next()?) {
            return None;
        }
        patterns.push(Glob::new(&inside.next()?.text));
        match inside.next() {
            Some(arg) if arg.text == "-o" || arg.text == "-or" => {}
            None if !grouped => break,
            Some(arg) if grouped && arg.text == ")" => break,
            _ => return None,
        }
    }
    let odd = |arg: &Arg| {
        matches!(
            arg.text.as_str(),
            "-o" | "-or" | "!" | "-not" | "," | "(" | ")"
        )
    };
    let clean = !args[..from].iter().any(odd)
        && !inside.any(|arg| odd(arg) || arg.text.starts_with("-print"));
    let printed = inside.all(|_| true);
    (clean && printed).then_some(patterns)
}
