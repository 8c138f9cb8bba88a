//! xargs: a lister, filters, then a program that only reads.

use std::path::Path;

use crate::policy::Reason;
use crate::policy::glob::Pattern;
use crate::policy::options::{self, Arg};
use crate::policy::paths;
use crate::policy::programs;
use crate::policy::review::Scene;

/// A command of a pipeline, as far as xargs must know it.
pub(crate) struct Stage<'a> {
    pub name: &'a str,
    pub args: &'a [Arg],
}

/// Filters that hand on lines they got, whole.
const FILTERS: [&str; 7] = ["sort", "head", "tail", "grep", "uniq", "egrep", "fgrep"];

/// Without a pipeline there is nothing that xargs would be handed.
pub(super) fn check(args: &[Arg], _scene: &Scene) -> Vec<Reason> {
    let span = args.first().map_or(0..0, |arg| arg.span.clone());
    vec![Reason::at(
        "`xargs` runs a program on what nobody has checked".to_owned(),
        span,
    )]
}

/// Checks `xargs` as the last but known stage of a pipeline.
pub(crate) fn check_pipeline(before: &[Stage], args: &[Arg], scene: &Scene) -> Vec<Reason> {
    let span = args.first().map_or(0..0, |arg| arg.span.clone());
    let ask = |text: String| vec![Reason::at(text, span.clone())];
    let Some((lister, filters)) = before.split_first() else {
        return check(args, scene);
    };
    let Some((name, inner)) = inner(args) else {
        return ask("`xargs` has an option that is not known to be safe".to_owned());
    };
    let Some(program) = programs::lookup(name).filter(|program| program.xargs) else {
        return ask(format!("`xargs` would run `{name}`"));
    };
    let mut untrusted = super::trusted("xargs", &[name], scene);
    untrusted.extend(super::trusted(name, &program.starts, scene));
    if !untrusted.is_empty() {
        return untrusted;
    }
    if let Some(filter) = filters.iter().find(|f| !filters_lines(f)) {
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
    let own = &args[..args.len() - inner.len()];
    listing.zeros = listing.prefixed
        && own
            .iter()
            .any(|arg| matches!(arg.text.as_str(), "-0" | "--null" | "-0r" | "-r0"));
    let mut parsed = options::parse(name, program, inner);
    options::check(name, program, &mut parsed, scene);
    // A file may be called `-f`: only names that start with a path, or that follow `--`, are no options.
    let prefixed = listing.prefixed || inner.iter().any(|arg| arg.text == "--");
    if program.has_teeth() && !prefixed {
        parsed.reasons.push(Reason::at(
            format!("a file name could become an option of `{name}`; put `--` after it"),
            span.clone(),
        ));
    }
    if program.reads_content && parsed.reasons.is_empty() {
        // A search of files on a list reads no more than a recursive one, which runs unasked.
        let secrets = program.operands != programs::Operands::Pattern;
        parsed
            .reasons
            .extend(survey(&listing, secrets, scene, &span));
    }
    parsed.reasons
}

/// Splits off xargs' own options: the program and its words.
fn inner(args: &[Arg]) -> Option<(&str, &[Arg])> {
    let mut at = 0;
    loop {
        let arg = args.get(at)?;
        let text = arg.text.as_str();
        match text {
            "-0" | "-r" | "-t" | "--null" | "--no-run-if-empty" | "-0r" | "-r0" => at += 1,
            "-n" | "-L" | "-I" | "-P" => at += 2,
            // Any other delimiter cuts names into new ones.
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

fn filters_lines(stage: &Stage) -> bool {
    let bad = |arg: &Arg| {
        let text = arg.text.as_str();
        // `-o` prints parts of lines, `-r` searches files, `-c` counts, `--label` and `-H` add text.
        text.starts_with("--") && text != "--"
            || (text.starts_with('-')
                && text.contains(['o', 'H', 'r', 'c', 'b', 'T', 'f', 'k', 't', 'C']))
    };
    FILTERS.contains(&stage.name) && !stage.args.iter().any(bad) && operands(stage) == 0
}

/// How many files a filter would read by itself.
fn operands(stage: &Stage) -> usize {
    let Some(program) = programs::lookup(stage.name) else {
        return 1;
    };
    let parsed = options::parse(stage.name, program, stage.args);
    let pattern =
        program.operands == programs::Operands::Pattern && !parsed.has(&["-e", "--regexp"]);
    parsed.operands.len().saturating_sub(usize::from(pattern))
}

struct Listing {
    roots: Vec<String>,
    names: Option<Vec<Pattern>>,
    /// True where every path printed starts with a directory, so none starts with `-`.
    prefixed: bool,
    regular: bool,
    /// True where names are handed over between zero bytes, so none is taken apart.
    zeros: bool,
    /// True where only files that git tracks are listed.
    tracked: bool,
}

fn listing(stage: &Stage) -> Option<Listing> {
    let has = |names: &[&str]| {
        stage
            .args
            .iter()
            .any(|arg| names.contains(&arg.text.as_str()))
    };
    let secret = |arg: &Arg| paths::secret(Path::new(arg.text.trim_end_matches('*'))).is_some();
    if stage.args.iter().any(secret) {
        return None;
    }
    match stage.name {
        "find" => {
            if has(&["-printf", "-ls", "-fprintf"]) {
                return None;
            }
            let roots: Vec<String> = stage
                .args
                .iter()
                .skip_while(|arg| matches!(arg.text.as_str(), "-H" | "-P"))
                .take_while(|arg| {
                    !arg.text.starts_with('-') && !matches!(arg.text.as_str(), "(" | "!")
                })
                .map(|arg| arg.text.clone())
                .collect();
            let regular = stage
                .args
                .windows(2)
                .any(|two| two[0].text == "-type" && two[1].text == "f")
                && !has(&["-o", "-or", "!", "-not", ","]);
            Some(Listing {
                roots: if roots.is_empty() {
                    vec![".".to_owned()]
                } else {
                    roots
                },
                names: super::name_filters(stage.args),
                prefixed: true,
                regular,
                zeros: false,
                tracked: false,
            })
        }
        "fd" | "fdfind" if !has(&["--format"]) => Some(Listing::anything()),
        "rg" if has(&["-l", "--files", "--files-with-matches"])
            && !has(&["--json", "-o", "-r", "--replace"]) =>
        {
            Some(Listing::anything())
        }
        "grep"
            if stage.args.iter().any(|arg| {
                matches!(
                    arg.text.as_str(),
                    "-l" | "-rl" | "-lr" | "-rln" | "-rlE" | "-rli"
                )
            }) =>
        {
            Some(Listing::anything())
        }
        "git" => {
            let words: Vec<&str> = stage.args.iter().map(|arg| arg.text.as_str()).collect();
            match words.as_slice() {
                ["ls-files", rest @ ..]
                    if !rest.iter().any(|word| {
                        word.starts_with("--format") || *word == "-s" || *word == "--stage"
                    }) =>
                {
                    Some(Listing::index(rest).unwrap_or_else(Listing::anything))
                }
                ["diff", rest @ ..] if rest.contains(&"--name-only") => Some(Listing::anything()),
                _ => None,
            }
        }
        _ => None,
    }
}

impl Listing {
    fn anything() -> Self {
        Self {
            roots: vec![".".to_owned()],
            names: None,
            prefixed: false,
            regular: false,
            zeros: false,
            tracked: false,
        }
    }

    /// What `git ls-files` lists with these words, which name nothing but files of its index.
    fn index(words: &[&str]) -> Option<Self> {
        const OPTIONS: [&str; 9] = [
            "-c",
            "--cached",
            "-m",
            "--modified",
            "-d",
            "--deleted",
            "-z",
            "--deduplicate",
            "--",
        ];
        let (options, paths): (Vec<&str>, Vec<&str>) =
            words.iter().partition(|word| word.starts_with('-'));
        if !options.iter().all(|option| OPTIONS.contains(option)) {
            return None;
        }
        // `*.rs` is met by the whole path, so by the name as well.
        let endings: Option<Vec<Pattern>> = paths
            .iter()
            .map(|path| {
                let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
                let end = path.strip_prefix('*')?;
                end.chars().all(plain).then(|| Pattern::new(path))
            })
            .collect();
        Some(Self {
            names: endings.filter(|endings| !endings.is_empty()),
            tracked: true,
            ..Self::anything()
        })
    }
}

/// A reader must not be handed a secret, nor a link that leaves the workspace.
fn survey(
    listing: &Listing,
    secrets: bool,
    scene: &Scene,
    span: &std::ops::Range<usize>,
) -> Option<Reason> {
    for root in &listing.roots {
        if scene.facts.path(scene.cwd, root).inside.is_none() {
            return Some(Reason::at(
                format!("it would read what is in `{root}`, outside the workspace"),
                span.clone(),
            ));
        }
        let survey = match listing.tracked {
            true => scene.facts.tracked(scene.cwd),
            false => scene.facts.survey(&scene.cwd.join(root)),
        };
        if !survey.complete {
            let why = match listing.tracked {
                true => "the files that git tracks are too many, or git does not list them",
                false => "there are too many files to tell what would be read",
            };
            return Some(Reason::at(why.to_owned(), span.clone()));
        }
        let odd = survey.odd.iter().filter(|_| !listing.regular);
        let misread = survey.misread.iter().filter(|_| !listing.zeros);
        let hit = survey
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
                    .is_none_or(|names| names.iter().any(|pattern| pattern.matches(&name)))
            });
        if let Some(path) = hit {
            return Some(Reason::at(
                format!("it would read `{}`", path.display()),
                span.clone(),
            ));
        }
    }
    None
}
