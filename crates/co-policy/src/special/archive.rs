//! Checks tar and gzip: the forms that list an archive or print its contents.

use crate::args::Arg;
use crate::facts::LocalFacts;
use crate::paths::{self, PathUse};
use crate::reason::Reason;
use crate::secret_names::secret;
use crate::special::trusted::check_started_programs;

/// Programs that tar may start to unpack.
const UNPACKERS: [&str; 8] = [
    "gzip", "bzip2", "xz", "zstd", "lzip", "lzma", "lzop", "compress",
];

/// Allows only `tar tf FILE [MEMBER…]`, with `v` and the letters of packers, for an archive on this host.
pub(super) fn tar(args: &[Arg], local: &LocalFacts) -> Vec<Reason> {
    let lists = |arg: &Arg| {
        let letters = arg.text.strip_prefix('-').unwrap_or(&arg.text);
        letters.strip_suffix('f').is_some_and(|rest| {
            rest.contains('t')
                && rest
                    .chars()
                    .all(|c| matches!(c, 't' | 'v' | 'z' | 'j' | 'J'))
        })
    };
    let Some(([first, file], members)) = args.split_first_chunk() else {
        return vec![Reason::whole("`tar` writes what it unpacks")];
    };
    if !lists(first) {
        return vec![first.reason("`tar` is only known to look as `tar tf FILE`")];
    }
    if file.text.contains(':') {
        return vec![file.reason(format!("`{}` may be an archive on another host", file.text))];
    }
    let mut reasons = check_started_programs("tar", &UNPACKERS, local);
    if file.text != "-" {
        reasons.extend(check_file(file, local));
    }
    let strange = |arg: &&Arg| arg.dynamic || arg.loose_glob || arg.text.starts_with('-');
    reasons.extend(members.iter().find(strange).map(|arg| {
        arg.reason(format!(
            "`tar` has no option `{}` that is known to be safe",
            arg.text
        ))
    }));
    reasons
}

/// Allows only `gzip -l FILE…`, `gzip -cd FILE…` and `zcat FILE…`, which is a script that runs gzip.
pub(super) fn gzip(name: &str, args: &[Arg], local: &LocalFacts) -> Vec<Reason> {
    let files = match (name, args) {
        ("zcat", files) => files,
        (_, [mode, files @ ..])
            if ["-l", "-lv", "--list", "-dc", "-cd"].contains(&mode.text.as_str()) =>
        {
            files
        }
        _ => {
            return vec![Reason::whole(
                "`gzip` replaces files, except with `-l` and `-cd`",
            )];
        }
    };
    let mut reasons = match name {
        "zcat" => check_started_programs(name, &["gzip"], local),
        _ => Vec::new(),
    };
    for file in files {
        // For a name without the extension, gzip reads another file.
        let packed = [".gz", ".tgz", ".Z"]
            .iter()
            .any(|end| file.text.ends_with(end));
        if !packed || file.text.starts_with('-') {
            reasons.push(file.reason(format!("`{}` is no packed file by its name", file.text)));
        } else {
            reasons.extend(check_file(file, local));
        }
    }
    reasons
}

fn check_file(file: &Arg, local: &LocalFacts) -> Option<Reason> {
    if file.dynamic || file.loose_glob || file.text.starts_with('-') {
        return Some(file.unknown());
    }
    // The packed file may be a secret, too.
    let unpacked = file
        .text
        .rsplit_once('.')
        .map_or(&*file.text, |(name, _)| name);
    let path = |text: &str| paths::check(local, text, PathUse::ReadFile, &file.span);
    path(&file.text).or_else(|| {
        let name = secret(std::path::Path::new(unpacked))?;
        Some(file.reason(format!("`{name}` looks like a secret")))
    })
}
