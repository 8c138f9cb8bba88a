//! The index of git. Git writes it again when the times of files have changed, also for a command that only looks.

/// The bytes of an entry before its object: times, device, inode, mode, owner, size.
const STAT: usize = 40;
/// The place of the mode in them.
const MODE: std::ops::Range<usize> = 24..28;
/// The flag of an entry that more flags follow.
const EXTENDED: u8 = 0x40;

/// Returns whether two indexes list the same files with the same objects.
pub(super) fn is_same(one: &[u8], other: &[u8]) -> bool {
    // The objects of a repository have one of these lengths.
    [20, 32].iter().any(|hash| {
        let one = without_stats(one, *hash);
        one.is_some() && one == without_stats(other, *hash)
    })
}

/// Returns an index without what git knows of the files on the disk; none if it has another form.
fn without_stats(index: &[u8], hash: usize) -> Option<Vec<u8>> {
    let header = index.get(..12)?;
    let number = |bytes: &[u8]| Some(u32::from_be_bytes(bytes.try_into().ok()?));
    let (version, count) = (number(&header[4..8])?, number(&header[8..12])?);
    if &header[..4] != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let mut kept = header.to_owned();
    let mut rest = &index[12..];
    for _ in 0..count {
        let end = STAT + hash + 2;
        kept.extend_from_slice(rest.get(MODE)?);
        kept.extend_from_slice(rest.get(STAT..end)?);
        let more = version > 2 && rest[STAT + hash] & EXTENDED != 0;
        let name = end + if more { 2 } else { 0 };
        let length = name_length(rest.get(name..)?, version)?;
        kept.extend_from_slice(rest.get(end..name + length)?);
        kept.push(0);
        let size = match version {
            4 => name + length + 1,
            _ => (name + length) / 8 * 8 + 8,
        };
        rest = rest.get(size..)?;
    }
    while rest.len() > hash {
        let size = 8 + usize::try_from(number(rest.get(4..8)?)?).ok()?;
        let extension = rest.get(..size)?;
        // Git may leave out those with a capital letter.
        if !extension[0].is_ascii_uppercase() {
            kept.extend_from_slice(extension);
        }
        rest = &rest[size..];
    }
    (rest.len() == hash).then_some(kept)
}

/// Returns the number of bytes of a name, with the number before it that version 4 has.
fn name_length(rest: &[u8], version: u32) -> Option<usize> {
    let number = match version {
        4 => rest.iter().position(|byte| byte & 0x80 == 0)? + 1,
        _ => 0,
    };
    let name = rest.get(number..)?.iter().position(|byte| *byte == 0)?;
    Some(number + name)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use super::*;

    fn git(dir: &Path, args: &[&str]) {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b"]);
        let done = git
            .args(args)
            .current_dir(dir)
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        let done = done.output().unwrap();
        assert!(done.status.success(), "{args:?}: {done:?}");
    }

    #[test]
    fn a_refreshed_index_is_the_same_and_a_changed_one_is_not() {
        for (format, version) in [("sha1", "2"), ("sha1", "4"), ("sha256", "3")] {
            let dir = tempfile::tempdir().unwrap();
            let dir = dir.path();
            let index = || fs::read(dir.join(".git/index")).unwrap();
            git(dir, &["init", "-q", "--object-format", format]);
            for number in 0..20 {
                fs::create_dir_all(dir.join("d")).unwrap();
                fs::write(dir.join(format!("d/file{}", "x".repeat(number))), "1").unwrap();
            }
            git(dir, &["add", "."]);
            git(dir, &["update-index", "--index-version", version]);
            git(dir, &["commit", "-q", "-m", "1"]);
            let before = index();
            for path in ["d/file", "d/filex"] {
                let file = fs::File::options()
                    .write(true)
                    .open(dir.join(path))
                    .unwrap();
                file.set_modified(std::time::SystemTime::UNIX_EPOCH)
                    .unwrap();
            }
            git(dir, &["status"]);
            assert_ne!(index(), before, "git did not refresh it");
            assert!(is_same(&index(), &before), "{format} {version}");
            for args in [
                &["mv", "d/file", "d/moved"][..],
                &["rm", "-q", "--cached", "d/filex"],
                &["update-index", "--chmod=+x", "d/filexx"],
                &["update-index", "--skip-worktree", "d/filexxx"],
            ] {
                let before = index();
                git(dir, args);
                assert!(!is_same(&index(), &before), "{args:?}");
            }
            assert!(!is_same(&before[..before.len() - 1], &before));
            assert!(!is_same(b"", b""));
        }
    }
}
