use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::*;
use crate::buffers::OpenBuffers;
use crate::protocol::BufferText;
use crate::workspace::edits::{Proposal, SeenTexts, propose};
use crate::workspace::judge::{Judge, JudgeConfig};

struct Scene {
    _dir: tempfile::TempDir,
    work: PathBuf,
    judge: Judge,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().canonicalize().unwrap().join("work");
        fs::create_dir_all(work.join("src")).unwrap();
        let (judge, problems) = Judge::new(JudgeConfig {
            workspace: work.clone(),
            home: PathBuf::from("/nonexistent"),
            path: OsString::new(),
            settings: Default::default(),
            saved: Default::default(),
            own: vec![work.join("own")],
        });
        assert_eq!(problems, [""; 0]);
        Self {
            _dir: dir,
            work,
            judge,
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.work.join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.at(name), bytes).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.at(name)).unwrap()
    }

    fn propose(&self, request: &Value) -> Result<Proposal, String> {
        self.propose_with(request, &OpenBuffers::new())
    }

    fn propose_with(&self, request: &Value, open: &OpenBuffers) -> Result<Proposal, String> {
        let request = from_json(&request.to_string()).map_err(|it| it.to_string())?;
        let places = self.judge.edit_places(&request, &self.work);
        let places = places.map_err(|it| it.to_string())?;
        let proposal = propose(&request, &places, open, &SeenTexts::default());
        proposal.map_err(|it| it.to_string())
    }

    fn apply(&self, request: &Value) -> Result<Proposal, String> {
        let proposal = self.propose(request)?;
        proposal.apply_to_disk().map_err(|it| it.to_string())?;
        Ok(proposal)
    }

    /// Returns the names of all files of the workspace.
    fn files(&self) -> Vec<PathBuf> {
        fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() && !path.is_symlink() {
                    true => walk(&path, found),
                    false => found.push(path),
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.work, &mut found);
        found.sort();
        found
    }
}

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({ "path": path, "edits": [{ "old": old, "new": new }] })
}

fn call(name: &str, arguments: Value) -> Value {
    json!({ "name": name, "arguments": arguments })
}

#[test]
fn an_edit_changes_the_text_and_nothing_else() {
    let scene = Scene::new();
    for (before, old, new, after) in [
        (&b"a\nb\n"[..], "b", "c", &b"a\nc\n"[..]),
        (b"a\r\nb\r\n", "a\nb", "a\nx\nb", b"a\r\nx\r\nb\r\n"),
        (b"a\nb", "b", "c", b"a\nc"),
        (b"\xef\xbb\xbfa", "a", "b", b"\xef\xbb\xbfb"),
        (b"\xc3\xa9 \xe9 a", "a", "\u{e8}", b"\xc3\xa9 \xe9 \xc3\xa8"),
    ] {
        scene.write("f", before);
        fs::set_permissions(scene.at("f"), fs::Permissions::from_mode(0o751)).unwrap();
        let proposal = scene.apply(&edit("f", old, new)).unwrap();
        assert_eq!(scene.read("f"), after);
        assert_eq!(scene.at("f").metadata().unwrap().mode() & 0o7777, 0o751);
        assert_eq!(proposal.path, "f");
    }
    assert_eq!(scene.files(), [scene.at("f")], "no other file is left");
}

#[test]
fn an_escape_of_another_file_is_no_text() {
    let scene = Scene::new();
    let expected = "`\u{fffd}E9` stands for a byte that is no UTF-8, which this file cannot have";
    scene.write("f", b"x\n");
    for request in [
        edit("f", "x", "cat\u{fffd}E9"),
        json!({ "path": "f", "text": "cat\u{fffd}E9" }),
        json!({ "path": "new", "text": "cat\u{fffd}E9" }),
    ] {
        let why = scene.propose(&request).unwrap_err();
        assert!(why.contains(expected), "{why}");
    }
    // A text of the file may look like one.
    scene.write("f", "\u{fffd}E9 x\n".as_bytes());
    scene.apply(&edit("f", "x", "\u{fffd}E9 \u{fffd}")).unwrap();
    assert_eq!(
        scene.read("f"),
        "\u{fffd}E9 \u{fffd}E9 \u{fffd}\n".as_bytes()
    );
}

