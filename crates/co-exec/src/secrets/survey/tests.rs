use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::{
    ContentCheck, Directory, FileStamp, MIN_PARALLEL_DIRECTORIES, MIN_PARALLEL_STAMPS, Packed,
    PathMap, Survey, WalkOptions, survey,
};
use crate::test_files;

/// Makes a workspace of empty files; a name that ends in `/` is a directory.
fn workspace(names: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in names {
        match name.ends_with('/') {
            true => fs::create_dir_all(dir.path().join(name)).unwrap(),
            false => test_files::write(dir.path(), name, "x"),
        }
    }
    dir
}

/// Surveys again, and reads at most so many entries.
fn again(before: &Survey, dir: &Path, most: usize) -> Survey {
    with_threads(1, before, dir, most)
}

fn with_threads(threads: usize, before: &Survey, dir: &Path, most: usize) -> Survey {
    let options = WalkOptions {
        private: &[],
        most,
        changed: None,
        threads,
    };
    before.again(dir, options)
}

fn relative(paths: &[PathBuf], root: &Path) -> Vec<String> {
    let root = root.canonicalize().unwrap();
    let relative = |path: &PathBuf| path.strip_prefix(&root).unwrap().display().to_string();
    paths.iter().map(relative).collect()
}

#[track_caller]
fn check(dir: &Path, files: &[&str], dirs: &[&str]) -> Survey {
    let found = survey(dir);
    assert_eq!(relative(&found.files, dir), files);
    assert_eq!(relative(&found.dirs, dir), dirs);
    assert!(found.complete);
    found
}

#[test]
fn finds_names_of_secrets_at_any_depth() {
    let dir = workspace(&[
        ".env",
        "a/.env",
        "a/b/server.key",
        "a/.env.example",
        ".aws/cli/x",
        ".aws/y",
        "readme",
    ]);
    let found = check(dir.path(), &[".env", "a/.env", "a/b/server.key"], &[".aws"]);
    assert_eq!(
        relative(&found.within, dir.path()),
        [".aws/cli/x", ".aws/y"]
    );
    check(workspace(&["a", "b/c"]).path(), &[], &[]);
}

#[test]
fn finds_where_links_with_secret_names_lead() {
    let dir = workspace(&["conf/dev.txt", "keys/k", "plain"]);
    let link = |to: &str, name: &str| symlink(to, dir.path().join(name)).unwrap();
    link("conf/dev.txt", ".env");
    link("keys", "secrets");
    link("/etc/passwd", ".env.local");
    link("nowhere", ".env.test");
    link(".", "credentials");
    check(dir.path(), &["conf/dev.txt"], &["keys"]);
}

#[test]
fn finds_every_name_of_a_secret_file() {
    let dir = workspace(&[".env", ".aws/k", "plain", "sub/"]);
    let link = |from: &str, name: &str| {
        fs::hard_link(dir.path().join(from), dir.path().join(name)).unwrap();
    };
    link(".env", "notes.txt");
    link(".aws/k", "sub/other");
    link("plain", "plain2");
    let outside = tempfile::NamedTempFile::new_in(dir.path().parent().unwrap()).unwrap();
    symlink(outside.path(), dir.path().join("id_rsa")).unwrap();
    fs::hard_link(outside.path(), dir.path().join("sub/same")).unwrap();
    let files = [".env", "notes.txt", "sub/other", "sub/same"];
    check(dir.path(), &files, &[".aws"]);
}

#[test]
fn what_git_itself_keeps_is_no_secret() {
    let dir = workspace(&[
        ".git/HEAD",
        ".git/config",
        ".git/credentials",
        ".git/refs/heads/credentials-fix",
        ".git/objects/x.key",
        ".git/modules/secrets/HEAD",
        ".git/modules/secrets/config",
        ".git/modules/secrets/deploy.pem",
        "bare/HEAD",
        "bare/objects/",
        "bare/refs/heads/.env",
        "bare/deploy.key",
        "nested/.git/HEAD",
        "nested/.env",
    ]);
    let files = [
        ".git/credentials",
        ".git/modules/secrets/deploy.pem",
        "bare/deploy.key",
        "bare/refs/heads/.env",
        "nested/.env",
    ];
    check(dir.path(), &files, &[]);
}

/// Gives all entries the stamps that they have now.
fn stamp<V: Packed>(map: &mut PathMap<V>, stamp: fn(&mut V) -> &mut Option<FileStamp>) {
    for (path, mut value) in map.clone().iter() {
        *stamp(&mut value) = FileStamp::of(&path);
        map.insert(&path, value);
    }
}

/// Makes a survey believe that its directories were last changed long before it read them.
fn settled(dir: &Path) -> Survey {
    let mut found = survey(dir);
    stamp(&mut found.read, |dir| &mut dir.stamp);
    stamp(&mut found.content_checks, |file| &mut file.stamp);
    assert!(found.is_current());
    found
}

