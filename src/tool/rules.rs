//! A person's lasting rules on disk: one file a workspace, readable by the person alone.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::fnv;
use crate::policy::Pattern;
use crate::policy::saved::Saved;

/// The file that is locked by who changes rules.
const LOCK: &str = "lock";
/// How long it is waited for: who has it writes one small file.
const PATIENCE: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_millis(10);

/// Why rules could not be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the saved rules in {path} cannot be read: {why}; mend or remove that file")]
    Read { path: PathBuf, why: String },
    #[error("the saved rules cannot be written to {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
}

/// Returns the rules kept for a workspace, none where there is no file.
///
/// # Errors
/// Where the file is there and cannot be read.
pub fn load(dir: &Path, workspace: &Path) -> Result<Vec<Pattern>, Error> {
    let path = file(dir, workspace);
    let fail = |why: String| Error::Read {
        path: path.clone(),
        why,
    };
    match fs::read_to_string(&path) {
        Ok(text) => Saved::read(&text).map(|saved| saved.allow).map_err(fail),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(fail(error.to_string())),
    }
}

/// Adds a rule.
///
/// # Errors
/// Where the file cannot be read or written.
pub fn save(dir: &Path, workspace: &Path, rule: &Pattern) -> Result<(), Error> {
    let _alone = lock(dir)?;
    let mut rules = load(dir, workspace)?;
    if !rules.contains(rule) {
        rules.push(rule.clone());
    }
    write(dir, workspace, rules)
}

/// Removes a rule; true where it was there.
///
/// # Errors
/// Where the file cannot be read or written.
pub fn remove(dir: &Path, workspace: &Path, rule: &Pattern) -> Result<bool, Error> {
    let _alone = lock(dir)?;
    let mut rules = load(dir, workspace)?;
    let before = rules.len();
    rules.retain(|kept| kept != rule);
    let removed = rules.len() < before;
    if removed {
        write(dir, workspace, rules)?;
    }
    Ok(removed)
}

/// Keeps every other chat, and every other Neovim, from changing rules until it is dropped: who read them before
/// would write a removed one back.
fn lock(dir: &Path) -> Result<File, Error> {
    let path = dir.join(LOCK);
    let open = || -> io::Result<File> {
        make(dir)?;
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .custom_flags(nix::fcntl::OFlag::O_NOFOLLOW.bits())
            .open(&path)?;
        let end = Instant::now() + PATIENCE;
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) if Instant::now() < end => std::thread::sleep(RETRY),
                Err(Errno::WOULDBLOCK) => {
                    let why = "another Neovim holds it; go on in that one, or end it";
                    return Err(io::Error::new(io::ErrorKind::WouldBlock, why));
                }
                Err(Errno::INTR) => {}
                // A file system without locks: as it would be without asking for one.
                Ok(()) | Err(Errno::NOLCK | Errno::OPNOTSUPP) => return Ok(file),
                Err(error) => return Err(error.into()),
            }
        }
    };
    open().map_err(|source| Error::Write {
        path: path.clone(),
        source,
    })
}

fn make(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
}

/// Returns where the rules of a workspace are kept.
pub fn file(dir: &Path, workspace: &Path) -> PathBuf {
    dir.join(format!(
        "{:016x}.toml",
        fnv::hash(&[workspace.as_os_str().as_encoded_bytes()])
    ))
}

/// Replaces the file whole, so that no reader meets half of it.
fn write(dir: &Path, workspace: &Path, allow: Vec<Pattern>) -> Result<(), Error> {
    let path = file(dir, workspace);
    let saved = Saved {
        workspace: workspace.display().to_string(),
        allow,
    };
    let put = || -> io::Result<()> {
        make(dir)?;
        let mut file = tempfile::NamedTempFile::new_in(dir)?;
        file.as_file()
            .set_permissions(fs::Permissions::from_mode(0o600))?;
        file.write_all(saved.write().as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&path).map(drop).map_err(|error| error.error)
    };
    put().map_err(|source| Error::Write {
        path: path.clone(),
        source,
    })
}

#[cfg(test)]
mod tests {
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
        assert_eq!(load(&dir, here).unwrap(), [rule.clone(), exact.clone()]);
        assert_eq!(load(&dir, there).unwrap(), []);
        let mode = file(&dir, here).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(remove(&dir, here, &rule).unwrap());
        assert!(!remove(&dir, here, &rule).unwrap());
        assert_eq!(load(&dir, here).unwrap(), [exact]);
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
        let kept = load(dir.path(), here).unwrap();
        assert_eq!(kept.len(), 16, "{kept:?}");
        assert!(!kept.contains(&old));
    }
}
