//! Chats on disk: written, torn, shared, found again.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use co::store::{Error, LoadedChat, Meta, Store, TranscriptWriter};
use co_llm::transcript::{Call, Decision, End, INTERRUPTED, Item, Outcome, Usage};
use serde_json::{Value, json};

fn meta(workspace: &str) -> Meta {
    Meta {
        workspace: workspace.into(),
        cwd: format!("{workspace}/src").into(),
        title: String::new(),
    }
}

fn outcome(id: &str, text: &str, ok: bool) -> Item {
    Item::Outcome(Outcome::new(id, text, ok))
}

fn call(id: &str) -> Item {
    Item::Call(Call::new(id, "run", json!({"cmd": "ls ✓"})))
}

fn end(reason: End) -> Item {
    Item::End {
        reason,
        usage: Usage::default(),
        explained: false,
    }
}

fn job(job: u64) -> Item {
    Item::JobStarted {
        job,
        call: job.to_string(),
        command: "npm run dev".into(),
    }
}

fn turn() -> Vec<Item> {
    vec![
        Item::user("list\nit"),
        Item::Text {
            text: "I look.".into(),
        },
        call("1"),
        Item::Decision {
            call: "1".into(),
            decision: Decision::Approved,
        },
        outcome("1", "a\nb", true),
        Item::Text {
            text: "Done.".into(),
        },
        end(End::Done),
    ]
}

