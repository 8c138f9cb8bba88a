use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use proptest::prelude::*;

use super::*;
use crate::checkpoint::tests::{Scene, paths};
use crate::checkpoint::{OpenFile, PartKind, Verdict};
use crate::protocol::BufferLine;

#[test]
fn a_command_is_taken_back_and_that_too() {
    let scene = Scene::new();
    scene.write("a", "one\ntwo\n");
    scene.write("gone", "x");
    let before = scene.everything();
    let found = scene.call(|| {
        scene.write("a", "one\n2\n");
        scene.write("deep/new", "n");
        fs::remove_file(scene.at("gone")).unwrap();
    });
    assert_eq!(paths(&found.changes), ["a", "gone", "deep", "deep/new"]);
    let after = scene.everything();
    let undo = scene.undo(&found.changes);
    let diffs = undo
        .changes
        .iter()
        .map(|it| it.diff(&scene.workspace.store));
    let diff: String = diffs.collect();
    assert!(
        diff.contains("--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-2\n+two\n"),
        "{diff}"
    );
    assert!(diff.contains("--- a/deep/new\n+++ /dev/null\n"), "{diff}");
    assert_eq!(scene.everything(), after, "a plan changes nothing");
    let (undone, kept) = scene.take_back(&found.changes);
    assert_eq!(kept, [""; 0]);
    assert_eq!(scene.everything(), before);
    assert_eq!(
        scene.undo(&found.changes),
        Undo::default(),
        "it is done already"
    );
    scene.take_back(&undone);
    assert_eq!(scene.everything(), after);
}

#[test]
fn later_work_of_the_person_stays() {
    let scene = Scene::new();
    for name in ["merged", "same place", "deleted", "latin1"] {
        scene.write(name, "1\n2\n3\n4\n5\n");
    }
    fs::write(scene.at("latin1"), b"\xe4\r\n2\r\n3\r\n4\r\n").unwrap();
    let found = scene.call(|| {
        for name in ["merged", "same place", "deleted"] {
            scene.write(name, "1\nCO\n3\n4\n5\n");
        }
        scene.write("made", "co\n");
        scene.write("dir/made", "co\n");
        fs::write(scene.at("latin1"), b"\xe4\r\nCO\r\n3\r\n4\r\n").unwrap();
    });
    scene.write("merged", "1\nCO\n3\n4\nmine\n");
    scene.write("same place", "1\nmine\n3\n4\n5\n");
    fs::remove_file(scene.at("deleted")).unwrap();
    scene.write("made", "co\nmine\n");
    scene.write("dir/mine", "mine\n");
    fs::write(scene.at("latin1"), b"\xe4\r\nCO\r\n3\r\n\xf6\r\n").unwrap();
    let (_, kept) = scene.take_back(&found.changes);
    assert_eq!(kept, ["deleted", "made", "same place"]);
    assert_eq!(scene.read("merged"), "1\n2\n3\n4\nmine\n");
    assert_eq!(scene.read("same place"), "1\nmine\n3\n4\n5\n");
    assert!(!scene.at("deleted").exists());
    assert_eq!(scene.read("made"), "co\nmine\n");
    assert_eq!(scene.read("dir/mine"), "mine\n");
    assert!(!scene.at("dir/made").exists());
    assert_eq!(
        fs::read(scene.at("latin1")).unwrap(),
        b"\xe4\r\n2\r\n3\r\n\xf6\r\n"
    );
}

/// A file in some encoding.
struct Encoded {
    name: &'static str,
    before: &'static [u8],
    after: &'static [u8],
    /// After more work of the person.
    later: &'static [u8],
    /// Without the change.
    undone: &'static [u8],
}