#[test]
fn a_survey_is_current_until_a_directory_changes() {
    let dir = workspace(&["a/b/c", "d"]);
    let at = |name: &str| dir.path().join(name);
    assert!(
        !survey(dir.path()).is_current(),
        "the directories are too new"
    );
    let found = settled(dir.path());
    fs::write(at("a/b/c"), "changed").unwrap();
    assert!(found.is_current());
    fs::write(at("a/b/.env"), "x").unwrap();
    assert!(!found.is_current());
    let found = settled(dir.path());
    fs::rename(at("d"), at("a/.env")).unwrap();
    assert!(!found.is_current());
    let found = settled(dir.path());
    fs::remove_dir_all(at("a")).unwrap();
    assert!(!found.is_current());
}

#[test]
fn a_change_is_noticed_among_many_directories() {
    let names: Vec<String> = (0..MIN_PARALLEL_STAMPS)
        .map(|number| format!("{number}/"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let dir = workspace(&names);
    let mut found = settled(dir.path());
    // Two threads compare a half of them each.
    for name in names.iter().step_by(MIN_PARALLEL_STAMPS / 8) {
        let place = dir.path().canonicalize().unwrap().join(name);
        fs::write(place.join(".env"), "x").unwrap();
        assert!(!found.is_current(), "{name}");
        let mut read = found.read.get(&place).unwrap();
        read.stamp = FileStamp::of(&place);
        found.read.insert(&place, read);
        assert!(found.is_current());
    }
}

#[test]
fn a_survey_notices_a_secret_that_is_written_into_a_file() {
    let dir = workspace(&["a/b.json", "a/c.json"]);
    let found = settled(dir.path());
    let secret = r#"{"type": "service_account", "private_key": "-----BEGIN PRIVATE KEY-----"}"#;
    fs::write(dir.path().join("a/b.json"), secret).unwrap();
    assert!(!found.is_current());
    let found = again(&found, dir.path(), 10);
    assert_eq!(relative(&found.files, dir.path()), ["a/b.json"]);
    fs::write(dir.path().join("a/b.json"), "{}").unwrap();
    assert!(again(&found, dir.path(), 10).is_empty());
}

#[test]
fn a_private_key_is_found_by_its_content() {
    let names = ["a/b/deploy", "a/notes.txt", "node_modules/x/key", "c/d"];
    let dir = workspace(&names);
    let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n";
    for name in &names[..3] {
        fs::write(dir.path().join(name), key).unwrap();
    }
    let files = ["a/b/deploy", "a/notes.txt"];
    check(dir.path(), &files, &[]);
    let found = settled(dir.path());
    fs::write(dir.path().join("c/new"), key).unwrap();
    let found = again(&found, dir.path(), 2);
    assert_eq!(
        relative(&found.files, dir.path()),
        ["a/b/deploy", "a/notes.txt", "c/new"]
    );
    fs::write(dir.path().join("a/notes.txt"), "").unwrap();
    fs::write(dir.path().join("a/other"), "").unwrap();
    let found = again(&found, dir.path(), 10);
    assert_eq!(relative(&found.files, dir.path()), ["a/b/deploy", "c/new"]);
}

#[test]
fn only_changed_directories_are_read_again() {
    let dir = workspace(&["a/b/.env", "c/d/e.txt", "c/f/g.pem"]);
    let top = dir.path().canonicalize().unwrap();
    let before = settled(dir.path());
    fs::write(top.join("c/d/.env"), "x").unwrap();
    fs::remove_dir_all(top.join("a")).unwrap();
    let after = again(&before, dir.path(), 10);
    assert_eq!(
        relative(&after.files, dir.path()),
        ["c/d/.env", "c/f/g.pem"]
    );
    let kept = |name: &str| {
        let entries = |survey: &Survey| survey.entries(&top.join(name)).unwrap();
        entries(&before).is_shared_with(&entries(&after))
    };
    assert!(kept("c") && kept("c/f") && !kept("c/d") && !kept(""));
    assert_eq!(after.files, survey(dir.path()).files);
}

#[test]
fn a_walk_that_was_cut_short_goes_on_where_it_ended() {
    let dir = workspace(&["a/1", "a/2", "b/.env", "c/3", "d/.env"]);
    let mut found = again(&Survey::default(), dir.path(), 6);
    assert!(!found.complete && found.cut);
    stamp(&mut found.read, |dir| &mut dir.stamp);
    // If the first walk ended inside `a`, this one reads `a` again.
    let found = again(&found, dir.path(), 4);
    assert!(found.complete && !found.cut);
    assert_eq!(relative(&found.files, dir.path()), ["b/.env", "d/.env"]);
    assert!(!survey(&dir.path().join("missing")).complete);
}

#[test]
fn a_pipe_is_secret() {
    let dir = workspace(&["plain", "sub/"]);
    let mode = nix::sys::stat::Mode::S_IRWXU;
    nix::unistd::mkfifo(&dir.path().join("sub/pipe"), mode).unwrap();
    check(dir.path(), &["sub/pipe"], &[]);
}

#[test]
fn several_threads_find_the_same_as_one() {
    const KINDS: [&str; 11] = [
        "plain",
        ".env",
        "secrets/x",
        "secrets/x.rs",
        ".git/config",
        "HEAD",
        "objects/x",
        "auth.json",
        "node_modules/.env",
        "deep/.git",
        "key",
    ];
    let count = 3 * MIN_PARALLEL_DIRECTORIES;
    let names: Vec<_> = (0..count)
        .map(|number| format!("{number}/{}", KINDS[number % KINDS.len()]))
        .collect();
    let dir = workspace(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\n";
    for number in (10..count).step_by(KINDS.len()) {
        fs::write(dir.path().join(format!("{number}/key")), key).unwrap();
    }
    // One link leads to a directory that was read before.
    symlink("0", dir.path().join(".ssh")).unwrap();
    symlink("nowhere", dir.path().join("1/.netrc")).unwrap();
    fs::hard_link(dir.path().join("1/.env"), dir.path().join("2/notes")).unwrap();
    let one = again(&Survey::default(), dir.path(), usize::MAX);
    let four = with_threads(4, &Survey::default(), dir.path(), usize::MAX);
    assert!(one.complete);
    assert_eq!(without_stamps(four.clone()), without_stamps(one));
    // They share the limit.
    let part = with_threads(4, &Survey::default(), dir.path(), count);
    let entries = part.read.iter().filter_map(|(_, it)| it.entries);
    assert!(entries.map(|it| it.len()).sum::<usize>() <= count);
    assert!(part.cut && !part.complete);
    let rest = with_threads(4, &part, dir.path(), usize::MAX);
    assert_eq!(without_stamps(rest), without_stamps(four));
}

/// Removes the stamps of a survey, which are missing as long as a change is recent.
fn without_stamps(mut survey: Survey) -> Survey {
    for (path, read) in survey.read.clone().iter() {
        survey.read.insert(
            &path,
            Directory {
                stamp: None,
                ..read
            },
        );
    }
    for (path, check) in survey.content_checks.clone().iter() {
        survey.content_checks.insert(
            &path,
            ContentCheck {
                stamp: None,
                ..check
            },
        );
    }
    survey
}

#[test]
fn source_text_in_a_directory_of_secrets_stays_readable() {
    let dir = workspace(&[
        "src/secrets/mod.rs",
        "src/secrets/deep/db.txt",
        "certs/secrets/db.txt",
        "certs/secrets/.aws/x",
        ".ssh/x.py",
    ]);
    let files = ["src/secrets/deep/db.txt"];
    let found = check(dir.path(), &files, &[".ssh", "certs/secrets"]);
    assert_eq!(
        relative(&found.within, dir.path()),
        [".ssh/x.py", "certs/secrets/.aws/x", "certs/secrets/db.txt"]
    );
}

#[test]
fn directories_of_made_files_are_walked_last() {
    let dir = workspace(&["api/deep/er/.env", "target/1", "target/2"]);
    let found = again(&Survey::default(), dir.path(), 5);
    assert!(!found.complete);
    assert_eq!(relative(&found.files, dir.path()), ["api/deep/er/.env"]);
}

#[test]
fn a_directory_that_only_looks_like_gits_is_walked() {
    let dir = workspace(&[
        "bare/HEAD",
        "bare/objects/.env",
        "bare/refs/id_rsa",
        "q/.git/.env",
        "q/.git/a/.env",
    ]);
    let files = [
        "bare/objects/.env",
        "bare/refs/id_rsa",
        "q/.git/.env",
        "q/.git/a/.env",
    ];
    check(dir.path(), &files, &[]);
}

#[test]
fn paths_that_are_too_long_are_no_complete_survey() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().to_owned();
    let made = std::process::Command::new("bash")
        .args([
            "-c",
            "for i in {1..20}; do d=$(printf '%0240d' 1); mkdir $d && cd -P $d; done",
        ])
        .current_dir(&top)
        .status();
    assert!(made.unwrap().success());
    assert!(!survey(&top).complete);
}

#[test]
fn a_directory_that_becomes_a_link_is_closed_and_not_followed() {
    let (dir, outside) = (workspace(&["a/b.json"]), workspace(&["b.json", ".env"]));
    let secret = r#"{"type": "service_account", "private_key": "-----BEGIN PRIVATE KEY-----"}"#;
    fs::write(outside.path().join("b.json"), secret).unwrap();
    let mut before = settled(dir.path());
    fs::rename(dir.path().join("a"), dir.path().join("moved")).unwrap();
    symlink(outside.path(), dir.path().join("a")).unwrap();
    // As if it was replaced after its name was read.
    let root = before.root.clone();
    let mut read = before.read.get(&root).unwrap();
    read.stamp = FileStamp::of(&root);
    before.read.insert(&root, read);
    let found = again(&before, dir.path(), 10);
    assert_eq!(relative(&found.dirs, dir.path()), ["a"]);
    assert!(found.files.is_empty() && found.within.is_empty());
}