fn write(log: &mut TranscriptWriter, items: &[Item]) {
    for item in items {
        log.append(item).expect("it is written");
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// A store in a directory that goes with the test.
fn store() -> (Store, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    (Store::new(directory.path().join("data/co")), directory)
}

/// Writes a chat with these items, which nobody has open; returns its file and its id.
fn kept(store: &Store, items: &[Item]) -> (PathBuf, String) {
    let log = store.create(meta("/work"), items).unwrap();
    (log.path().to_owned(), log.id().to_owned())
}

/// Appends bytes to a file, as a writer that fails would.
fn append(path: &Path, bytes: &[u8]) {
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

#[test]
fn what_is_appended_is_in_the_file_and_comes_back() {
    let (store, _directory) = store();
    let mut log = store.create(meta("/work"), &[]).unwrap();
    let path = log.path().to_owned();
    for (count, item) in turn().iter().enumerate() {
        match count % 2 {
            0 => log.append(item).unwrap(),
            _ => log.append_unsynced(item).unwrap(),
        }
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), count + 2);
        assert!(text.ends_with('\n'));
    }
    let first: Value =
        serde_json::from_str(fs::read_to_string(&path).unwrap().lines().next().unwrap()).unwrap();
    assert_eq!(first["version"], 1);
    assert_eq!(first["workspace"], "/work");
    assert_eq!(first["id"], log.id());
    assert!(first["created"].as_u64().unwrap() > 1_700_000_000);
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    let id = log.id().to_owned();
    drop(log);
    let (_log, loaded) = store.open(&id).unwrap();
    assert_eq!(loaded.items, turn());
    assert_eq!(loaded.notices, Vec::<String>::new());
    assert_eq!(loaded.meta, meta("/work"));
}

#[test]
fn a_directory_others_could_read_is_closed() {
    let (store, directory) = store();
    let chats = directory.path().join("data/co/chats");
    fs::create_dir_all(&chats).unwrap();
    fs::set_permissions(&chats, fs::Permissions::from_mode(0o755)).unwrap();
    store.create(Meta::default(), &[]).unwrap();
    assert_eq!(mode(&chats), 0o700);
}

#[test]
fn one_writer_at_a_time() {
    let (store, _directory) = store();
    let log = store.create(meta("/work"), &[]).unwrap();
    let id = log.id().to_owned();
    assert!(matches!(store.open(&id), Err(Error::Busy { .. })));
    assert!(matches!(store.delete(&id), Err(Error::Busy { .. })));
    assert!(matches!(store.rename(&id, "x"), Err(Error::Busy { .. })));
    drop(log);
    let (log, _) = store.open(&id).unwrap();
    assert!(matches!(store.open(&id), Err(Error::Busy { .. })));
    drop(log);
    store.open(&id).unwrap();
}

#[test]
fn a_file_torn_anywhere_keeps_every_whole_line_and_goes_on() {
    let (store, _directory) = store();
    let (path, id) = kept(&store, &turn());
    let whole = fs::read(&path).unwrap();
    for cut in 0..=whole.len() {
        let torn = &whole[..cut];
        fs::write(&path, torn).unwrap();
        // An item is there once its line is, with or without the line's end.
        let there = torn
            .split(|byte| *byte == b'\n')
            .skip(1)
            .filter(|line| serde_json::from_slice::<Item>(line).is_ok())
            .count();
        let (mut log, loaded) = store.open(&id).unwrap();
        check_resumed(&loaded, there, cut);
        log.append(&Item::user("next")).unwrap();
        drop(log);
        let after = fs::read(&path).unwrap();
        assert!(after.starts_with(torn), "at {cut}: something was lost");
        let (_log, again) = store.open(&id).unwrap();
        let mut expected = loaded.items;
        expected.push(Item::user("next"));
        expected.push(end(End::Interrupted));
        assert_eq!(again.items, expected, "at {cut}");
    }
}

fn check_resumed(loaded: &LoadedChat, there: usize, cut: usize) {
    let shown: Vec<_> = turn().into_iter().take(there).collect();
    assert_eq!(loaded.items[..there], shown, "at {cut}");
    let mut added = Vec::new();
    // The call stands third, its outcome fifth.
    if (3..5).contains(&there) {
        added.push(outcome("1", INTERRUPTED, false));
    }
    if (1..7).contains(&there) {
        added.push(end(End::Interrupted));
    }
    assert_eq!(loaded.items[there..], added, "at {cut}");
    let told = loaded
        .notices
        .iter()
        .any(|notice| notice.contains("interrupted"));
    assert_eq!(told, !added.is_empty(), "at {cut}");
}

#[test]
fn lines_nobody_knows_are_kept_and_told_of() {
    let (store, _directory) = store();
    let (path, id) = kept(&store, &[Item::user("a")]);
    let strange = "{\"item\":\"hologram\",\"light\":7}\nnot json\n\n\u{0}\u{0}\n";
    append(&path, strange.as_bytes());
    let (mut log, loaded) = store.open(&id).unwrap();
    assert_eq!(loaded.items, [Item::user("a"), end(End::Interrupted)]);
    let told = loaded.notices.join(" ");
    assert!(
        told.contains("1 line was written by a later version"),
        "{told}"
    );
    assert!(told.contains("line 4, 6"), "{told}");
    log.append(&end(End::Done)).unwrap();
    assert!(fs::read_to_string(&path).unwrap().contains(strange));
}

#[test]
fn a_later_format_is_left_alone() {
    let (store, _directory) = store();
    let (path, id) = kept(&store, &[]);
    let later = format!("{{\"version\":2,\"id\":\"{id}\"}}\n");
    fs::write(&path, &later).unwrap();
    assert!(matches!(
        store.open(&id),
        Err(Error::Newer { version: 2, .. })
    ));
    assert_eq!(fs::read_to_string(&path).unwrap(), later);
}

#[test]
fn an_id_names_a_chat_or_nothing() {
    let (store, directory) = store();
    let outside = directory.path().join("data/co/outside.jsonl");
    fs::create_dir_all(outside.parent().unwrap()).unwrap();
    fs::write(&outside, "{\"version\":1,\"id\":\"outside\"}\n").unwrap();
    store.create(Meta::default(), &[]).unwrap();
    for id in [
        "",
        "..",
        "../outside",
        "/etc/passwd",
        "no-such",
        "a/../../outside",
        "x\0",
    ] {
        assert!(
            matches!(store.open(id), Err(Error::NotFound { .. })),
            "{id:?}"
        );
        assert!(
            matches!(store.delete(id), Err(Error::NotFound { .. })),
            "{id:?}"
        );
    }
    assert!(outside.exists());
}

#[test]
fn chats_are_listed_by_workspace_the_last_one_first() {
    let (store, directory) = store();
    assert_eq!(store.list(None), []);
    let mut ids = Vec::new();
    for (at, workspace) in ["/a", "/b", "/a"].into_iter().enumerate() {
        let mut log = store.create(meta(workspace), &[]).unwrap();
        let prompt = format!("\n  prompt {at} {}\nmore", "x".repeat(80));
        write(&mut log, &[Item::user(prompt)]);
        touch(log.path(), Duration::from_secs(60 * (3 - at as u64)));
        ids.push(log.id().to_owned());
    }
    let chats = directory.path().join("data/co/chats");
    fs::write(chats.join("notes.txt"), "no chat").unwrap();
    let listed = |workspace: Option<&str>| -> Vec<String> {
        store
            .list(workspace.map(Path::new))
            .into_iter()
            .map(|entry| entry.id)
            .collect()
    };
    assert_eq!(listed(Some("/a")), [ids[2].clone(), ids[0].clone()]);
    assert_eq!(
        listed(None),
        [ids[2].clone(), ids[1].clone(), ids[0].clone()]
    );
    let entry = &store.list(Some(Path::new("/b")))[0];
    assert_eq!(entry.items, 1);
    assert!(entry.title.starts_with("prompt 1 xxx") && entry.title.ends_with('…'));
    assert_eq!(entry.title.chars().count(), 61);
}

fn touch(path: &Path, ago: Duration) {
    let file = fs::OpenOptions::new().append(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - ago).unwrap();
}

#[test]
fn titles_change_whether_open_or_not() {
    let (store, _directory) = store();
    let mut log = store.create(meta("/a"), &[]).unwrap();
    log.append(&Item::user("prompt")).unwrap();
    log.rename("first name").unwrap();
    assert_eq!(store.list(None)[0].title, "first name");
    let id = log.id().to_owned();
    drop(log);
    store.rename(&id, "second name").unwrap();
    assert_eq!(store.list(None)[0].title, "second name");
    let (_log, loaded) = store.open(&id).unwrap();
    assert_eq!(loaded.meta.title, "second name");
    assert_eq!(loaded.items[0], Item::user("prompt"));
}

#[test]
fn a_fork_has_its_own_life() {
    let (store, _directory) = store();
    let mut log = store.create(meta("/a"), &[]).unwrap();
    write(&mut log, &turn());
    // Cut between the call and its outcome: the pair is mended in the fork.
    let mut fork = store.fork(log.id(), 3).unwrap();
    fork.append(&Item::user("another way")).unwrap();
    let fork_id = fork.id().to_owned();
    assert_ne!(fork_id, log.id());
    drop(fork);
    let (_fork, loaded) = store.open(&fork_id).unwrap();
    let mut expected: Vec<_> = turn().into_iter().take(3).collect();
    expected.push(outcome("1", INTERRUPTED, false));
    expected.push(Item::user("another way"));
    expected.push(end(End::Interrupted));
    assert_eq!(loaded.items, expected);
    let expected = Meta {
        title: "copy of list".to_owned(),
        ..meta("/a")
    };
    assert_eq!(loaded.meta, expected);
    let original = fs::read_to_string(log.path()).unwrap();
    assert!(!original.contains("another way"));
}

#[test]
fn pruning_takes_the_old_that_nobody_has_open() {
    let (store, _directory) = store();
    let day = Duration::from_secs(86_400);
    let mut logs: Vec<TranscriptWriter> = (0..3)
        .map(|_| store.create(meta("/a"), &[]).unwrap())
        .collect();
    for (log, days) in logs.iter().zip([40, 20, 40]) {
        touch(log.path(), day * days);
    }
    let mut kept: Vec<String> = logs[1..].iter().map(|log| log.id().to_owned()).collect();
    let _open = logs.pop();
    drop(logs);
    assert_eq!(store.prune(day * 30).unwrap(), 1);
    let mut left: Vec<String> = store.list(None).into_iter().map(|entry| entry.id).collect();
    left.sort();
    kept.sort();
    assert_eq!(left, kept);
    assert_eq!(store.prune(day * 30).unwrap(), 0);
}

#[test]
fn a_deleted_chat_is_gone() {
    let (store, _directory) = store();
    let (_, id) = kept(&store, &[]);
    store.delete(&id).unwrap();
    assert_eq!(store.list(None), []);
    assert!(matches!(store.open(&id), Err(Error::NotFound { .. })));
}

#[test]
fn a_job_whose_end_nobody_saw_is_interrupted_once() {
    let (store, _directory) = store();
    let ended = Item::JobEnded {
        job: 1,
        text: "job 1 (npm run dev) ended: exit 0".into(),
        told: true,
    };
    let mut items = turn();
    items.extend([job(1), ended, job(2)]);
    let (_, id) = kept(&store, &items);
    let (log, loaded) = store.open(&id).unwrap();
    drop(log);
    let Some(Item::JobEnded {
        job: 2,
        text,
        told: false,
    }) = loaded.items.last()
    else {
        panic!("{:?}", loaded.items.last());
    };
    assert!(text.contains("(npm run dev) ended: interrupted"), "{text}");
    assert_eq!(loaded.items.len(), items.len() + 1);
    let (_log, again) = store.open(&id).unwrap();
    assert_eq!(again.items, loaded.items, "it is in the file");
    assert_eq!(again.notices, [""; 0]);
}
