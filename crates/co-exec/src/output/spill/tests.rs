use std::os::unix::fs::PermissionsExt;

use super::*;

#[tokio::test]
async fn writes_privately_up_to_the_cap() {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("spill");
    let mut spill = Spill::start(&inner, "job", 10);
    spill.write(b"01234567".to_vec()).await;
    spill.write(b"89abcdef".to_vec()).await;
    let kept = spill.finish(16).await.unwrap();
    assert_eq!(kept.gap, Some(OutputGap { bytes: 6, lines: 0 }));
    assert!(kept.note().starts_with("all but 6 bytes of its middle: /"));
    let text = fs::read_to_string(&kept.path).unwrap();
    assert!(
        text.starts_with("01234\n[co: ") && text.ends_with("\nbcdef"),
        "{text}"
    );
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&kept.path), mode(&inner)), (0o600, 0o700));
}

#[tokio::test]
async fn a_file_that_is_there_already_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(path(dir.path(), "job"), "another's").unwrap();
    let mut spill = Spill::start(dir.path(), "job", 10);
    spill.write(b"x".to_vec()).await;
    assert_eq!(spill.finish(1).await, None);
    assert_eq!(fs::read(path(dir.path(), "job")).unwrap(), b"another's");
}

#[tokio::test]
async fn a_directory_that_cannot_be_is_no_file() {
    let mut spill = Spill::start(Path::new("/dev/null/x"), "job", 10);
    spill.write(b"x".to_vec()).await;
    assert_eq!(spill.finish(1).await, None);
}

/// If the disk hung, the end of the output may be missing, and people look for the end.
#[tokio::test]
async fn an_output_that_did_not_all_come_is_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut spill = Spill::start(dir.path(), "job", 10);
    spill.write(b"0123456789abc".to_vec()).await;
    assert_eq!(spill.finish(14).await, None);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn prunes_by_age_and_by_size() {
    let dir = tempfile::tempdir().unwrap();
    let make = |name: &str, hours: u64| {
        let path = dir.path().join(name);
        fs::write(&path, [0; 100]).unwrap();
        let changed = SystemTime::now() - Duration::from_secs(hours * 3600);
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(changed).unwrap();
    };
    for (name, hours) in [
        ("a.out", 1),
        // What a killed backend left counts too.
        ("b.tail", 2),
        ("c.out", 3),
        ("d.tail", 50),
        ("e.txt", 50),
    ] {
        make(name, hours);
    }
    prune(dir.path(), Duration::from_secs(24 * 3600), 250);
    let mut left: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|it| it.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["a.out", "b.tail", "e.txt"]);
}

#[test]
fn the_first_lines_of_a_file_are_shown_as_on_a_screen() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    let text = "\x1b[1m1\x1b[m\r\n10%\r90%\n\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\nfour\nfive\n";
    fs::write(&file, text).unwrap();
    assert_eq!(shown_lines(&file, 4).unwrap(), ["1", "90%", "link", "four"]);
    assert_eq!(shown_lines(&file, 9).unwrap().len(), 5);
    assert!(shown_lines(&dir.path().join("none"), 1).is_err());
}
