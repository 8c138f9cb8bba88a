//! Checks ps: no form that prints environments.

use crate::args::Arg;
use crate::reason::Reason;
use crate::text::has_word;

const FLAGS: &str = "-e -f -ef -eF -A -Af -a -l -el -elf -F -H -eH -ejH -w -ww -T --forest --no-headers \
    --headers -efww -eo";
const VALUED: &str = "-p -u -U -C -t --pid --ppid --sort -G";
const COLUMNS: &str = "pid ppid user uid ruser euser gid group comm cmd args command ucmd pcpu %cpu pmem %mem \
    stat state s start lstart start_time etime etimes time cputime tty tt rss rsz vsz sz \
    size nice ni pri pgid pgrp sid sess nlwp wchan";

pub(super) fn check(args: &[Arg]) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let text = arg.text.as_str();
        let bsd = !text.is_empty() && text.bytes().all(|b| b"auxwfjlvh".contains(&b));
        let fine = match text {
            "-o" | "-eo" | "--format" => rest
                .next()
                .is_some_and(|value| are_known_columns(&value.text)),
            _ if has_word(VALUED, text) => rest
                .next()
                .is_some_and(|value| !value.dynamic && !value.text.starts_with('-')),
            _ if text.starts_with("--sort=")
                || text.starts_with("--ppid=")
                || text.starts_with("--pid=") =>
            {
                true
            }
            _ => has_word(FLAGS, text) || bsd,
        };
        if !fine || arg.dynamic {
            reasons.push(arg.reason(format!(
                "`ps {text}` may print the environments of other programs"
            )));
        }
    }
    reasons
}

fn are_known_columns(list: &str) -> bool {
    list.split([',', ' '])
        .filter(|c| !c.is_empty())
        .all(|column| {
            let name = column.split_once('=').map_or(column, |(name, _)| name);
            let name = name.split_once(':').map_or(name, |(name, _)| name);
            has_word(COLUMNS, name)
        })
}