const ENCODED: [Encoded; 5] = [
    Encoded {
        name: "utf-8 but for some bytes",
        before: b"\xc3\xa9 \xe9\nx\n2\n3\n4\n",
        after: b"\xc3\xa9 \xe8\nx\nCO\n3\n4\n",
        later: b"\xc3\xa9 \xe8\nx\nCO\n3\n\xff\n",
        undone: b"\xc3\xa9 \xe9\nx\n2\n3\n\xff\n",
    },
    Encoded {
        name: "no stray byte left",
        before: b"\xc3\xa9 \xe9\nx\n2\n3\n4\n",
        after: b"\xc3\xa9 \xc3\xa9\nx\nCO\n3\n\xef\xbf\xbd\n",
        later: b"\xc3\xa9 \xc3\xa9\nx\nCO\n3\n\xef\xbf\xbd\nmine\n",
        undone: b"\xc3\xa9 \xe9\nx\n2\n3\n4\nmine\n",
    },
    Encoded {
        name: "latin-1",
        before: b"\xfcber \xe9t\xe9\nx\n2\n3\n4\n",
        after: b"\xdcber \xe9t\xe9\nx\nCO\n3\n4\n",
        later: b"\xdcber \xe9t\xe9\nx\nCO\n3\nm\xefne\n",
        undone: b"\xfcber \xe9t\xe9\nx\n2\n3\nm\xefne\n",
    },
    Encoded {
        name: "sjis",
        before: b"\x95\x5c\x83\x5c\nx\n2\n3\n4\n",
        after: b"\x95\x5c\x94\x5c\nx\nCO\n3\n4\n",
        later: b"\x95\x5c\x94\x5c\nx\nCO\n3\n\x83\x5c\x83\x5c\n",
        undone: b"\x95\x5c\x83\x5c\nx\n2\n3\n\x83\x5c\x83\x5c\n",
    },
    Encoded {
        name: "utf-16",
        before: b"\xff\xfe1\0\n\x002\0\n\x003\0\n\0",
        after: b"\xff\xfeC\0\n\x002\0\n\x003\0\n\0",
        later: b"\xff\xfeC\0\n\x002\0\n\x003\0\r\0\n\0",
        undone: b"\xff\xfe1\0\n\x002\0\n\x003\0\r\0\n\0",
    },
];

#[test]
fn each_file_keeps_its_encoding() {
    for file in ENCODED {
        let name = file.name;
        let scene = Scene::new();
        let write = |bytes: &[u8]| fs::write(scene.at("f"), bytes).unwrap();
        write(file.before);
        let found = scene.call(|| write(file.after));
        write(file.later);
        assert_eq!(scene.take_back(&found.changes).1, [""; 0], "{name}");
        let read = fs::read(scene.at("f")).unwrap();
        let (read, expected) = (read.escape_ascii(), file.undone.escape_ascii());
        assert_eq!(read.to_string(), expected.to_string(), "{name}");
    }
}

#[test]
fn a_part_of_a_change_keeps_its_bytes() {
    for Encoded {
        name,
        before,
        after,
        ..
    } in ENCODED
    {
        let scene = Scene::new();
        let store = &scene.workspace.store;
        fs::write(scene.at("f"), before).unwrap();
        let found = scene.call(|| fs::write(scene.at("f"), after).unwrap());
        let file = OpenFile::of(&found.changes[0], store);
        // The first line, in which a byte that is no UTF-8 has changed, stays.
        let mut verdicts = vec![Verdict::Refused; file.parts.len()];
        verdicts[0] = Verdict::Accepted;
        let kept = file.answered(&verdicts, store).unwrap().accepted.unwrap();
        let PartKind::Lines(stays) = &file.parts[0].kind else {
            panic!("{:?}", file.parts);
        };
        let mut expected: Vec<_> = before.split_inclusive(|it| *it == b'\n').collect();
        let changed: Vec<_> = after.split_inclusive(|it| *it == b'\n').collect();
        let changed_lines = stays.at.clone();
        expected.splice(changed_lines.clone(), changed[changed_lines].to_vec());
        let bytes = bytes_of(kept.baseline.as_ref().unwrap(), store).unwrap();
        let (bytes, expected) = (bytes.escape_ascii(), expected.concat());
        assert_eq!(
            bytes.to_string(),
            expected.escape_ascii().to_string(),
            "{name}"
        );
    }
}

#[test]
fn a_diff_shows_bytes_that_are_no_utf8() {
    let check = |before: &[u8], after: &[u8], expected: &str| {
        let scene = Scene::new();
        fs::write(scene.at("f"), before).unwrap();
        let found = scene.call(|| fs::write(scene.at("f"), after).unwrap());
        let [change] = &found.changes[..] else {
            panic!("{found:?}");
        };
        let diff = change.diff(&scene.workspace.store);
        assert!(diff.ends_with(expected), "{diff}");
        assert_eq!(change.lines(&scene.workspace.store), (1, 1, 1));
    };
    check(
        b"cat\xe9\n",
        b"cat\xe8\n",
        "-cat\u{fffd}E9\n+cat\u{fffd}E8\n",
    );
    check(
        b"\xe9\n\xef\xbf\xbd\n",
        b"e\n\xef\xbf\xbd\n",
        "-\u{fffd}E9\n+e\n \u{fffd}EF\u{fffd}BF\u{fffd}BD\n",
    );
    check(
        b"\xff\xfea\0",
        b"\xff\xfeb\0",
        "-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n",
    );
}

