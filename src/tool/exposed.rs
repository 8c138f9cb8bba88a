//! Makes commands ask that may read secrets of the workspace, if the sandbox cannot hide these.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::facts::WorkspaceFacts;
use co_exec::sandbox::Launcher;
use co_exec::secrets::Survey;
use co_policy::facts::{Facts, FileKind, GitFact, PathFact, ProgramFact, RiskyFiles};
use co_policy::{Assessment, Reason, glob};

/// Programs that read files which the command does not name.
const SEARCHES: [&str; 4] = ["rg", "ag", "ack", "xargs"];
/// Programs that read such files with a recursive option.
const GREPS: [&str; 3] = ["grep", "egrep", "fgrep"];
const RECURSIVE: [char; 3] = ['r', 'R', 'd'];
const RECURSIVE_LONG: [&str; 3] = ["--rec", "--deref", "--dir"];

/// The facts for one command. Files that the survey of the workspace finds are secret too, if nothing hides them.
pub(super) struct Exposed<'a> {
    facts: &'a WorkspaceFacts,
    launcher: Option<&'a Launcher>,
    /// The secrets of the workspace, looked up at first use.
    survey: OnceCell<Arc<Survey>>,
}

impl<'a> Exposed<'a> {
    pub(super) fn new(facts: &'a WorkspaceFacts, launcher: Option<&'a Launcher>) -> Self {
        let survey = OnceCell::new();
        Self {
            facts,
            launcher,
            survey,
        }
    }

    fn survey(&self, launcher: &Launcher) -> &Survey {
        let current = || launcher.surveys().current(self.facts.root());
        self.survey.get_or_init(current)
    }

    /// Returns the survey if the kernel cannot confine commands, so that nothing hides secrets.
    fn unhidden(&self) -> Option<&Survey> {
        let launcher = self.launcher.filter(|it| it.check().is_err())?;
        Some(self.survey(launcher))
    }

    /// Adds a reason to ask to each proved command that may read a secret. It blocks on files.
    pub(super) fn ask(&self, found: &mut Assessment) {
        let proved = found.segments.iter_mut();
        let mut proved: Vec<_> = proved.filter(|it| it.unproved.is_empty()).collect();
        let Some(launcher) = self.launcher.filter(|_| !proved.is_empty()) else {
            return;
        };
        let why = if let Some(survey) = self.unhidden() {
            let searches = |words: &Option<Vec<String>>| words.as_deref().is_none_or(searches);
            proved.retain(|it| searches(&it.words));
            let may_read = !survey.complete || !survey.is_empty();
            may_read.then(|| {
                "it may print secrets of the workspace, which nothing hides from it here".to_owned()
            })
        } else {
            let checked = launcher.check_reading(self.facts.root());
            checked.err().map(|refused| refused.to_string())
        };
        if let Some(why) = why {
            for segment in proved {
                segment.unproved.push(Reason::whole(why.clone()));
            }
        }
    }
}

