//! The configuration that git would obey in a workspace, and the hazards in it, such as programs that git would start.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use super::history::History;
use super::index::Index;
use co_exec::regular::{self, Stamp};
use co_exec::repository::{self, Dirs};
use co_policy::facts::GitFact;
use co_policy::programs;

/// A larger index is assumed to hold submodules.
const MAX_INDEX: u64 = 64 << 20;

/// The settings of a configuration file.
#[derive(Debug, Clone, Default)]
struct GitConfig {
    keys: Vec<String>,
    /// All values of `core.worktree`, of which git obeys the last.
    work_trees: Vec<PathBuf>,
    /// True if `core.bare` may be true: git then has no work tree.
    bare: bool,
}

/// The settings of a configuration file, or the reason why it cannot be read.
type ParsedConfig = Result<Arc<GitConfig>, String>;

/// The repositories of one workspace. Each configuration file is read again when it changes.
pub(super) struct Repositories {
    root: PathBuf,
    git: Option<PathBuf>,
    configs: Mutex<HashMap<PathBuf, (Option<Stamp>, ParsedConfig)>>,
    submodules: Mutex<HashMap<PathBuf, (Option<Stamp>, bool)>>,
    index: Index,
    history: History,
}

impl Repositories {
    pub(super) fn new(root: PathBuf, git: Option<PathBuf>) -> Self {
        Self {
            root,
            git,
            configs: Mutex::default(),
            submodules: Mutex::default(),
            index: Index::default(),
            history: History::default(),
        }
    }

    /// Returns the reasons why git may do more than read the workspace, if it runs in `cwd`.
    pub(super) fn fact(&self, cwd: &Path) -> GitFact {
        let mut fact = GitFact::default();
        let cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
        let mut at = cwd.as_path();
        while at != self.root {
            if is_repository(at) {
                fact.hazards.push(format!(
                    "`{}` is a repository of its own, with its own configuration",
                    at.display()
                ));
                return fact;
            }
            match at.parent() {
                Some(parent) if parent.starts_with(&self.root) => at = parent,
                _ => {
                    fact.hazards
                        .push("git would look outside the workspace".to_owned());
                    return fact;
                }
            }
        }
        if is_bare(&self.root) {
            fact.hazards
                .push("the workspace looks like a bare repository, whose configuration is a file like any other".to_owned());
            return fact;
        }
        match repository::find(&self.root) {
            Ok(Some(dirs)) => self.add_hazards(&dirs, &mut fact),
            Ok(None) => {}
            Err(untrusted) => fact.hazards.push(untrusted.to_string()),
        }
        fact
    }

    /// Adds the hazards in the configuration of a repository.
    fn add_hazards(&self, dirs: &Dirs, fact: &mut GitFact) {
        let Dirs { own, common } = dirs;
        if !repository::is_own(own) {
            fact.hazards
                .push("`.git` belongs to another user".to_owned());
        }
        let here = self.is_work_tree_of(dirs);
        let mut ignores = false;
        for file in [common.join("config"), own.join("config.worktree")] {
            match self.config(&file) {
                Ok(config) => {
                    // Linked work trees ignore what the shared file says.
                    if config.bare && (own == common || file.ends_with("config.worktree")) {
                        let text = "git's configuration of this repository sets `core.bare`, so git has no work tree";
                        fact.hazards.push(text.to_owned());
                    }
                    for key in &config.keys {
                        ignores |= key.starts_with("submodule.") && key.ends_with(".ignore");
                        if let Some(what) = hazard(key).filter(|_| !here || key != "core.worktree")
                        {
                            fact.hazards.push(format!(
                                "git's configuration of this repository sets `{key}`, which {what}"
                            ));
                        }
                    }
                }
                Err(why) => fact.hazards.push(why),
            }
        }
        if self.has_submodules(own) && (ignores || modules_ignore(&self.root)) {
            fact.hazards.push(
                "a submodule asks git to look into it, with its own configuration".to_owned(),
            );
        }
    }

    /// Returns whether `core.worktree` keeps the work tree in its place, if it is set: each submodule sets it, and
    /// linked work trees ignore it.
    fn is_work_tree_of(&self, dirs: &Dirs) -> bool {
        if dirs.own == dirs.common {
            let files = ["config", "config.worktree"].map(|name| dirs.own.join(name));
            return files.iter().all(|file| {
                let leads = |value: &PathBuf| repository::leads(&dirs.own, value, &self.root);
                let config = self.config(file);
                config.is_ok_and(|config| config.work_trees.iter().all(leads))
            });
        }
        let obeys = |key: &String| key.eq_ignore_ascii_case("extensions.worktreeConfig");
        let config = self.config(&dirs.common.join("config"));
        config.is_ok_and(|config| !config.keys.iter().any(obeys))
    }

