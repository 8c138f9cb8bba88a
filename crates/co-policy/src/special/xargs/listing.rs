//! Programs before xargs that print nothing but file names, and the files that they list.

use std::path::Path;

use crate::args::{Arg, PipelineStage};
use crate::glob::Glob;
use crate::options::{self, Parsed};
use crate::programs;
use crate::secret_names as names;
use crate::special::find::name_filters;
use crate::text::has_word;

/// The files that a command lists.
pub(super) struct Listing {
    /// The directories that contain the files.
    pub(super) roots: Vec<String>,
    /// Globs of which each name matches one; `None` for any name.
    pub(super) names: Option<Vec<Glob>>,
    /// True if each path starts with a directory, so that none starts with `-`.
    pub(super) prefixed: bool,
    /// True if only regular files are listed.
    pub(super) regular: bool,
    /// True if names end with a zero byte, so that xargs splits none.
    pub(super) zeros: bool,
    /// True if only files that git tracks are listed.
    pub(super) tracked: bool,
    /// True if files are selected by their names, hidden files included.
    pub(super) narrow: bool,
}

/// Options that only print unchanged paths. `--format`, `--path-separator`, `--label` and `--line-prefix` would print other
/// text.
const FD: &str = "-H -I -u -s -i -g -F -a -p -0 -1 --hidden --no-ignore --no-ignore-vcs --no-ignore-parent --unrestricted \
    --case-sensitive --ignore-case --glob --regex --fixed-strings --absolute-path --relative-path --full-path --print0 \
    --prune --one-file-system --strip-cwd-prefix --no-follow --no-require-git -t -e -d -E -S -j --type --extension \
    --max-depth --min-depth --exact-depth --exclude --size --threads --owner -o --changed-within --changed-before \
    --max-results --and";
const RG: &str = "-l --files-with-matches --files -F -i -S -s -v -w -x -0 -U -P -a -n -N -H --fixed-strings --ignore-case \
    --smart-case --case-sensitive --invert-match --word-regexp --line-regexp --null --multiline --multiline-dotall \
    --pcre2 --text --no-messages --no-config --sort-files --crlf --glob-case-insensitive --no-ignore-messages \
    --no-require-git --one-file-system --no-mmap --mmap --line-number --no-line-number -e -g -t -T -m -d -E -j --regexp \
    --glob --iglob --type --type-not --max-count --max-depth --encoding --threads --sort --sortr --max-filesize --engine";
const GREP: &str = "-l -r -n -i -y -v -w -x -E -F -G -P -s -a -I -U -m -e --files-with-matches --recursive --line-number \
    --ignore-case --no-ignore-case --invert-match --word-regexp --line-regexp --extended-regexp --fixed-strings \
    --basic-regexp --perl-regexp --no-messages --text --binary --regexp --max-count --include --exclude --exclude-dir \
    --binary-files";
const GIT_DIFF: &str = "--name-only --cached --staged --merge-base --diff-filter --no-renames --no-color --no-ext-diff \
    --no-textconv --relative --no-relative --minimal --patience --histogram -M -C --find-renames --find-copies -z";
const LS_FILES: &str = "-c --cached -m --modified -d --deleted -o --others -i --ignored -x --exclude --exclude-standard \
    --no-empty-directory --deduplicate -z";

