//! Searches of whole directories ask where nothing hides the secrets that they may meet.

use co_policy::{Assessment, Reason};

/// Programs that read whatever is below a directory.
const SEARCHES: &[&str] = &["rg", "ag", "ack"];
/// Programs that do so with an option.
const SEARCHES_WITH: &[(&str, &[char], &[&str])] = &[
    ("grep", &['r', 'R', 'd'], &["--rec", "--deref", "--dir"]),
    ("egrep", &['r', 'R', 'd'], &["--rec", "--deref", "--dir"]),
    ("fgrep", &['r', 'R', 'd'], &["--rec", "--deref", "--dir"]),
    ("diff", &['r'], &["--rec"]),
    ("find", &[], &["-exec", "-ok"]),
];

/// Adds a reason to ask to each proved search, if `exposed` says that it may meet a secret.
pub(super) fn ask(found: &mut Assessment, exposed: impl FnOnce() -> bool) {
    let searches = |words: &Option<Vec<String>>| words.as_deref().is_none_or(searches);
    let segments = found.segments.iter_mut();
    let proved = segments.filter(|it| it.unproved.is_empty() && searches(&it.words));
    let proved: Vec<_> = proved.collect();
    if proved.is_empty() || !exposed() {
        return;
    }
    for segment in proved {
        let why = "it may print secrets of the workspace, which nothing hides from it here";
        segment.unproved.push(Reason::whole(why.to_owned()));
    }
}

/// True if a command may read files that it does not name. A wrapper (`timeout 5 rg x`) changes nothing.
fn searches(words: &[String]) -> bool {
    words.iter().any(|word| {
        let name = word.rsplit('/').next().unwrap_or(word);
        let known = SEARCHES_WITH.iter().find(|(program, ..)| *program == name);
        SEARCHES.contains(&name)
            || known.is_some_and(|(_, letters, long)| {
                words.iter().any(|word| {
                    let short = word.starts_with('-') && !word.starts_with("--");
                    short && word.contains(*letters) || long.iter().any(|it| word.starts_with(it))
                })
            })
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::searches;
    use crate::tool::judge::{Bench, Judge};
    use co_exec::Program;
    use co_exec::sandbox::{Launcher, Support};
    use co_policy::Verdict;

    #[test]
    fn a_search_asks_where_nothing_hides_secrets_from_it() {
        let check = |namespaces: bool, secret: bool, line: &str, wanted: bool| {
            let dir = tempfile::tempdir().unwrap();
            let workspace = dir.path().join("ws");
            fs::create_dir_all(&workspace).unwrap();
            fs::write(workspace.join("plain"), "x").unwrap();
            if secret {
                fs::write(workspace.join(".env"), "x").unwrap();
            }
            let (judge, _) = Judge::new(Bench {
                workspace: workspace.clone(),
                home: dir.path().to_owned(),
                path: "/usr/bin:/bin".into(),
                settings: co_policy::Settings::default(),
                saved: Vec::new(),
                own: Vec::new(),
            });
            let support = Support {
                abi: Some(7),
                seccomp: true,
                namespaces,
                why: None,
            };
            let home = dir.path().to_owned();
            let launcher = Launcher::with_support("/nowhere".into(), home, Vec::new(), support);
            let judge = judge.with_launcher(Some(launcher));
            let found = judge.assess(&Program::Shell(line.to_owned()), &workspace);
            let asks = matches!(judge.verdict(&found, &[]), Verdict::Ask(_));
            assert_eq!(asks, wanted, "{line}: {found:?}");
        };
        check(true, true, "grep -rn x .", false);
        check(false, true, "grep -rn x .", true);
        check(false, true, "cat plain", false);
        check(false, false, "grep -rn x .", false);
        check(true, true, "cat .env", true);
    }

    #[test]
    fn searches_of_directories_are_known() {
        let check = |line: &str, wanted: bool| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(searches(&words), wanted, "{line}");
        };
        check("rg x", true);
        check("timeout 5 rg x", true);
        check("/usr/bin/grep -rn x .", true);
        check("grep --recursive x", true);
        check("grep -id recurse x .", true);
        check("diff -r a b", true);
        check("find . -exec cat {} +", true);
        check("grep -n x file", false);
        check("find . -name x", false);
        check("cat file", false);
    }
}