#[test]
fn a_buffer_has_its_text_and_its_encoding() {
    let scene = Scene::new();
    let change = |fileencoding: &str, lines: &[u8], new: &str| {
        let buffer = BufferText {
            file: scene.at("f").display().to_string(),
            text: lines.to_owned(),
            encoding: fileencoding.to_owned(),
            ..BufferText::default()
        };
        let open = OpenBuffers::from([(scene.at("f"), buffer)]);
        let proposal = scene.propose_with(&edit("f", "x", new), &open)?;
        let change = proposal.buffer_change().map_err(|it| it.to_string())?;
        Ok::<_, String>(change.unwrap().replacements[0].lines[0].0.clone())
    };
    let check = |fileencoding: &str, lines: &[u8], new: &str, expected: &[u8]| {
        let found = change(fileencoding, lines, new).map(|it| it.escape_ascii().to_string());
        assert_eq!(
            found,
            Ok(expected.escape_ascii().to_string()),
            "{fileencoding}"
        );
    };
    check(
        "utf-8",
        "x = \u{e9}\n".as_bytes(),
        "\u{2713}",
        "\u{2713} = \u{e9}".as_bytes(),
    );
    check(
        "",
        b"\xc3\xa9 \xff x\n",
        "\u{2713}",
        b"\xc3\xa9 \xff \xe2\x9c\x93",
    );
    check(
        "cp1251",
        "\u{436} x\n".as_bytes(),
        "\u{437}",
        "\u{436} \u{437}".as_bytes(),
    );
    check(
        "latin1",
        "\u{e9}t\u{e9} x\n".as_bytes(),
        "\u{e8}",
        "\u{e9}t\u{e9} \u{e8}".as_bytes(),
    );
    let mojibake = "\u{c3}\u{a9} \u{ff} x\n".as_bytes();
    check(
        "latin1",
        mojibake,
        "\u{e8}",
        "\u{c3}\u{a9} \u{ff} \u{c3}\u{a8}".as_bytes(),
    );
    check(
        "latin1",
        "\u{2713} x\n".as_bytes(),
        "y",
        "\u{2713} y".as_bytes(),
    );
    let why = change("latin1", b"x\n", "\u{2713}").unwrap_err();
    assert_eq!(
        why,
        "cannot change f: its encoding, latin1, has no character `\u{2713}`: leave that character out"
    );
    let why = change("", b"\xe9t\xe9 x\n", "\u{2713}").unwrap_err();
    assert!(why.contains("co does not know its encoding"), "{why}");
}

#[test]
fn a_proposal_shows_the_difference_and_changes_nothing() {
    let scene = Scene::new();
    scene.write("src/a.rs", b"one\ntwo\n");
    let proposal = scene.propose(&edit("src/a.rs", "two", "2\n3")).unwrap();
    assert_eq!(
        proposal.diff,
        "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,2 +1,3 @@\n one\n-two\n+2\n+3\n"
    );
    assert_eq!((proposal.added(), proposal.removed()), (2, 1));
    assert_eq!(proposal.hash(), Some(co_edit::hash("one\n2\n3\n")));
    assert_eq!(scene.read("src/a.rs"), b"one\ntwo\n");
}