/// Returns the files that a command lists; `None` if it may print other text.
pub(super) fn listing(stage: &PipelineStage) -> Option<Listing> {
    let secret = |text: &str| names::secret(Path::new(text.trim_end_matches('*'))).is_some();
    if stage.args.iter().any(|arg| secret(&arg.text)) {
        return None;
    }
    match stage.name {
        "find" => find(stage),
        "fd" | "fdfind" => {
            let parsed = parse_allowed(stage.name, stage, 0, FD)?;
            let narrow = parsed.has(&["-H", "-u", "--hidden", "--unrestricted"]);
            let listing = Listing::below(parsed.operands.get(1..));
            Some(Listing { narrow, ..listing })
        }
        "rg" => {
            let parsed = parse_allowed("rg", stage, 0, RG)?;
            let files = parsed.has(&["--files"]);
            let lists = files || parsed.has(&["-l", "--files-with-matches"]);
            let skip = usize::from(!files && !parsed.has(&["-e", "--regexp"]));
            lists.then(|| Listing::below(parsed.operands.get(skip..)))
        }
        "grep" => {
            let parsed = parse_allowed("grep", stage, 0, GREP)?;
            let skip = usize::from(!parsed.has(&["-e", "--regexp"]));
            let lists = parsed.has(&["-l", "--files-with-matches"]);
            lists.then(|| Listing::below(parsed.operands.get(skip..)))
        }
        "git" => match stage.args.first().map(|arg| arg.text.as_str()) {
            Some("ls-files") => {
                let parsed = parse_allowed("git ls-files", stage, 1, LS_FILES)?;
                Listing::of_git(&parsed)
            }
            Some("diff") => {
                let parsed = parse_allowed("git diff", stage, 1, GIT_DIFF)?;
                let lists = parsed.has(&["--name-only"]);
                lists.then(|| Listing::below(None))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Parses the words of a command after the first `from`. Returns `None` if an option is not in `allowed`.
pub(super) fn parse_allowed<'a>(
    name: &'a str,
    stage: &PipelineStage<'a>,
    from: usize,
    allowed: &str,
) -> Option<Parsed<'a>> {
    let parsed = options::parse(name, programs::lookup(name)?, stage.args.get(from..)?);
    let fine = |option: &String| has_word(allowed, option);
    parsed
        .options
        .iter()
        .all(|(option, _)| fine(option))
        .then_some(parsed)
}

fn find(stage: &PipelineStage) -> Option<Listing> {
    let has = |names: &[&str]| {
        let mut args = stage.args.iter();
        args.any(|arg| names.contains(&arg.text.as_str()))
    };
    if has(&["-printf", "-ls", "-fprintf"]) {
        return None;
    }
    let roots: Vec<String> = stage
        .args
        .iter()
        .skip_while(|arg| matches!(arg.text.as_str(), "-H" | "-P"))
        .take_while(|arg| !arg.text.starts_with('-') && !matches!(arg.text.as_str(), "(" | "!"))
        .map(|arg| arg.text.clone())
        .collect();
    let regular = stage
        .args
        .windows(2)
        .any(|two| two[0].text == "-type" && two[1].text == "f")
        && !has(&["-o", "-or", "!", "-not", ","]);
    let open = [
        "-type",
        "-print",
        "-print0",
        "-maxdepth",
        "-mindepth",
        "-H",
        "-P",
        "--",
    ];
    let narrow = |arg: &Arg| arg.text.starts_with('-') && !open.contains(&&*arg.text);
    Some(Listing {
        names: name_filters(stage.args),
        prefixed: true,
        regular,
        narrow: stage.args.iter().any(narrow),
        ..Listing::below(None).with_roots(roots)
    })
}

impl Listing {
    /// All files below the operands, or below the working directory if there are none.
    fn below(operands: Option<&[&Arg]>) -> Self {
        let roots = operands.unwrap_or_default();
        let roots = roots.iter().map(|arg| arg.text.clone()).collect();
        let listing = Self {
            roots: vec![".".to_owned()],
            names: None,
            prefixed: false,
            regular: false,
            zeros: false,
            tracked: false,
            narrow: false,
        };
        listing.with_roots(roots)
    }

    fn with_roots(mut self, roots: Vec<String>) -> Self {
        if !roots.is_empty() {
            self.roots = roots;
        }
        self
    }

    /// The files that `git ls-files` lists.
    fn of_git(parsed: &Parsed) -> Option<Self> {
        let untracked = parsed.has(&["-o", "--others", "-i", "--ignored"]);
        let paths: Vec<&str> = parsed.operands.iter().map(|arg| &*arg.text).collect();
        if untracked {
            // Patterns may name parent directories, too.
            let leads_up = paths
                .iter()
                .any(|path| path.contains(':') || path.split('/').any(|part| part == ".."));
            return (!leads_up).then(|| Self::below(None));
        }
        // If `*.rs` matches the whole path, it matches the name, too.
        let endings: Option<Vec<Glob>> = paths
            .iter()
            .map(|path| {
                let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
                let end = path.strip_prefix('*')?;
                end.chars().all(plain).then(|| Glob::new(path))
            })
            .collect();
        Some(Self {
            names: endings.filter(|endings| !endings.is_empty()),
            tracked: true,
            ..Self::below(None)
        })
    }
}
