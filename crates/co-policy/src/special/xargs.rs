//! Checks xargs: a program that lists files, filters, then a program that only reads.

use crate::args::{Arg, PipelineStage};
use crate::facts::LocalFacts;
use crate::options;
use crate::programs;
use crate::reason::Reason;
use crate::special::trusted::check_started_programs;

mod listing;

use listing::{Listing, listing, parse_allowed};

/// Filters that print whole lines of their input.
const FILTERS: [&str; 7] = ["sort", "head", "tail", "grep", "uniq", "egrep", "fgrep"];

/// Options of filters that change no line. grep has its own list, because its `-d` and `-n` have other meanings.
const GREP_LINES: &str = "-v -i -y -E -F -G -P -w -x -e -s -a -m -z -q --invert-match --ignore-case --extended-regexp \
    --fixed-strings --perl-regexp --word-regexp --line-regexp --text";
const OTHER_LINES: &str = "-n -u -r -V -f -d -h -R -z -q -k -t -i -s --unique --reverse --lines";

/// Refuses xargs outside of a pipeline, where its input is unknown.
pub(super) fn check(args: &[Arg], _local: &LocalFacts) -> Vec<Reason> {
    let span = args.first().map_or(0..0, |arg| arg.span.clone());
    vec![Reason::at(
        "`xargs` runs a program on what nobody has checked",
        span,
    )]
}

/// Checks xargs after other commands of a pipeline.
pub(crate) fn check_pipeline(
    before: &[PipelineStage],
    args: &[Arg],
    local: &LocalFacts,
) -> Vec<Reason> {
    let span = args.first().map_or(0..0, |arg| arg.span.clone());
    let ask = |text: String| vec![Reason::at(text, span.clone())];
    let Some((lister, filters)) = before.split_first() else {
        return check(args, local);
    };
    let Some((name, inner)) = inner_command(args) else {
        return ask("`xargs` has an option that is not known to be safe".to_owned());
    };
    let Some(program) = programs::lookup(name).filter(|program| program.xargs) else {
        return ask(format!("`xargs` would run `{name}`"));
    };
    let own = &args[..args.len() - inner.len() - 1];
    if own.iter().any(|arg| arg.dynamic || arg.loose_glob) {
        return ask("nobody knows yet what `xargs` will be told".to_owned());
    }
    if replaces_part_of_word(own, name, inner) {
        return ask("`xargs` would put names into the middle of a word".to_owned());
    }
    let mut untrusted = check_started_programs("xargs", &[name], local);
    untrusted.extend(check_started_programs(name, &program.starts, local));
    if !untrusted.is_empty() {
        return untrusted;
    }
    if let Some(filter) = filters.iter().find(|f| !is_line_filter(f)) {
        return ask(format!(
            "what `{}` prints would become arguments",
            filter.name
        ));
    }
    let Some(mut listing) = listing(lister) else {
        return ask(format!(
            "what `{}` prints would become arguments",
            lister.name
        ));
    };
    listing.zeros = listing.prefixed
        && own
            .iter()
            .any(|arg| matches!(arg.text.as_str(), "-0" | "--null" | "-0r" | "-r0"));
    let mut parsed = options::parse(name, program, inner);
    options::check(name, program, &mut parsed, local);
    // A file may be called `-f`. Only names after `--` or with a directory before them are no options.
    let prefixed = listing.prefixed || inner.iter().any(|arg| arg.text == "--");
    if program.has_dangerous_options() && !prefixed {
        parsed.reasons.push(Reason::at(
            format!("a file name could become an option of `{name}`; put `--` after it"),
            span.clone(),
        ));
    }
    if parsed.reasons.is_empty() && (program.reads_content || !prefixed) {
        // A search through all files reads no more than a recursive search, which is proved.
        let searches = program.operands == programs::Operands::Pattern && !listing.narrow;
        let reads = program.reads_content;
        listing.regular |= !reads;
        let secrets = reads && !searches;
        parsed
            .reasons
            .extend(check_listed_files(&listing, secrets, local, &span));
    }
    parsed.reasons
}