    /// Returns the settings of a configuration file. Includes are not followed.
    fn config(&self, file: &Path) -> ParsedConfig {
        let stamp = Stamp::of(file);
        if stamp.is_none() {
            return match file.symlink_metadata() {
                Err(_) => Ok(Arc::default()),
                Ok(_) => Err(format!(
                    "git's configuration `{}` cannot be read",
                    file.display()
                )),
            };
        }
        let mut configs = self
            .configs
            .lock()
            .unwrap_or_else(|broken| broken.into_inner());
        if let Some((seen, config)) = configs.get(file)
            && *seen == stamp
        {
            return config.clone();
        }
        let config = self.read(file);
        configs.insert(file.to_owned(), (stamp, config.clone()));
        config
    }

    fn read(&self, file: &Path) -> ParsedConfig {
        let unreadable = || format!("git's configuration `{}` cannot be read", file.display());
        if !file.metadata().is_ok_and(|meta| meta.is_file()) {
            return Err(unreadable());
        }
        let Some(git) = &self.git else {
            return Err("git's configuration cannot be read, since git is not on PATH".to_owned());
        };
        let output = Command::new(git)
            .args(["config", "--file"])
            .arg(file)
            .args(["--no-includes", "-z", "--list"])
            .env_clear()
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .current_dir("/")
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .map_err(|_| unreadable())?;
        if !output.status.success() {
            return Err(unreadable());
        }
        let mut config = GitConfig::default();
        let entries = output.stdout.split(|byte| *byte == 0);
        for entry in entries.filter(|entry| !entry.is_empty()) {
            // A key without a value has no line end.
            let end = entry.iter().position(|byte| *byte == b'\n');
            let (key, value) = entry.split_at(end.unwrap_or(entry.len()));
            if key == b"core.worktree" {
                let value = OsStr::from_bytes(value.get(1..).unwrap_or_default());
                config.work_trees.push(value.into());
            }
            config.bare |= key == b"core.bare" && value != b"\nfalse";
            config.keys.push(String::from_utf8_lossy(key).into_owned());
        }
        Ok(Arc::new(config))
    }

    /// Returns the files that git tracks, by their paths below the workspace; none if git may not be asked.
    pub(super) fn tracked(&self, cwd: &Path) -> Option<Arc<[PathBuf]>> {
        if !self.fact(cwd).hazards.is_empty() {
            return None;
        }
        let dirs = repository::find(&self.root).ok()??;
        let listed = self.index.list(self.git.as_ref()?, &self.root, &dirs)?;
        Some(listed.files)
    }

    /// Returns the files with secret names that git tracks or ever tracked, below the workspace.
    pub(super) fn committed_secrets(&self) -> Option<Arc<[PathBuf]>> {
        if !self.fact(&self.root).hazards.is_empty() {
            return None;
        }
        let Some(dirs) = repository::find(&self.root).ok()? else {
            return Some(Vec::new().into());
        };
        let git = self.git.as_ref()?;
        let before = self.history.secrets(git, &self.root, &dirs)?;
        if Stamp::of(&dirs.own.join("index")).is_none() {
            return Some(before);
        }
        let now = self.index.list(git, &self.root, &dirs)?.secrets;
        if now.iter().all(|file| before.binary_search(file).is_ok()) {
            return Some(before);
        }
        let all: BTreeSet<_> = before.iter().chain(&*now).cloned().collect();
        Some(all.into_iter().collect())
    }

    /// Returns whether the index may hold a submodule: its bytes contain the mode of one.
    fn has_submodules(&self, own: &Path) -> bool {
        let index = own.join("index");
        let Some(stamp) = Stamp::of(&index) else {
            return false;
        };
        let mut submodules = self
            .submodules
            .lock()
            .unwrap_or_else(|broken| broken.into_inner());
        if let Some((seen, has)) = submodules.get(&index)
            && *seen == Some(stamp)
        {
            return *has;
        }
        let shared = std::fs::read_dir(own).is_ok_and(|entries| {
            entries.flatten().any(|entry| {
                entry
                    .file_name()
                    .to_string_lossy()
                    .starts_with("sharedindex.")
            })
        });
        let has = shared
            || regular::read(&index, MAX_INDEX).map_or(true, |bytes| {
                bytes.windows(4).any(|four| four == [0, 0, 0xe0, 0])
            });
        submodules.insert(index, (Some(stamp), has));
        has
    }
}