impl Facts for Exposed<'_> {
    fn path(&self, cwd: &Path, path: &str) -> PathFact {
        let mut fact = self.facts.path(cwd, path);
        if let (Some(inside), FileKind::File, false) = (&fact.inside, fact.kind, fact.secret)
            && let Some(survey) = self.unhidden()
        {
            let real = self.facts.root().join(&inside.real);
            fact.secret = !survey.complete || survey.covers(&real);
        }
        fact
    }

    fn committed_secrets(&self, cwd: &Path) -> Option<Arc<[PathBuf]>> {
        let named = self.facts.committed_secrets(cwd)?;
        let Some(survey) = self.unhidden().filter(|it| !it.complete || !it.is_empty()) else {
            return Some(named);
        };
        if !survey.complete {
            return None;
        }
        let tracked = self.facts.tracked_files()?;
        let tracked: HashSet<&Path> = tracked.iter().map(PathBuf::as_path).collect();
        let secrets = survey.files.iter().chain(&survey.within);
        let below = secrets.filter_map(|file| file.strip_prefix(self.facts.root()).ok());
        let others = below.filter(|file| tracked.contains(file));
        let all = named.iter().cloned().chain(others.map(Path::to_owned));
        Some(all.collect())
    }

    fn program(&self, name: &str, cwd: &Path) -> ProgramFact {
        self.facts.program(name, cwd)
    }

    fn glob(&self, cwd: &Path, pattern: &glob::Glob) -> Option<Vec<String>> {
        self.facts.glob(cwd, pattern)
    }

    fn git(&self, cwd: &Path) -> GitFact {
        self.facts.git(cwd)
    }

    fn find_upward(&self, cwd: &Path, names: &[&str]) -> Option<PathBuf> {
        self.facts.find_upward(cwd, names)
    }

    fn risky_files(&self, root: &Path) -> RiskyFiles {
        self.facts.risky_files(root)
    }

    fn risky_tracked_files(&self, cwd: &Path) -> RiskyFiles {
        self.facts.risky_tracked_files(cwd)
    }

    fn locale(&self) -> &'static str {
        self.facts.locale()
    }
}

