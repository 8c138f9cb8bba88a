//! Finds the directories that a long-lived program, such as an agent, must be able to read: those in which it is installed.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

use co_exec::find_program;
use co_exec::sandbox::is_tool_directory;

/// The smallest depth of a directory that is granted because a program is in it. The depth is relative to the home directory.
const LEAST_DEPTH: usize = 3;

/// The largest number of symbolic links that are followed for one path. It is the same as the kernel's limit.
const MOST_LINKS: usize = 40;

/// The largest number of bytes that are read of a script's first line.
const LONGEST_FIRST_LINE: u64 = 256;

/// The directories that affect which places a program gets.
pub(crate) struct KnownDirectories<'a> {
    pub(crate) home: &'a Path,
    /// The workspace, which the program can read anyway. A file in it must not give the program further places, be it as a
    /// symbolic link, by the first line of a script, or as a program in a directory of `path`.
    pub(crate) workspace: &'a Path,
    /// The value of the variable `PATH`.
    pub(crate) path: &'a OsStr,
}

/// Returns the places that a command line needs: the directories of its program, of a script's interpreter, and of each file that
/// a word names.
///
/// Leaves out files in the workspace and files that a link in the workspace leads to. Never returns the home directory, a
/// directory that contains it, or the root.
pub(crate) fn of(program: &Path, words: &[String], around: &KnownDirectories<'_>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let is_chosen_there = |it: &Path| is_chosen_by(it, around.workspace);
    let files = words.iter().map(Path::new);
    let files = files.filter(|it| it.is_absolute() && it.is_file());
    for file in std::iter::once(program).chain(files) {
        if is_chosen_there(file) {
            continue;
        }
        found.extend(place(file, around.home));
        let interpreter = interpreter(file, around.path);
        if let Some(interpreter) = interpreter.filter(|it| !is_chosen_there(it)) {
            found.extend(place(&interpreter, around.home));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Returns true if a path is in a workspace, or if the path leads through a symbolic link that is in the workspace.
pub(crate) fn is_chosen_by(path: &Path, workspace: &Path) -> bool {
    let real = workspace.canonicalize();
    path.starts_with(workspace) || leads_through(path, real.as_deref().unwrap_or(workspace))
}

/// Returns true if a path is in the directory `dir`, or if the path leads through a symbolic link that is in `dir`. `dir` must be
/// a canonical path.
fn leads_through(path: &Path, dir: &Path) -> bool {
    let names = |path: &Path| {
        let names = path.components().map(|it| it.as_os_str().to_owned());
        names.collect::<Vec<_>>()
    };
    let mut real = PathBuf::new();
    let mut left = names(path);
    left.reverse();
    let mut links = 0;
    while let Some(name) = left.pop() {
        match name == ".." {
            true => drop(real.pop()),
            // The root replaces all before it.
            false => real.push(name),
        }
        if real.starts_with(dir) {
            return true;
        }
        if let Ok(target) = real.read_link() {
            links += 1;
            if links > MOST_LINKS {
                return true;
            }
            real.pop();
            left.extend(names(&target).into_iter().rev());
        }
    }
    false
}

/// Returns the directory in which a program is installed. Returns only the program's own path if this directory may contain more
/// than the program.
fn place(program: &Path, home: &Path) -> Option<PathBuf> {
    let (real, home) = (program.canonicalize().ok()?, home.canonicalize());
    let home = home.as_deref().ok()?;
    let packages = real.ancestors().filter(|it| it.ends_with("node_modules"));
    let parent = real.parent()?;
    let dir = match packages.last() {
        Some(packages) => Some(packages),
        None if parent.ends_with("bin") => parent.parent(),
        None => Some(parent).filter(|dir| !is_shallow(dir, home)),
    };
    let dir = dir.filter(|dir| is_tool_directory(dir, home));
    Some(dir.map_or_else(|| real.clone(), Path::to_owned))
}

/// Returns true if a directory in a home directory is one of those in which people and many programs keep files, such as
/// `Documents` and `.local/share`.
fn is_shallow(dir: &Path, home: &Path) -> bool {
    let below = dir.strip_prefix(home);
    below.is_ok_and(|below| below.components().count() < LEAST_DEPTH)
}

/// Returns the interpreter in the first line of a script.
fn interpreter(script: &Path, path: &OsStr) -> Option<PathBuf> {
    let mut start = Vec::new();
    let file = std::fs::File::open(script).ok()?;
    file.take(LONGEST_FIRST_LINE).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|it| *it == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_whitespace();
    let first = Path::new(words.next()?);
    match first.ends_with("env") {
        true => find_program(words.find(|it| !it.starts_with('-'))?, path),
        false => Some(first.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn they_are_found_by_links_and_the_first_line_of_a_script() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        let home = real.join("home/ann");
        let program = |name: &str, text: &str| {
            let file = real.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
            file
        };
        let script = program(
            "home/ann/.npm/lib/node_modules/@a/acp/dist/index.js",
            "#!/usr/bin/env node\n1",
        );
        program("home/ann/.node/bin/node", "");
        let bin = real.join("home/ann/.npm/bin");
        fs::create_dir_all(&bin).unwrap();
        symlink(&script, bin.join("acp")).unwrap();
        let path = std::env::join_paths([&real.join("home/ann/.node/bin")]).unwrap();
        let around = KnownDirectories {
            home: &home,
            workspace: &real.join("ws"),
            path: &path,
        };
        let found = |file: &Path, words: &[&str]| {
            let words: Vec<_> = words.iter().map(|it| (*it).to_owned()).collect();
            let places = of(file, &words, &around);
            let below = places.iter().map(|it| it.strip_prefix(&real).unwrap_or(it));
            let below: Vec<_> = below.map(|it| it.display().to_string()).collect();
            below.join(" ")
        };
        let npm = "home/ann/.node/bin/node home/ann/.npm/lib/node_modules";
        assert_eq!(found(&bin.join("acp"), &[]), npm);
        let node = real.join("home/ann/.node/bin/node");
        assert_eq!(found(&node, &[script.to_str().unwrap(), "relative"]), npm);
        let settings = program("home/ann/.config/editor/user/settings.json", "");
        let first_line = format!("#!{}\n", settings.display());
        let chosen = program("ws/server.js", &first_line);
        let link = real.join("ws/link.js");
        symlink(&settings, &link).unwrap();
        for word in [&chosen, &link] {
            assert_eq!(found(&bin.join("acp"), &[word.to_str().unwrap()]), npm);
        }
        assert_eq!(found(&chosen, &[]), "");
        // By a link there, or by one that leads to one there.
        assert_eq!(found(&link, &[]), "");
        symlink(&link, bin.join("indirect")).unwrap();
        symlink(real.join("ws"), bin.join("dir")).unwrap();
        for indirect in ["indirect", "dir/link.js", "../bin/dir/link.js"] {
            assert_eq!(found(&bin.join(indirect), &[]), "", "{indirect}");
        }
        symlink(bin.join("loop"), bin.join("loop")).unwrap();
        assert_eq!(found(&bin.join("loop"), &[]), "");
        let alone = program("home/ann/agent", "");
        assert_eq!(found(&alone, &[]), "home/ann/agent");
        let in_bin = program("home/ann/bin/agent", "");
        assert_eq!(found(&in_bin, &[]), "home/ann/bin/agent");
        for alone in [
            "home/ann/.local/bin/agent",
            "home/ann/.cargo/bin/agent",
            "home/ann/.local/share/agent.py",
            "home/ann/Documents/agent.py",
        ] {
            assert_eq!(found(&program(alone, ""), &[]), alone);
        }
        let version = program("home/ann/.local/share/agent/1.0/agent", "");
        assert_eq!(found(&version, &[]), "home/ann/.local/share/agent/1.0");
        let tool = program("home/ann/tools/agent/bin/agent", "");
        assert_eq!(found(&tool, &[]), "home/ann/tools/agent");
        let apart = program("opt/agent/versions/1.0/agent", "");
        assert_eq!(found(&apart, &[]), "opt/agent/versions/1.0");
    }
}