#[test]
fn files_are_created_rewritten_deleted_and_moved() {
    let scene = Scene::new();
    let write = |text: &str| call("write_file", json!({ "path": "new/dir/f", "text": text }));
    let created = scene.apply(&write("a\n")).unwrap();
    assert!(
        created.diff.starts_with("--- /dev/null\n+++ b/new/dir/f\n"),
        "{}",
        created.diff
    );
    assert_eq!(scene.read("new/dir/f"), b"a\n");
    scene.write("plain", b"");
    let mode = |name: &str| scene.at(name).metadata().unwrap().mode();
    assert_eq!(mode("new/dir/f"), mode("plain"), "the umask holds");
    scene.apply(&write("b\nc\n")).unwrap();
    assert_eq!(scene.read("new/dir/f"), b"b\nc\n");
    let moved = call("move_file", json!({ "from": "new/dir/f", "to": "other/g" }));
    assert_eq!(
        scene.apply(&moved).unwrap().diff,
        "rename from new/dir/f\nrename to other/g\n"
    );
    assert_eq!(scene.read("other/g"), b"b\nc\n");
    let deleted = scene
        .apply(&call("delete_file", json!({ "path": "other/g" })))
        .unwrap();
    assert!(
        deleted.diff.starts_with("--- a/other/g\n+++ /dev/null\n"),
        "{}",
        deleted.diff
    );
    assert_eq!((deleted.removed(), deleted.hash()), (2, None));
    assert_eq!(scene.files(), [scene.at("plain")]);
}

#[test]
fn a_link_stays_and_its_file_changes() {
    let scene = Scene::new();
    scene.write("src/a", b"one");
    symlink("src/a", scene.at("link")).unwrap();
    scene.apply(&edit("link", "one", "two")).unwrap();
    assert!(scene.at("link").is_symlink());
    assert_eq!(scene.read("src/a"), b"two");
}

#[test]
fn a_file_that_changed_meanwhile_is_not_overwritten() {
    let scene = Scene::new();
    scene.write("f", b"one");
    let refused = |request: &Value, meanwhile: &dyn Fn()| {
        let proposal = scene.propose(request).unwrap();
        meanwhile();
        proposal.apply_to_disk().unwrap_err().to_string()
    };
    let changed = "cannot change f: it has changed meanwhile: read it again";
    let edited = refused(&edit("f", "one", "two"), &|| scene.write("f", b"mine"));
    let deletion = call("delete_file", json!({ "path": "f" }));
    let deleted = refused(&deletion, &|| scene.write("f", b"again"));
    assert_eq!((edited.as_str(), deleted.as_str()), (changed, changed));
    assert_eq!(scene.read("f"), b"again");
    let creation = call("write_file", json!({ "path": "g", "text": "x" }));
    let created = refused(&creation, &|| scene.write("g", b"mine"));
    assert_eq!(
        created,
        "cannot change g: it has changed meanwhile: read it again"
    );
    let movement = call("move_file", json!({ "from": "f", "to": "h" }));
    refused(&movement, &|| scene.write("h", b"mine"));
    assert_eq!(
        (scene.read("g"), scene.read("h")),
        (b"mine".to_vec(), b"mine".to_vec())
    );
    let gone = refused(&edit("f", "again", "x"), &|| {
        fs::remove_file(scene.at("f")).unwrap()
    });
    assert!(gone.starts_with("cannot change f: "), "{gone}");
    assert_eq!(scene.files(), [scene.at("g"), scene.at("h")]);
}

/// Checks that a request is refused and leaves every file as it is.
#[track_caller]
fn refused(scene: &Scene, request: &Value, expected: &str) {
    let files = scene.files();
    assert_eq!(scene.apply(request).unwrap_err(), expected, "{request}");
    assert_eq!(scene.files(), files);
}