/// Returns whether git would take this directory for a repository.
fn is_repository(dir: &Path) -> bool {
    dir.join(".git").symlink_metadata().is_ok() || is_bare(dir)
}

fn is_bare(dir: &Path) -> bool {
    dir.join("HEAD").symlink_metadata().is_ok() && dir.join("objects").is_dir()
}

/// Returns whether `.gitmodules` may set `ignore`, or cannot be read.
fn modules_ignore(root: &Path) -> bool {
    regular::text(&root.join(".gitmodules"))
        .map_or(true, |text| text.to_ascii_lowercase().contains("ignore"))
}

/// Returns the dangerous effect of a key in a repository's own configuration, if it has one.
fn hazard(key: &str) -> Option<&'static str> {
    const RUNS: &str = "runs a program";
    const READS: &str = "reads a file that nobody has checked";
    let lower = key.to_ascii_lowercase();
    let (section, name) = (lower.split('.').next()?, lower.rsplit('.').next()?);
    match (section, name) {
        ("alias", _) if shadows(&lower) => Some("git may run instead of its own command"),
        ("diff", "external" | "command" | "textconv") => Some(RUNS),
        ("filter", "clean" | "smudge" | "process") | ("merge", "driver") => Some(RUNS),
        ("gpg", _) if name == "program" || name == "defaultkeycommand" => Some(RUNS),
        ("interactive", "difffilter") | ("core", "alternaterefscommand" | "gitproxy") => Some(RUNS),
        ("pretty", _) | ("format", "pretty") => Some("may check signatures, which runs a program"),
        ("core", "worktree") => Some("puts the work tree elsewhere"),
        ("core", "attributesfile" | "excludesfile")
        | ("mailmap", "file")
        | ("diff", "orderfile")
        | ("blame", "ignorerevsfile") => Some(READS),
        ("include" | "includeif", _) => Some("includes another file"),
        ("remote", "promisor" | "partialclonefilter") | ("extensions", "partialclone") => {
            Some("fetches what is missing")
        }
        ("diff", "submodule") | ("status", "submodulesummary") | ("submodule", "recurse") => {
            Some("looks into submodules")
        }
        _ => None,
    }
}

/// Returns whether an alias has the name of a command that the policy knows. Git obeys it if the command is deprecated.
fn shadows(key: &str) -> bool {
    let alias = key.strip_prefix("alias.").unwrap_or_default();
    let alias = alias.strip_suffix(".command").unwrap_or(alias);
    let command = |name: &'static str| name.strip_prefix("git ")?.split(' ').next();
    programs::names()
        .filter_map(command)
        .any(|name| name == alias)
}

#[cfg(test)]
mod tests {
    use super::hazard;

    #[test]
    fn keys_that_run_read_or_fetch() {
        for key in [
            "diff.external",
            "diff.x.command",
            "diff.x.textconv",
            "filter.x.clean",
            "filter.x.smudge",
            "filter.x.process",
            "merge.x.driver",
            "gpg.program",
            "gpg.ssh.program",
            "gpg.ssh.defaultKeyCommand",
            "interactive.diffFilter",
            "core.alternateRefsCommand",
            "core.gitProxy",
            "pretty.x",
            "format.pretty",
            "core.worktree",
            "core.attributesFile",
            "core.excludesFile",
            "mailmap.file",
            "diff.orderFile",
            "blame.ignoreRevsFile",
            "include.path",
            "includeIf.gitdir:/x.path",
            "remote.origin.promisor",
            "remote.origin.partialCloneFilter",
            "extensions.partialClone",
            "diff.submodule",
            "status.submoduleSummary",
            "submodule.recurse",
            "DIFF.X.TEXTCONV",
            "alias.whatchanged",
            "alias.Whatchanged.command",
            "alias.remote",
        ] {
            assert!(hazard(key).is_some(), "{key}");
        }
        for key in [
            "user.name",
            "core.bare",
            "core.filemode",
            "remote.origin.url",
            "branch.main.merge",
            "diff.algorithm",
            "gpg.format",
            "submodule.x.url",
            "filter.x.required",
            "blame.date",
            "alias.st",
            "alias.log.x",
        ] {
            assert!(hazard(key).is_none(), "{key}");
        }
    }
}