/// Skips the options of xargs. Returns the program and its words.
pub(crate) fn inner_command(args: &[Arg]) -> Option<(&str, &[Arg])> {
    let mut at = 0;
    loop {
        let arg = args.get(at)?;
        let text = arg.text.as_str();
        match text {
            "-0" | "-r" | "-t" | "--null" | "--no-run-if-empty" | "-0r" | "-r0" => at += 1,
            "-n" | "-L" | "-I" | "-P" => at += 2,
            // Any other delimiter splits names into new ones.
            "-d" if args.get(at + 1).is_some_and(|arg| arg.text == "\\n") => at += 2,
            "-d\\n" => at += 1,
            _ if text.starts_with("-I") => at += 1,
            _ if (text.starts_with("-n") || text.starts_with("-P") || text.starts_with("-L"))
                && text.len() > 2
                && text[2..].bytes().all(|b| b.is_ascii_digit()) =>
            {
                at += 1;
            }
            _ if text.starts_with('-') || arg.dynamic || arg.loose_glob => return None,
            _ => return Some((text, &args[at + 1..])),
        }
    }
}

/// True if the text of `-I` is a part of a word, as in `.e{}v`, or of the program's name.
fn replaces_part_of_word(own: &[Arg], name: &str, inner: &[Arg]) -> bool {
    let mut replaced = Vec::new();
    for (place, arg) in own.iter().enumerate() {
        match arg.text.strip_prefix("-I") {
            Some("") => replaced.extend(own.get(place + 1).map(|next| next.text.as_str())),
            Some(attached) => replaced.push(attached),
            None => {}
        }
    }
    replaced.into_iter().any(|it| {
        name.contains(it)
            || inner
                .iter()
                .any(|arg| arg.text.contains(it) && arg.text != it)
    })
}

/// True for a filter that reads no file and prints whole lines of its input.
fn is_line_filter(stage: &PipelineStage) -> bool {
    let greps = stage.name.ends_with("grep");
    let options = if greps { GREP_LINES } else { OTHER_LINES };
    let Some(parsed) = parse_allowed(stage.name, stage, 0, options) else {
        return false;
    };
    let pattern = usize::from(greps && !parsed.has(&["-e"]));
    FILTERS.contains(&stage.name) && parsed.operands.len() <= pattern
}

/// Returns a reason if the program would read a secret or a file outside the workspace.
fn check_listed_files(
    listing: &Listing,
    secrets: bool,
    local: &LocalFacts,
    span: &std::ops::Range<usize>,
) -> Option<Reason> {
    let say = |text: String| Some(Reason::at(text, span.clone()));
    for root in &listing.roots {
        if local.path(root).inside.is_none() {
            return say(format!(
                "it would read what is in `{root}`, outside the workspace"
            ));
        }
        let risky = match listing.tracked {
            true => local.facts.risky_tracked_files(local.cwd),
            false => local.facts.risky_files(&local.cwd.join(root)),
        };
        if !risky.complete {
            let why = match listing.tracked {
                true => "the files that git tracks are too many, or git does not list them",
                false => "there are too many files to tell what would be read",
            };
            return say(why.to_owned());
        }
        let odd = risky.irregular.iter().filter(|_| !listing.regular);
        let misread = risky.unsafe_names.iter().filter(|_| !listing.zeros);
        let hit = risky
            .secret
            .iter()
            .filter(|_| secrets)
            .chain(odd)
            .chain(misread)
            .find(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                listing
                    .names
                    .as_ref()
                    .is_none_or(|names| names.iter().any(|pattern| pattern.may_match(&name)))
            });
        if let Some(path) = hit {
            return say(format!("it would read `{}`", path.display()));
        }
    }
    None
}
