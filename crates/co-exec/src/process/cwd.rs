//! Checks the working directory that a model requests.

use std::io;
use std::path::{Path, PathBuf};

use co_policy::paths::normalize_lexically;

use crate::error::Error;

/// Returns the canonical path of the directory `asked`, which may be relative to `cwd`.
///
/// Both the path as written and the canonical path must be inside the workspace.
///
/// # Errors
/// The directory does not exist, its symbolic links form a loop, or it is outside the workspace.
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
    let root = resolve(workspace)?;
    let written = normalize_lexically(&joined);
    if !written.starts_with(normalize_lexically(workspace)) && !written.starts_with(&root) {
        return Err(outside(written));
    }
    let real = resolve(&joined)?;
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

/// Returns the canonical path. Like the kernel, refuses loops and more than 40 symbolic links.
fn resolve(path: &Path) -> Result<PathBuf, Error> {
    path.canonicalize().map_err(|error| missing(path, error))
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
        let real = |asked: &str| confine_cwd(&work, &work.join("src"), asked);
        for (asked, expected) in [
            ("", "src"),
            (".", "src"),
            ("deep", "src/deep"),
            ("..", ""),
            ("../in/deep", "src/deep"),
            ("../../work/src", "src"),
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
        for asked in ["gone", "../file", "../file/x", "../loop"] {
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
