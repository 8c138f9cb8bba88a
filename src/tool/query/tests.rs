use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::buffers::OpenBuffers;
use crate::workspace::files::{Deadline, PathFilter};
use crate::workspace::judge::{Judge, JudgeConfig};
use co_policy::{PolicySettings, Verdict};

mod search;

/// A workspace, and a judge that looks at it.
struct Place {
    root: TempDir,
    judge: Arc<Judge>,
    work: PathBuf,
    cancel: CancellationToken,
    bytes: usize,
    open: OpenBuffers,
}

impl Place {
    fn new(files: &[(&str, &str)]) -> Self {
        Self::with(files, PolicySettings::default())
    }

    fn with(files: &[(&str, &str)], settings: PolicySettings) -> Self {
        let root = TempDir::with_prefix("co-files-").unwrap();
        let work = root.path().canonicalize().unwrap().join("work");
        fs::create_dir_all(work.join(".git")).unwrap();
        for (path, text) in files {
            let path = work.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let (judge, problems) = Judge::new(JudgeConfig {
            workspace: work.clone(),
            home: root.path().join("home"),
            path: "/usr/bin:/bin".into(),
            settings,
            saved: Default::default(),
            own: vec![work.join("own")],
        });
        assert_eq!(problems, [""; 0]);
        Self {
            root,
            judge: Arc::new(judge),
            work,
            cancel: CancellationToken::new(),
            bytes: 30_000,
            open: OpenBuffers::new(),
        }
    }

    fn look(&self, name: &str, arguments: Value) -> FileQuery {
        parse(name, arguments).unwrap()
    }

    fn verdict(&self, name: &str, arguments: Value) -> Verdict {
        self.look(name, arguments).judge(&self.judge, &self.work)
    }

    /// Looks where that is allowed.
    fn take(&self, name: &str, arguments: Value) -> Result<FileQueryResult, String> {
        let look = self.look(name, arguments);
        let verdict = look.judge(&self.judge, &self.work);
        assert!(
            matches!(verdict, Verdict::Allow(_)),
            "{look:?}: {verdict:?}"
        );
        let judge = Arc::clone(&self.judge);
        let path = look.place(&judge, &self.work, Instant::now()).unwrap();
        let scope = FileScope {
            open: self.open.clone(),
            editor: None,
            path,
            allowed: judge.readable(),
            bytes: self.bytes,
            end: Deadline::new(self.cancel.clone()),
        };
        look.run(&scope).map_err(|unseen| unseen.0)
    }

    /// The whole workspace, through another filter than the judge's.
    fn scope(&self, allowed: PathFilter) -> FileScope {
        FileScope {
            open: OpenBuffers::new(),
            editor: None,
            path: self.work.clone(),
            allowed,
            bytes: self.bytes,
            end: Deadline::new(self.cancel.clone()),
        }
    }

    #[track_caller]
    fn check(&self, name: &str, arguments: Value, text: &str, summary: &str) {
        let seen = self.take(name, arguments).unwrap();
        assert_eq!((seen.text.as_str(), seen.summary.as_str()), (text, summary));
    }
}

fn parse(name: &str, arguments: Value) -> Result<FileQuery, String> {
    let call = Call::new("1", name, arguments);
    FileQuery::parse(&call).map_err(|bad| bad.0)
}

#[test]
fn arguments_that_cannot_be_meant_are_said() {
    for (name, arguments, word) in [
        ("read_file", json!({}), "path"),
        ("read_file", json!({"path": "a", "offset": -1}), "offset"),
        (
            "read_file",
            json!({"path": "a", "limit": 99_999}),
            "1 to 20000",
        ),
        ("read_file", json!({"path": "a", "lines": 3}), "lines"),
        ("list_files", json!({"depth": -1}), "1 to 50"),
        ("search", json!({"pattern": ""}), "empty"),
        ("search", json!({"pattern": "a", "context": 21}), "0 to 20"),
    ] {
        let error = parse(name, arguments.clone()).unwrap_err();
        assert!(error.contains(word), "{arguments}: {error}");
    }
}

#[test]
fn a_file_is_read_in_parts() {
    let place = Place::new(&[
        ("a.txt", "one\ntwo\nthree\n"),
        ("empty", ""),
        ("open", "no end"),
    ]);
    let read = |arguments: Value, text: &str, summary: &str| {
        place.check("read_file", arguments, text, summary);
    };
    read(json!({"path": "a.txt"}), "one\ntwo\nthree\n", "all 3 lines");
    read(
        json!({"path": "a.txt", "limit": 2}),
        "one\ntwo\n",
        "lines 1 to 2; more follows, continue with offset 3",
    );
    read(
        json!({"path": "a.txt", "offset": 3}),
        "three\n",
        "lines 3 to 3, the last",
    );
    read(
        json!({"path": "a.txt", "offset": 4}),
        "",
        "the file ends before line 4",
    );
    read(json!({"path": "empty"}), "", "the file is empty");
    read(json!({"path": "open"}), "no end\n", "all 1 lines");
    let gone = place
        .take("read_file", json!({"path": "a.txt", "offset": 9}))
        .unwrap_err();
    assert_eq!(gone, "a.txt has only 3 lines.");
}

#[test]
fn a_large_file_is_read_in_bounds() {
    let mut place = Place::new(&[
        ("many", &"0123456789\n".repeat(10_000)),
        ("long", &"x".repeat(1 << 20)),
    ]);
    place.bytes = 1_000;
    let seen = place.take("read_file", json!({"path": "many"})).unwrap();
    assert!(
        (1_000..1_100).contains(&seen.text.len()),
        "{}",
        seen.text.len()
    );
    assert_eq!(
        seen.summary,
        "lines 1 to 91; more follows, continue with offset 92"
    );
    let seen = place.take("read_file", json!({"path": "long"})).unwrap();
    assert!(
        seen.text
            .ends_with("x… [1046576 more bytes in this line]\n")
    );
    assert_eq!(seen.summary, "all 1 lines; 1 line cut");
}

#[test]
fn bytes_that_are_no_utf8_are_shown() {
    let place = Place::new(&[]);
    let write = |name: &str, bytes: &[u8]| fs::write(place.work.join(name), bytes).unwrap();
    write("stray", b"cat\xc3\xa9 \xe9\n");
    write("latin1", b"\xe9t\xe9\n");
    write(
        "cut",
        &[&b"x"[..], &"\u{e9}".repeat(2_000).into_bytes()].concat(),
    );
    place.check(
        "read_file",
        json!({"path": "stray"}),
        "cat\u{e9} \u{fffd}E9\n",
        "all 1 lines; one byte is no UTF-8: \u{fffd} and two digits stand for it",
    );
    place.check(
        "read_file",
        json!({"path": "latin1"}),
        "\u{fffd}E9t\u{fffd}E9\n",
        "all 1 lines; it is not UTF-8, and its encoding is not known: \u{fffd} and two digits stand for each byte that is \
         not ASCII",
    );
    place.check(
        "search",
        json!({"pattern": "^cat|^.?t|^x"}),
        &format!(
            "cut:1:x{}… [3502 more bytes in this line]\nstray:1:cat\u{e9} \u{fffd}E9\n",
            "\u{e9}".repeat(249)
        ),
        "2 matching lines in 2 files; 1 line cut",
    );
}

#[test]
fn what_is_not_text_is_said_with_its_size() {
    let place = Place::new(&[("image", "PNG\0\x01\x02")]);
    place.check(
        "read_file",
        json!({"path": "image"}),
        "",
        "image is not text: 6 bytes, not shown",
    );
    place.check(
        "search",
        json!({"pattern": "PNG"}),
        "",
        "no line matches; 1 not text",
    );
}

#[test]
fn nothing_leaves_the_workspace_and_no_secret_is_read() {
    let place = Place::new(&[
        ("a", "a"),
        (".env", "KEY=1"),
        ("id_rsa", "k"),
        ("own/log", "x"),
        ("sub/b", "b"),
    ]);
    fs::write(place.root.path().join("beside"), "beside").unwrap();
    symlink(place.root.path().join("beside"), place.work.join("out")).unwrap();
    symlink(place.work.join(".env"), place.work.join("plain")).unwrap();
    symlink("sub", place.work.join("in")).unwrap();
    fs::hard_link(place.work.join(".env"), place.work.join("same")).unwrap();
    for path in [
        "same",
        "../beside",
        "/etc/passwd",
        "out",
        ".env",
        "plain",
        "id_rsa",
        ".git/config",
        "sub/../../beside",
        "own/log",
        "own",
        "sub",
        "~/x",
    ] {
        let verdict = place.verdict("read_file", json!({ "path": path }));
        let refused = matches!(verdict, Verdict::Ask(_));
        // What is not there at all is inside: the reader says so.
        assert!(refused || path == "~/x", "{path}: {verdict:?}");
    }
    for path in ["..", "/", ".git", "out"] {
        for (name, arguments) in [
            ("list_files", json!({ "path": path })),
            ("search", json!({"path": path, "pattern": "x"})),
        ] {
            let verdict = place.verdict(name, arguments);
            assert!(
                matches!(verdict, Verdict::Ask(_)),
                "{name} {path}: {verdict:?}"
            );
        }
    }
    place.check("read_file", json!({"path": "in/b"}), "b\n", "all 1 lines");
    place.check(
        "search",
        json!({"pattern": "."}),
        "a:1:a\nsub/b:1:b\n",
        "2 matching lines in 2 files; 4 names that look like secrets left out",
    );
}

#[test]
fn a_list_of_one_level_opens_no_directory_below_it() {
    let place = Place::new(&[("src/main.rs", ""), ("one", "")]);
    let inotify = inotify::init(CreateFlags::NONBLOCK).unwrap();
    let below = place.work.join("src");
    inotify::add_watch(&inotify, below, WatchFlags::OPEN).unwrap();
    let look = place.look("list_files", json!({"depth": 1}));
    let seen = look
        .run(&place.scope(Arc::new(|path: &Path| !path.ends_with(".git"))))
        .unwrap();
    assert_eq!(seen.text, "one\nsrc/\n");
    let read = rustix::io::read(&inotify, &mut [0; 64]);
    assert_eq!(read, Err(rustix::io::Errno::AGAIN));
}

#[test]
fn another_name_of_a_secret_is_not_searched_though_it_comes_during_the_walk() {
    let place = Place::new(&[(".env", "word\n"), ("a", "word\n"), ("b", "word\n")]);
    let look = place.look("search", json!({"pattern": "word"}));
    let allowed = place.judge.readable();
    let (secret, later) = (place.work.join(".env"), place.work.join("b"));
    fs::remove_file(&later).unwrap();
    fs::hard_link(secret, later).unwrap();
    let seen = look.run(&place.scope(allowed)).unwrap();
    assert_eq!(seen.text, "a:1:word\n");
}

#[test]
fn a_directory_that_cannot_be_read_is_said() {
    // The directory is removed during the walk, since root can read each one that exists. If `closed`, the filter refuses it too.
    for closed in [false, true] {
        let place = Place::new(&[("a", "a\n"), ("gone/b", "a\n"), ("open/c", "a\n")]);
        let (first, gone) = (place.work.join("a"), place.work.join("gone"));
        let scope = place.scope(Arc::new(move |path: &Path| {
            let now = if closed { &gone } else { &first };
            let _gone = (path == now).then(|| fs::remove_dir_all(&gone));
            let is_closed = closed && path == gone;
            !is_closed && !path.ends_with(".git")
        }));
        let seen = place
            .look("search", json!({"pattern": "a"}))
            .run(&scope)
            .unwrap();
        assert_eq!(seen.text, "a:1:a\nopen/c:1:a\n");
        assert_eq!(
            seen.summary,
            "2 matching lines in 2 files; 1 directory could not be read"
        );
    }
}

#[test]
fn a_name_with_a_line_break_makes_no_line() {
    let place = Place::new(&[("a\nb:1:c", "x\n")]);
    place.check(
        "search",
        json!({"pattern": "x"}),
        "a\\nb:1:c:1:x\n",
        "1 matching line in 1 file",
    );
}

#[test]
fn a_fifo_is_not_waited_for() {
    let place = Place::new(&[("a", "a")]);
    nix::unistd::mkfifo(&place.work.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(matches!(
        place.verdict("read_file", json!({"path": "pipe"})),
        Verdict::Ask(_)
    ));
    assert!(co_exec::beneath::open_real(&place.work.join("pipe")).is_err());
    place.check(
        "search",
        json!({"pattern": "a"}),
        "a:1:a\n",
        "1 matching line in 1 file; 1 name that looks like a secret left out",
    );
}

#[test]
fn rules_of_the_person_hold_for_looks() {
    let settings = PolicySettings {
        deny: vec!["read_file private".into()],
        ask: vec!["search".into()],
        allow: vec!["read_file".into(), "= read_file /etc/passwd".into()],
        ..PolicySettings::default()
    };
    let place = Place::with(&[("private", "x"), ("a", "a")], settings);
    let verdict = |name: &str, arguments: Value| place.verdict(name, arguments).word();
    assert_eq!(verdict("read_file", json!({"path": "private"})), "deny");
    assert_eq!(verdict("search", json!({"pattern": "x"})), "ask");
    assert_eq!(verdict("read_file", json!({"path": "a"})), "auto");
    assert_eq!(verdict("read_file", json!({"path": "/etc/passwd"})), "ask");
    let listed = PolicySettings {
        safe_commands: Some(vec!["ls".into(), "list_files".into()]),
        ..PolicySettings::default()
    };
    let place = Place::with(&[("a", "a")], listed);
    assert_eq!(
        place.verdict("read_file", json!({"path": "a"})).word(),
        "ask"
    );
    assert_eq!(place.verdict("list_files", json!({})).word(), "auto");
}

#[test]
fn a_directory_is_listed() {
    let place = Place::new(&[
        (".gitignore", "target/\n*.log\n"),
        ("src/main.rs", ""),
        ("src/deep/er/x.rs", ""),
        ("target/big", ""),
        ("a.log", ""),
        (".github/ci.yml", ""),
        (".env", ""),
    ]);
    let list = |arguments: Value, text: &str, summary: &str| {
        place.check("list_files", arguments, text, summary);
    };
    list(
        json!({"depth": 2}),
        ".github/\n.github/ci.yml\n.gitignore\nsrc/\nsrc/deep/\nsrc/main.rs\n",
        "6 entries; 1 directory at level 2 not opened; 1 name that looks like a secret left out",
    );
    list(
        json!({"path": "src", "depth": 9, "limit": 2}),
        "src/deep/\nsrc/deep/er/\n",
        "2 entries; 2 more left out",
    );
    list(
        json!({"path": "./src/deep/er/"}),
        "src/deep/er/x.rs\n",
        "1 entry",
    );
    let error = place
        .take("list_files", json!({"path": "src/main.rs"}))
        .unwrap_err();
    assert_eq!(error, "src/main.rs is not a directory.");
}

#[test]
fn rules_for_git_that_never_end_are_not_waited_for() {
    let files = [("a", "a"), ("sub/b", "b"), (".git/info/x", "")];
    let summary = |rules: &str, path: &str| {
        let place = Place::new(&files);
        nix::unistd::mkfifo(&place.work.join(rules), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let path = path.to_owned();
        std::thread::spawn(move || tell.send(place.take("list_files", json!({"path": path}))));
        let told = told.recv_timeout(Duration::from_secs(20));
        told.expect(rules).unwrap().summary
    };
    for rules in [".gitignore", ".ignore", ".git/info/exclude"] {
        for path in [".", "sub"] {
            let seen = summary(rules, path);
            let why = format!("work/{rules} is not a file of rules");
            assert!(
                seen.starts_with("0 entries") && seen.ends_with(&why),
                "{seen}"
            );
        }
    }
    let left_out = "1 entry; 1 directory left out whose .gitignore is not a file of rules";
    assert_eq!(summary("sub/.gitignore", "."), left_out);
}

#[test]
fn ignore_files_that_are_links_have_no_rules_except_gits_own() {
    let place = Place::new(&[("a", "a"), ("b", "b"), ("rules", "b\n")]);
    let listed = || place.take("list_files", json!({})).unwrap().text;
    for name in [".gitignore", ".ignore"] {
        for target in ["rules", "/dev/null", "/dev/zero"] {
            let link = place.work.join(name);
            symlink(target, &link).unwrap();
            assert_eq!(listed(), format!("{name} (a link)\na\nb\nrules\n"));
            fs::remove_file(link).unwrap();
        }
    }
    let exclude = place.work.join(".git/info/exclude");
    fs::create_dir_all(exclude.parent().unwrap()).unwrap();
    for (target, seen) in [
        ("../../rules", "a\nrules\n"),
        ("/dev/null", "a\nb\nrules\n"),
        ("/dev/zero", ""),
    ] {
        symlink(target, &exclude).unwrap();
        assert_eq!(listed(), seen);
        fs::remove_file(&exclude).unwrap();
    }
}

#[test]
fn what_is_cancelled_ends() {
    let place = Place::new(&[("a", "a")]);
    place.cancel.cancel();
    let error = place.take("read_file", json!({"path": "a"})).unwrap_err();
    assert!(error.contains("cancelled"), "{error}");
    for (name, arguments) in [
        ("list_files", json!({})),
        ("search", json!({"pattern": "a"})),
    ] {
        let seen = place.take(name, arguments).unwrap();
        assert!(
            seen.text.is_empty() && seen.summary.ends_with("cancelled"),
            "{seen:?}"
        );
    }
}
