use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use tempfile::TempDir;

use super::super::tests::DEADLINE;
use super::super::{Change, ChangeCause, Entry, Record};
use super::*;

fn record(turn: usize, blobs: &[Blob]) -> Record {
    let change = |blob: &Blob| Change {
        path: "a".into(),
        before: None,
        after: Some(Entry::File {
            mode: 0o644,
            blob: Some(*blob),
        }),
    };
    Record {
        changes: blobs.iter().map(change).collect(),
        ..Record::new(turn, ChangeCause::Undo, Path::new("/work"))
    }
}

fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|it| it == extension))
        .collect();
    files.sort();
    files
}

#[test]
fn a_copy_is_kept_once_and_checked() {
    let dir = TempDir::new().unwrap();
    let open = || Store::open(dir.path(), 100).unwrap();
    let store = open();
    let blob = store.put(b"text").unwrap();
    assert_eq!(store.put(b"text").unwrap(), blob);
    assert_eq!(store.get(&blob).unwrap(), b"text");
    // Another backend knows it too, and what is added later.
    let other = open();
    assert_eq!(other.put(b"text").unwrap(), blob);
    let late = other.put(b"late").unwrap();
    assert_eq!(store.get(&late).unwrap(), b"late");
    drop((store, other));
    let sizes = files(dir.path(), PACK)
        .into_iter()
        .map(|it| it.metadata().unwrap().len());
    assert_eq!(sizes.collect::<Vec<_>>(), [4, 4]);
    for pack in files(dir.path(), PACK) {
        fs::write(pack, "damaged").unwrap();
    }
    assert!(open().get(&blob).is_err());
}

/// A backend is killed while it writes.
#[test]
fn a_part_of_an_index_is_no_copy() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), 100).unwrap();
    let blob = store.put(b"text").unwrap();
    drop(store);
    let index = files(dir.path(), INDEX).remove(0);
    let whole = fs::read_to_string(&index).unwrap();
    for size in 0..whole.len() - 1 {
        fs::write(&index, &whole[..size]).unwrap();
        let copies = Copies::read(dir.path());
        assert_eq!(copies.places.len(), 0, "{size}");
    }
    let store = Store::open(dir.path(), 100).unwrap();
    assert_eq!(store.put(b"text").unwrap(), blob);
    assert_eq!(store.get(&blob).unwrap(), b"text");
}

#[test]
fn a_full_store_takes_nothing_and_drops_what_is_oldest() {
    let dir = TempDir::new().unwrap();
    let open = |most| Store::open(dir.path(), most).unwrap();
    let store = open(100);
    let put = |store: &Store, byte: u8| store.put(&[byte; 30]).unwrap();
    let (old, new, unused) = (put(&store, 1), put(&store, 2), put(&store, 3));
    assert!(store.put(&[4; 30]).is_err());
    log::append(dir.path(), "new", &record(0, std::slice::from_ref(&new))).unwrap();
    log::append(dir.path(), "old", &record(0, std::slice::from_ref(&old))).unwrap();
    let file = File::options()
        .append(true)
        .open(dir.path().join("chats/old.jsonl"));
    let past = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    file.unwrap().set_modified(past).unwrap();
    // Another backend uses it: nothing is removed.
    assert!(open(80).put(&[4; 30]).is_err());
    assert!(store.get(&unused).is_ok());
    drop(store);
    // It is not half full.
    assert!(open(200).get(&unused).is_ok());
    // Another test that starts a process has the lock for a moment too.
    let began = Instant::now();
    let store = loop {
        let store = open(80);
        if store.get(&unused).is_err() {
            break store;
        }
        assert!(began.elapsed() < DEADLINE, "nothing is removed");
    };
    assert!(store.get(&old).is_err());
    assert_eq!(store.get(&new).unwrap(), [2; 30]);
    assert_eq!(files(dir.path(), PACK).len(), 1);
    assert_eq!(log::records(dir.path(), "old"), []);
    assert_eq!(log::records(dir.path(), "new").len(), 1);
    let more = store.put(&[4; 30]).unwrap();
    drop(store);
    let store = open(200);
    assert_eq!(store.get(&new).unwrap(), [2; 30]);
    assert_eq!(store.get(&more).unwrap(), [4; 30]);
}

#[test]
fn only_the_owner_can_read() {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("checkpoints");
    Store::open(&root, 100).unwrap().put(b"text").unwrap();
    log::append(&root, "chat", &record(0, &[])).unwrap();
    let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
    for path in [&root, &root.join("chats")] {
        assert_eq!(mode(path), 0o700, "{}", path.display());
    }
    let mut files = [files(&root, PACK), files(&root, INDEX)].concat();
    files.extend(["chats/chat.jsonl", "lock"].map(|name| root.join(name)));
    assert_eq!(files.len(), 4);
    for path in files {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[test]
fn a_record_after_a_torn_line_is_read() {
    let dir = TempDir::new().unwrap();
    log::append(dir.path(), "chat", &record(0, &[])).unwrap();
    let file = dir.path().join("chats/chat.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, &text[..text.len() - 10]).unwrap();
    log::append(dir.path(), "chat", &record(1, &[])).unwrap();
    assert_eq!(
        without_times(log::records(dir.path(), "chat")),
        [record(1, &[])]
    );
}

#[test]
fn an_undone_turn_can_be_redone_until_another_one_changes_files() {
    let dir = TempDir::new().unwrap();
    let add = |turn, by| {
        let record = Record {
            by,
            ..record(turn, &[])
        };
        log::append(dir.path(), "chat", &record).unwrap();
        let history = log::history(dir.path(), "chat");
        let turns = |list: &[log::TurnChanges]| list.iter().map(|it| it.turn).collect::<Vec<_>>();
        (turns(&history.done), turns(&history.undone))
    };
    let call = || ChangeCause::Call {
        what: "x".into(),
        decision: co_llm::transcript::Decision::Approved,
        command: true,
    };
    assert_eq!(add(0, call()), (vec![0], vec![]));
    assert_eq!(add(0, call()), (vec![0], vec![]));
    assert_eq!(add(2, call()), (vec![0, 2], vec![]));
    assert_eq!(add(2, ChangeCause::Undo), (vec![0], vec![2]));
    assert_eq!(add(0, ChangeCause::Undo), (vec![], vec![2, 0]));
    assert_eq!(add(0, ChangeCause::Redo), (vec![0], vec![2]));
    assert_eq!(add(3, call()), (vec![0, 3], vec![]));
}

/// Returns records without the times at which they were written.
fn without_times(records: Vec<Record>) -> Vec<Record> {
    let records = records.into_iter();
    let without = |it| Record {
        at: None,
        nanos: 0,
        ..it
    };
    records.map(without).collect()
}
