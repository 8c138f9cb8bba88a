//! Checks the working directory that a model asks for.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::error::Error;

/// The most symbolic links that one path may go through.
const MAX_LINKS: usize = 64;

/// Returns the real path of the directory `asked`, which is relative to `cwd`.
///
/// Both the path as written and the real path must be inside the workspace.
///
/// # Errors
/// The directory does not exist, its links form a loop, or it is outside the workspace.
pub fn confine_cwd(workspace: &Path, cwd: &Path, asked: &str) -> Result<PathBuf, Error> {
    if asked.contains('\0') {
        return Err(Error::Nul);
    }
    let joined = cwd.join(asked);
    if !joined.is_absolute() || !workspace.is_absolute() {
        return Err(Error::RelativeCwd(joined));
    }
    let outside = |to: PathBuf| Error::OutsideWorkspace {
        asked: asked.to_owned(),
        to,
        workspace: workspace.to_owned(),
    };
    let root = resolve(workspace, asked)?;
    let written = flatten(&joined);
    if !written.starts_with(flatten(workspace)) && !written.starts_with(&root) {
        return Err(outside(written));
    }
    let real = resolve(&joined, asked)?;
    if !real.starts_with(&root) {
        return Err(outside(real));
    }
    match real.metadata() {
        Ok(facts) if facts.is_dir() => Ok(real),
        Ok(_) => Err(missing(&joined, io::ErrorKind::NotADirectory.into())),
        Err(error) => Err(missing(&joined, error)),
    }
}

fn missing(path: &Path, source: io::Error) -> Error {
    Error::Cwd {
        path: path.to_owned(),
        source,
    }
}

/// Returns the path without `.` and `..`, as written.
fn flatten(path: &Path) -> PathBuf {
    let mut flat = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                flat.pop();
            }
            Component::CurDir => {}
            part => flat.push(part),
        }
    }
    flat
}

/// Returns the real path. It follows each link by itself to count them.
fn resolve(path: &Path, asked: &str) -> Result<PathBuf, Error> {
    let parts = |path: &Path| -> Vec<OsString> {
        path.components()
            .map(|it| it.as_os_str().to_owned())
            .collect()
    };
    let mut ahead: VecDeque<OsString> = parts(path).into();
    let mut at = PathBuf::from("/");
    let mut hops = 0;
    while let Some(part) = ahead.pop_front() {
        if part == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&part);
        let facts = next.symlink_metadata().map_err(|it| missing(path, it))?;
        if !facts.is_symlink() {
            if !facts.is_dir() && !ahead.is_empty() {
                return Err(missing(path, io::ErrorKind::NotADirectory.into()));
            }
            at = next;
            continue;
        }
        hops += 1;
        if hops > MAX_LINKS {
            return Err(Error::TooManyLinks {
                asked: asked.to_owned(),
                hops: MAX_LINKS,
            });
        }
        let target = next.read_link().map_err(|it| missing(path, it))?;
        for part in parts(&target).into_iter().rev() {
            ahead.push_front(part);
        }
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn stays_inside() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let work = base.join("work");
        fs::create_dir_all(work.join("src/deep")).unwrap();
        fs::create_dir(base.join("other")).unwrap();
        fs::create_dir(base.join("work-too")).unwrap();
        fs::write(work.join("file"), "").unwrap();
        symlink("src", work.join("in")).unwrap();
        symlink("../other", work.join("out")).unwrap();
        symlink("out", work.join("out2")).unwrap();
        symlink("loop", work.join("loop")).unwrap();
        symlink(&work, base.join("alias")).unwrap();
        for n in 0..70 {
            let target = if n == 0 {
                "src".into()
            } else {
                format!("l{}", n - 1)
            };
            symlink(target, work.join(format!("l{n}"))).unwrap();
        }
        let real = |asked: &str| confine_cwd(&work, &work.join("src"), asked);
        for (asked, expected) in [
            ("", "src"),
            (".", "src"),
            ("deep", "src/deep"),
            ("..", ""),
            ("../in/deep", "src/deep"),
            ("../../work/src", "src"),
            ("../l63", "src"),
        ] {
            let expected = work.join(expected);
            assert_eq!(real(asked).unwrap(), expected.join(""), "{asked}");
        }
        for asked in [
            "../..",
            "/",
            "../out",
            "../out2",
            "../../work-too",
            "../in/../../other",
            // Inside again, through a link that lies outside.
            "../../alias/src",
        ] {
            let error = real(asked).unwrap_err();
            assert!(
                matches!(error, Error::OutsideWorkspace { .. }),
                "{asked}: {error}"
            );
        }
        for asked in ["../loop", "../l64", "../l69"] {
            assert!(
                matches!(real(asked).unwrap_err(), Error::TooManyLinks { .. }),
                "{asked}"
            );
        }
        for asked in ["gone", "../file", "../file/x"] {
            assert!(
                matches!(real(asked).unwrap_err(), Error::Cwd { .. }),
                "{asked}"
            );
        }
        assert!(matches!(real("a\0b").unwrap_err(), Error::Nul));
        let alias = confine_cwd(&base.join("alias"), &base.join("alias/src"), "deep");
        assert_eq!(alias.unwrap(), work.join("src/deep"));
    }
}