#[test]
fn carriage_returns_are_in_a_diff_only_if_they_change() {
    let scene = Scene::new();
    scene.write("a", "1\r\n2\r\n");
    scene.write("b", "1\r\n2\r\n");
    let found = scene.call(|| {
        scene.write("a", "1\r\nCO\r\n");
        scene.write("b", "1\n2\n");
    });
    let undo = scene.undo(&found.changes);
    let diffs = undo.changes.iter();
    let diff: String = diffs.map(|it| it.diff(&scene.workspace.store)).collect();
    assert!(diff.contains("@@\n 1\n-CO\n+2\n"), "{diff}");
    assert!(diff.contains("@@\n-1\n-2\n+1\r\n+2\r\n"), "{diff}");
}

#[test]
fn nothing_is_written_through_a_link() {
    let scene = Scene::new();
    scene.write("src/a", "before");
    let outside = scene.top.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a"), "mine").unwrap();
    let before = scene.everything();
    let found = scene.call(|| {
        fs::remove_dir_all(scene.at("src")).unwrap();
        symlink(&outside, scene.at("src")).unwrap();
    });
    scene.take_back(&found.changes);
    assert_eq!(scene.everything(), before);
    // The person makes a link of it later.
    let found = scene.call(|| scene.write("src/a", "after"));
    fs::remove_dir_all(scene.at("src")).unwrap();
    symlink(&outside, scene.at("src")).unwrap();
    let (_, kept) = scene.take_back(&found.changes);
    assert_eq!(kept, ["src/a"]);
    assert_eq!(fs::read_to_string(outside.join("a")).unwrap(), "mine");
}

#[test]
fn a_file_with_hard_links_stays_unless_the_others_go() {
    let scene = Scene::new();
    scene.write("a", "old");
    scene.write("b", "old");
    fs::hard_link(scene.at("b"), scene.at("also_b")).unwrap();
    let found = scene.call(|| {
        fs::hard_link(scene.at("a"), scene.at("also_a")).unwrap();
        scene.write("a", "new");
        scene.write("b", "new");
    });
    let undo = scene.undo(&found.changes);
    assert_eq!(paths(&undo.changes), ["a", "also_a"]);
    let kept: Vec<_> = undo.kept.iter().map(|(path, _)| path.as_path()).collect();
    assert_eq!(kept, [Path::new("also_b"), Path::new("b")]);
    assert_eq!(scene.make(undo).failed, []);
    assert_eq!(scene.read("a"), "old");
    assert!(!scene.at("also_a").exists());
}

#[test]
fn a_file_that_changes_after_the_question_is_left_alone() {
    let scene = Scene::new();
    scene.write("a", "before");
    scene.write("b", "before");
    let found = scene.call(|| {
        scene.write("a", "after");
        scene.write("b", "after");
    });
    let undo = scene.undo(&found.changes);
    scene.write("a", "mine");
    let done = scene.make(undo);
    assert_eq!(paths(&done.changes), ["b"]);
    assert_eq!(done.failed.len(), 1);
    assert_eq!(scene.read("a"), "mine");
    assert_eq!(scene.read("b"), "before");
}

#[test]
fn unsaved_text_of_a_buffer_stays() {
    let scene = Scene::new();
    for name in ["a", "b", "c"] {
        scene.write(name, "1\r\n2\r\n3\r\n");
    }
    let found = scene.call(|| {
        scene.write("a", "1\r\nCO\r\n3\r\n");
        scene.write("b", "1\r\nCO\r\n3\r\n");
        fs::remove_file(scene.at("c")).unwrap();
        scene.write("new", "co\n");
    });
    let open = OpenBuffers::from([
        unsaved(&scene, "a", "1\nCO\n3\nmine\n"),
        unsaved(&scene, "b", "1\nmine\n3\n"),
        unsaved(&scene, "c", "mine\n"),
        unsaved(&scene, "new", "co\nmine\n"),
    ]);
    let undo = scene.undo_with(&found.changes, &open);
    assert_eq!(undo.changes, []);
    let kept: Vec<_> = undo
        .kept
        .iter()
        .map(|(path, _)| path.to_str().unwrap())
        .collect();
    assert_eq!(kept, ["b", "c", "new"]);
    let [(change, _)] = &undo.buffers[..] else {
        panic!("{undo:?}");
    };
    assert_eq!(change.tick, 7);
    let [replaced] = &change.replacements[..] else {
        panic!("{change:?}");
    };
    assert_eq!((replaced.start, replaced.end), (1, 2));
    assert_eq!(replaced.lines, [BufferLine(b"2".to_vec())]);
}