#[test]
fn what_is_not_a_text_of_the_workspace_is_refused() {
    let scene = Scene::new();
    for name in [".env", ".git/config", "own/f", "../outside"] {
        let path = scene.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "one").unwrap();
    }
    for name in ["bare/HEAD", "bare/objects/x", "bare/refs/x", "bare/hooks/x"] {
        fs::create_dir_all(scene.at(name).parent().unwrap()).unwrap();
        scene.write(name, b"one");
    }
    symlink("../outside", scene.at("out")).unwrap();
    symlink(".env", scene.at("hidden")).unwrap();
    symlink("nowhere", scene.at("dangling")).unwrap();
    fs::hard_link(scene.at(".env"), scene.at("twin")).unwrap();
    nix::unistd::mkfifo(&scene.at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    scene.write("binary", b"a\0one");
    scene.write("large", &vec![b'a'; 17 << 20]);
    scene.write("locked", b"one");
    fs::set_permissions(scene.at("locked"), fs::Permissions::from_mode(0o444)).unwrap();
    scene.write("names", b"one");
    fs::hard_link(scene.at("names"), scene.at("names2")).unwrap();
    let not_text = "\
.env | `.env` looks like a secret, so co does not change it
.git/config | `.git` looks like a secret, so co does not change it
own/f | `own/f` is a file of co's own, so co does not change it
../outside | `../outside` is outside the workspace, so co does not change it
/etc/passwd | `/etc/passwd` is outside the workspace, so co does not change it
out | `out` is outside the workspace, so co does not change it
dangling | `dangling` is outside the workspace, so co does not change it
hidden | `hidden` leads to `.env`, which looks like a secret, so co does not change it
twin | `twin` may be a secret: it has another name, or cannot be listed, so co does not change it
bare/hooks/x | `bare/hooks/x` is in a git directory, so co does not change it
bare/config | `bare/config` is in a git directory, so co does not change it
pipe | `pipe` is not a regular file, so co does not change it
src | `src` is a directory, so co does not change it
src/ | `src/` does not name a file, so co does not change it
 | `` does not name a file, so co does not change it
none | cannot change none: it does not exist: create it with write_file
binary | cannot change binary: it has NUL bytes, so it is binary or UTF-16 without a byte order mark
large | cannot change large: it is larger than 16 MiB
locked | cannot change locked: it is read-only: make it writable first";
    for line in not_text.lines() {
        let (path, expected) = line.split_once(" | ").unwrap();
        refused(&scene, &edit(path, "one", "two"), expected);
    }
    let many = scene.apply(&edit("names", "one", "two")).unwrap_err();
    assert!(many.contains("2 names (hard links)"), "{many}");
    let locked = call("delete_file", json!({ "path": "locked" }));
    refused(
        &scene,
        &locked,
        "cannot change locked: it is read-only: make it writable first",
    );
    let link = call("delete_file", json!({ "path": "out2" }));
    symlink("names", scene.at("out2")).unwrap();
    refused(
        &scene,
        &link,
        "cannot change names: the path is a link to it: name the file itself",
    );
    let onto = call("move_file", json!({ "from": "binary", "to": "large" }));
    refused(
        &scene,
        &onto,
        "cannot change large: it exists: choose another name, or delete it first",
    );
    let same = json!({ "path": "src/x", "text": "one" });
    scene.apply(&same).unwrap();
    refused(
        &scene,
        &same,
        "cannot change src/x: it already has this text",
    );
}

#[test]
fn the_rules_of_the_workspace_can_be_changed() {
    let scene = Scene::new();
    fs::create_dir(scene.at(".co")).unwrap();
    scene.write(".co/policy.toml", b"deny = []\n");
    scene
        .apply(&edit(".co/policy.toml", "[]", "[\"rm\"]"))
        .unwrap();
    assert_eq!(scene.read(".co/policy.toml"), b"deny = [\"rm\"]\n");
}

#[test]
fn a_request_that_cannot_be_read_is_refused() {
    let check = |text: &str, expected: &str| {
        let error = from_json(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    };
    check("", "The request is not JSON");
    check("[]", "not a JSON object");
    check(
        r#"{"path": "f"}"#,
        "must be one of edit_file, write_file, delete_file, move_file",
    );
    check(r#"{"name": "rm", "arguments": {}}"#, "must be one of");
    check(
        r#"{"name": "delete_file", "path": "f"}"#,
        "has `path` beside",
    );
    check(
        r#"{"name": "delete_file", "arguments": {}}"#,
        "missing field `path`",
    );
    check(
        r#"{"path": "f", "edits": [{"old": "a"}]}"#,
        "missing field `new`",
    );
    check(
        r#"{"path": "f", "edits": [], "text": "a"}"#,
        "unknown field `text`",
    );
}