/// Returns whether a command may read files that it does not name, also below a wrapper such as `timeout 5 rg x`.
fn searches(words: &[String]) -> bool {
    let recursive = |word: &String| {
        let short = word.starts_with('-') && !word.starts_with("--");
        short && word.contains(RECURSIVE) || RECURSIVE_LONG.iter().any(|it| word.starts_with(it))
    };
    words.iter().any(|word| {
        let name = word.rsplit('/').next().unwrap_or(word);
        SEARCHES.contains(&name) || GREPS.contains(&name) && words.iter().any(recursive)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::process::Command;

    use super::searches;
    use crate::tool::judge::{Judge, JudgeConfig};
    use co_exec::Program;
    use co_exec::sandbox::{Launcher, Support};
    use co_policy::Verdict;

    /// Judges `line` in the workspace `dir/ws`, and returns whether it asks. With `hides`, the kernel can confine.
    fn asks(dir: &Path, hides: bool, line: &str) -> bool {
        let (workspace, home) = (dir.join("ws"), dir.to_owned());
        let (judge, _) = Judge::new(JudgeConfig {
            workspace: workspace.clone(),
            home: home.clone(),
            path: "/usr/bin:/bin".into(),
            settings: co_policy::PolicySettings::default(),
            saved: Vec::new(),
            own: Vec::new(),
        });
        let whole = Support {
            abi: Some(7),
            seccomp: true,
            namespaces: false,
            pid_namespaces: false,
            own_proc: false,
            why: None,
        };
        let support = if hides {
            whole
        } else {
            Support::none("no Landlock")
        };
        let launcher = Launcher::with_support("/nowhere".into(), home, Vec::new(), support);
        let judge = judge.with_launcher(Some(launcher));
        let found = judge.assess(&Program::Shell(line.to_owned()), &workspace);
        matches!(judge.verdict(&found, &[]), Verdict::Ask(_))
    }

    #[test]
    fn a_search_asks_where_nothing_hides_secrets_from_it() {
        let check = |hides: bool, secret: bool, line: &str, wanted: bool| {
            let dir = tempfile::tempdir().unwrap();
            let workspace = dir.path().join("ws");
            fs::create_dir_all(&workspace).unwrap();
            fs::write(workspace.join("plain"), "x").unwrap();
            if secret {
                fs::write(workspace.join(".env"), "x").unwrap();
            }
            assert_eq!(asks(dir.path(), hides, line), wanted, "{line}");
        };
        check(true, true, "grep -rn x .", false);
        check(false, true, "grep -rn x .", true);
        check(false, true, "find . -name '*lain' | xargs cat", true);
        check(true, true, "find . -name '*lain' | xargs cat", false);
        check(false, true, "cat plain", false);
        check(false, false, "grep -rn x .", false);
        check(true, true, "cat .env", true);
    }

    #[test]
    fn a_reader_asks_for_other_names_of_a_secret_where_nothing_hides_it() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join("ws").join(name);
        fs::create_dir_all(at("conf/prod")).unwrap();
        for name in ["plain", ".env", "conf/prod/key", "conf/other"] {
            fs::write(at(name), "x").unwrap();
        }
        fs::write(dir.path().join("shared"), "x").unwrap();
        fs::hard_link(at(".env"), at("notes")).unwrap();
        fs::hard_link(dir.path().join("shared"), at("copy")).unwrap();
        symlink("conf/prod", at("secrets")).unwrap();
        symlink(dir.path().join("shared"), at("shared.env")).unwrap();
        symlink("notes", at("link")).unwrap();
        let check = |line: &str, wanted: bool| {
            assert_eq!(asks(dir.path(), false, line), wanted, "{line}");
            assert!(!asks(dir.path(), true, line), "{line}");
        };
        check("cat notes", true);
        check("head -n 1 < notes", true);
        check("cat link", true);
        check("cat n*s", true);
        check("grep x plain notes", true);
        check("cat conf/prod/key", true);
        check("cat copy", true);
        check("cat plain conf/other", false);
        check("ls conf", false);
        check("echo x", false);
    }

    #[test]
    fn git_asks_if_it_tracks_another_name_of_a_secret_that_nothing_hides() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = dir.path().join("ws");
        let git = |words: &str| {
            let mut git = Command::new("git");
            git.args(words.split(' ')).current_dir(&workspace);
            let email = "user@example.com";
            for (name, value) in [("NAME", "user"), ("EMAIL", email)] {
                git.env(format!("GIT_AUTHOR_{name}"), value);
                git.env(format!("GIT_COMMITTER_{name}"), value);
            }
            assert!(git.status().unwrap().success(), "git {words}");
        };
        fs::create_dir(&workspace).unwrap();
        for name in ["plain", "notes"] {
            fs::write(workspace.join(name), "x").unwrap();
        }
        git("init -q");
        git("add plain notes");
        git("commit -qm first");
        let check = |line: &str, wanted: bool| {
            assert_eq!(asks(dir.path(), false, line), wanted, "{line}");
            assert!(!asks(dir.path(), true, line), "{line}");
        };
        check("git diff", false);
        fs::write(workspace.join(".env"), "x").unwrap();
        check("git grep x", false);
        fs::remove_file(workspace.join("notes")).unwrap();
        fs::hard_link(workspace.join(".env"), workspace.join("notes")).unwrap();
        check("git diff", true);
        check("git grep x", true);
        check("git diff -- plain", false);
        check("git status", false);
    }

    #[test]
    fn every_command_asks_if_the_survey_is_incomplete() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join("ws").join(name);
        fs::create_dir_all(at("many")).unwrap();
        fs::write(at("plain"), "x").unwrap();
        // Paths below it are longer than the system takes.
        let deep = "for i in {1..20}; do d=$(printf '%0240d' 1); mkdir $d && cd -P $d; done";
        let mut bash = Command::new("bash");
        let made = bash.args(["-c", deep]).current_dir(at("many")).status();
        assert!(made.unwrap().success());
        let check = |line: &str, exposed: bool, hidden: bool| {
            assert_eq!(asks(dir.path(), false, line), exposed, "{line}");
            assert_eq!(asks(dir.path(), true, line), hidden, "{line}");
        };
        check("cat plain", true, true);
        check("head -n 1 < plain", true, true);
        check("grep -rn x .", true, true);
        check("pwd", false, true);
        check("ls .", false, true);
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
        check("xargs -0 cat", true);
        check("grep -n x file", false);
        check("find . -name x", false);
        check("cat file", false);
    }
}