#[test]
fn unsaved_text_with_several_kinds_of_line_breaks_keeps_them() {
    let scene = Scene::new();
    scene.write("a", "1\r\n2\n3\r\n");
    let found = scene.call(|| scene.write("a", "1\r\nCO\n3\r\n"));
    let open = OpenBuffers::from([unsaved(&scene, "a", "1\r\nCO\n3\r\nmine\n")]);
    let undo = scene.undo_with(&found.changes, &open);
    assert_eq!(undo.kept, []);
    let [(change, _)] = &undo.buffers[..] else {
        panic!("{undo:?}");
    };
    let [replaced] = &change.replacements[..] else {
        panic!("{change:?}");
    };
    assert_eq!((replaced.start, replaced.end), (1, 2));
    assert_eq!(replaced.lines, [BufferLine(b"2".to_vec())]);
}

#[test]
fn unsaved_text_of_a_buffer_is_stored_in_its_encoding() {
    // The file before and after the call, the buffer, and the bytes that the undo makes.
    let check = |fileencoding: &str, files: [&[u8]; 2], lines: &str, line: &[u8], undone: &[u8]| {
        let scene = Scene::new();
        let store = &scene.workspace.store;
        fs::write(scene.at("a"), files[0]).unwrap();
        let found = scene.call(|| fs::write(scene.at("a"), files[1]).unwrap());
        let (file, mut buffer) = unsaved(&scene, "a", lines);
        buffer.encoding = fileencoding.to_owned();
        let undo = scene.undo_with(&found.changes, &OpenBuffers::from([(file, buffer)]));
        assert_eq!(undo.kept, [], "{fileencoding}");
        let [(in_buffer, change)] = &undo.buffers[..] else {
            panic!("{fileencoding} {undo:?}");
        };
        assert_eq!(in_buffer.replacements[0].lines, [BufferLine(line.to_vec())]);
        let bytes = bytes_of(change.after.as_ref().unwrap(), store).unwrap();
        assert_eq!(
            bytes.escape_ascii().to_string(),
            undone.escape_ascii().to_string()
        );
    };
    let zhe = "\u{436}".as_bytes();
    check(
        "cp1251",
        [b"1\r\n\xe6\r\n3\r\n", b"1\r\nCO\r\n3\r\n"],
        "1\nCO\n3\n\u{436}\n",
        zhe,
        b"1\r\n\xe6\r\n3\r\n\xe6\r\n",
    );
    check(
        "cp936",
        [b"1\n\xa8\xa6\n3\n", b"1\nCO\n3\n"],
        "1\nCO\n3\nmine\n",
        "\u{e9}".as_bytes(),
        b"1\n\xa8\xa6\n3\nmine\n",
    );
    check(
        "utf-16le",
        [b"\xff\xfe\x36\x04\n\x003\0", b"\xff\xfeC\0\n\x003\0"],
        "C\n3\nmine",
        zhe,
        &[&b"\xff\xfe\x36\x04\n\x003\0\n\0"[..], b"m\0i\0n\0e\0"].concat(),
    );
    check(
        "latin1",
        [b"\xe9t\xe9\n3\n", b"CO\n3\n"],
        "CO\n3\nmine\n",
        "\u{e9}t\u{e9}".as_bytes(),
        b"\xe9t\xe9\n3\nmine\n",
    );
    // UTF-8 that Neovim took for latin-1.
    check(
        "latin1",
        [b"\xc3\xa9\xff\nx\n\xc3\xa9", b"CO\nx\n\xc3\xa9"],
        "CO\nx\n\u{c3}\u{a9}mine",
        "\u{c3}\u{a9}\u{ff}".as_bytes(),
        b"\xc3\xa9\xff\nx\n\xc3\xa9mine",
    );
}

#[test]
fn a_buffer_in_an_encoding_that_co_cannot_read_is_left_alone() {
    let scene = Scene::new();
    fs::write(scene.at("a"), b"1\n\x82\n").unwrap();
    let found = scene.call(|| fs::write(scene.at("a"), b"CO\n\x82\n").unwrap());
    let (file, mut buffer) = unsaved(&scene, "a", "CO\n\u{e9}\nmine\n");
    buffer.encoding = "cp437".to_owned();
    let undo = scene.undo_with(&found.changes, &OpenBuffers::from([(file, buffer)]));
    assert_eq!(
        undo.kept[0].1,
        "only Neovim can read and write its encoding, cp437"
    );
}

