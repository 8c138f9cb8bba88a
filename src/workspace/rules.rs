//! The rules that a person saved: one private file for each workspace.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::paths::workspace_name;
use crate::shared_file;
use co_policy::rule_files::SavedRules;
use co_policy::{HostPattern, Pattern};

/// The reason why rules could not be read or saved.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the saved rules in {path} cannot be read: {why}; mend or remove that file")]
    Read { path: PathBuf, why: String },
    #[error("the saved rules cannot be written to {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
}

/// Returns everything that the person saved for a workspace.
///
/// # Errors
/// The file exists, but cannot be read.
pub fn load(dir: &Path, workspace: &Path) -> Result<SavedRules, Error> {
    let path = file(dir, workspace);
    let fail = |why: String| Error::Read {
        path: path.clone(),
        why,
    };
    match fs::read_to_string(&path) {
        Ok(text) => SavedRules::read(&text).map_err(fail),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(SavedRules::default()),
        Err(error) => Err(fail(error.to_string())),
    }
}

/// Adds a rule to the saved rules of a workspace.
///
/// # Errors
/// The file cannot be read or written.
pub fn save(dir: &Path, workspace: &Path, rule: &Pattern) -> Result<(), Error> {
    let add = |saved: &mut SavedRules| {
        if !saved.allow.contains(rule) {
            saved.allow.push(rule.clone());
        }
    };
    change(dir, workspace, add).map(drop)
}

/// Removes a rule from the saved rules of a workspace. Returns false if it was not saved.
///
/// # Errors
/// The file cannot be read or written.
pub fn remove(dir: &Path, workspace: &Path, rule: &Pattern) -> Result<bool, Error> {
    change(dir, workspace, |saved| {
        saved.allow.retain(|kept| kept != rule)
    })
}

/// Saves hosts that confined commands of a workspace may contact without a question.
///
/// # Errors
/// The file cannot be read or written.
pub fn save_hosts(dir: &Path, workspace: &Path, hosts: &[HostPattern]) -> Result<(), Error> {
    let add = |saved: &mut SavedRules| {
        for host in hosts {
            if !saved.allow_hosts.contains(host) {
                saved.allow_hosts.push(host.clone());
            }
        }
    };
    change(dir, workspace, add).map(drop)
}

/// Removes a host from the saved hosts of a workspace. Returns false if it was not saved.
///
/// # Errors
/// The file cannot be read or written.
pub fn remove_host(dir: &Path, workspace: &Path, host: &HostPattern) -> Result<bool, Error> {
    change(dir, workspace, |saved| {
        saved.allow_hosts.retain(|kept| kept != host)
    })
}

/// Saves whether co may try commands of the workspace before it asks. Returns true if this changes the saved value.
///
/// # Errors
/// The file cannot be read or written.
pub fn set_try_first(dir: &Path, workspace: &Path, allowed: bool) -> Result<bool, Error> {
    change(dir, workspace, |saved| saved.try_first = allowed)
}

/// Changes the saved rules of a workspace. Returns true if they have changed.
fn change(
    dir: &Path,
    workspace: &Path,
    change: impl FnOnce(&mut SavedRules),
) -> Result<bool, Error> {
    let _alone = lock(dir)?;
    let before = load(dir, workspace)?;
    let mut saved = before.clone();
    change(&mut saved);
    let changed = saved != before;
    if changed {
        saved.workspace = workspace.display().to_string();
        let path = file(dir, workspace);
        shared_file::replace(&path, &saved.write())
            .map_err(|source| Error::Write { path, source })?;
    }
    Ok(changed)
}

/// Locks the rules. Other backends cannot change them until the returned file is dropped.
fn lock(dir: &Path) -> Result<File, Error> {
    shared_file::lock(dir).map_err(|source| Error::Write {
        path: dir.join(shared_file::LOCK),
        source,
    })
}

/// Returns the path of the file with a workspace's rules.
pub fn file(dir: &Path, workspace: &Path) -> PathBuf {
    dir.join(format!("{}.toml", workspace_name(workspace)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn rules_come_back_and_are_private() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("rules");
        let (here, there) = (Path::new("/w/a"), Path::new("/w/b"));
        let rule: Pattern = "cargo test".parse().unwrap();
        let exact = Pattern::exact("rm 'a b' && ls");
        save(&dir, here, &rule).unwrap();
        save(&dir, here, &exact).unwrap();
        save(&dir, here, &rule).unwrap();
        assert_eq!(
            load(&dir, here).unwrap().allow,
            [rule.clone(), exact.clone()]
        );
        assert_eq!(load(&dir, there).unwrap(), SavedRules::default());
        let mode = file(&dir, here).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(remove(&dir, here, &rule).unwrap());
        assert!(!remove(&dir, here, &rule).unwrap());
        assert_eq!(load(&dir, here).unwrap().allow, [exact]);
        let host: HostPattern = "example.org".parse().unwrap();
        for _ in 0..2 {
            save_hosts(&dir, here, std::slice::from_ref(&host)).unwrap();
        }
        let kept = load(&dir, here).unwrap().allow_hosts;
        assert_eq!(kept, std::slice::from_ref(&host));
        assert!(remove_host(&dir, here, &host).unwrap());
        assert!(!remove_host(&dir, here, &host).unwrap());
        assert!(set_try_first(&dir, here, true).unwrap());
        assert!(!set_try_first(&dir, here, true).unwrap());
        assert!(load(&dir, here).unwrap().try_first);
        fs::write(file(&dir, here), "allow = 3").unwrap();
        assert!(load(&dir, here).is_err());
        assert!(
            save(&dir, here, &rule).is_err(),
            "a file that is not understood is not overwritten"
        );
    }

    #[test]
    fn who_changes_rules_at_the_same_time_loses_none() {
        let dir = tempfile::tempdir().unwrap();
        let here = Path::new("/w");
        let old: Pattern = "make old".parse().unwrap();
        save(dir.path(), here, &old).unwrap();
        std::thread::scope(|scope| {
            for number in 0..16 {
                let rule: Pattern = format!("make t{number}").parse().unwrap();
                let dir = dir.path();
                scope.spawn(move || save(dir, here, &rule).unwrap());
            }
            scope.spawn(|| assert!(remove(dir.path(), here, &old).unwrap()));
        });
        let kept = load(dir.path(), here).unwrap().allow;
        assert_eq!(kept.len(), 16, "{kept:?}");
        assert!(!kept.contains(&old));
    }
}