/// Returns the buffer of a file with unsaved text.
fn unsaved(scene: &Scene, name: &str, text: &str) -> (PathBuf, BufferText) {
    let file = scene.at(name);
    let buffer = BufferText {
        file: file.display().to_string(),
        text: text.into(),
        tick: 7,
        encoding: "utf-8".to_owned(),
        modified: true,
        problem: None,
    };
    (file, buffer)
}

#[test]
fn a_directory_that_became_a_link_is_taken_back_and_brought_back() {
    let scene = Scene::new();
    scene.write("dir/file", "1\n");
    let before = scene.everything();
    let found = scene.call(|| {
        fs::rename(scene.at("dir"), scene.at("moved")).unwrap();
        symlink("moved", scene.at("dir")).unwrap();
    });
    let after = scene.everything();
    let (undone, kept) = scene.take_back(&found.changes);
    assert_eq!(kept, [""; 0]);
    assert_eq!(scene.everything(), before);
    scene.take_back(&undone);
    assert_eq!(scene.everything(), after);
}

#[test]
fn a_copy_that_is_lost_or_damaged_is_named() {
    let scene = Scene::new();
    scene.write("lost", "lost before\n1\n");
    let found = scene.call(|| scene.write("lost", "after\n1\n"));
    for entry in fs::read_dir(scene.top.join("state/checkpoints")).unwrap() {
        fs::write(entry.unwrap().path(), "").unwrap();
    }
    let undo = scene.undo(&found.changes);
    let done = scene.make(undo);
    assert_eq!(done.failed.len(), 1, "{done:?}");
    assert_eq!(scene.read("lost"), "after\n1\n");
}

/// One change of a random file.
#[derive(Debug, Clone)]
enum Act {
    Write(usize, String),
    Mode(usize, u32),
    Remove(usize),
    Link(usize),
    Dir(usize),
    Rename(usize, usize),
}

const NAMES: [&str; 7] = ["a", "b", "d/a", "d/b", "d/e/a", "f/a", "f"];

fn act() -> impl Strategy<Value = Act> {
    let name = || 0..NAMES.len();
    prop_oneof![
        4 => (name(), "[ab\n\\x00-\\xff]{0,20}").prop_map(|(at, text)| Act::Write(at, text)),
        1 => (name(), prop_oneof![Just(0o600), Just(0o755), Just(0o444)]).prop_map(|(at, mode)| Act::Mode(at, mode)),
        1 => name().prop_map(Act::Remove),
        1 => name().prop_map(Act::Link),
        1 => name().prop_map(Act::Dir),
        1 => (name(), name()).prop_map(|(from, to)| Act::Rename(from, to)),
    ]
}

/// Does something. It may fail, as commands do.
fn perform(scene: &Scene, act: &Act) {
    let at = |index: &usize| scene.at(NAMES[*index]);
    let _done = match act {
        Act::Write(path, text) => {
            let made = fs::create_dir_all(at(path).parent().unwrap());
            made.and_then(|()| fs::write(at(path), text))
        }
        Act::Mode(path, mode) => match at(path).is_file() {
            true => fs::set_permissions(at(path), Permissions::from_mode(*mode)),
            false => Ok(()),
        },
        Act::Remove(path) => fs::remove_file(at(path)).or_else(|_| fs::remove_dir_all(at(path))),
        Act::Link(path) => symlink("a", at(path)),
        Act::Dir(path) => fs::create_dir_all(at(path)),
        Act::Rename(from, to) => fs::rename(at(from), at(to)),
    };
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_byte_and_mode_comes_back(
        first in proptest::collection::vec(act(), 0..10),
        calls in proptest::collection::vec(proptest::collection::vec(act(), 0..6), 1..4),
    ) {
        let scene = Scene::new();
        first.iter().for_each(|it| perform(&scene, it));
        let before = scene.everything();
        let mut changes = Vec::new();
        for acts in &calls {
            let found = scene.call(|| acts.iter().for_each(|it| perform(&scene, it)));
            prop_assert_eq!((&found.unclear, &found.unknown), (&Vec::new(), &None));
            changes.extend(found.changes);
        }
        let after = scene.everything();
        let (undone, kept) = scene.take_back(&changes);
        prop_assert_eq!(kept, Vec::<String>::new());
        prop_assert_eq!(scene.everything(), before);
        scene.take_back(&undone);
        prop_assert_eq!(scene.everything(), after);
    }
}
