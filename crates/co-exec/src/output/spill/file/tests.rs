use super::*;

/// Writes `stream` in pieces of `piece` bytes; returns the file's text and its gap.
fn kept(stream: &[u8], cap: u64, piece: usize) -> (Vec<u8>, Option<OutputGap>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("job.out");
    let mut file = SpillFile::create(&path, cap).unwrap();
    for piece in stream.chunks(piece) {
        file.write(piece).unwrap();
        let disk = std::fs::read_dir(dir.path()).unwrap();
        let bytes: u64 = disk.map(|it| it.unwrap().metadata().unwrap().len()).sum();
        assert!(bytes <= cap + MAX_NOTE_BYTES as u64, "{bytes} on disk");
    }
    assert_eq!(file.received(), stream.len() as u64);
    let gap = file.finish().unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    (std::fs::read(&path).unwrap(), gap)
}

fn lines(count: usize) -> Vec<u8> {
    (0..count)
        .flat_map(|n| format!("line {n}\n").into_bytes())
        .collect()
}

/// Checks the two kept parts of an output, and the numbers about the gap.
#[track_caller]
fn check(stream: &[u8], cap: u64, piece: usize) -> (Vec<u8>, Vec<u8>) {
    let (text, gap) = kept(stream, cap, piece);
    let gap = gap.expect("a gap");
    let said = format!("[co: left out here: {gap} of the output]");
    let at = text
        .windows(said.len())
        .position(|it| it == said.as_bytes());
    let at = at.unwrap_or_else(|| panic!("no {said:?} in {}", text.escape_ascii()));
    let mut first = text[..at].to_vec();
    let after = memchr::memchr(b'\n', &text[at..]).unwrap();
    let last = text[at + after + 1..].to_vec();
    if first.len() + last.len() + clamped(gap.bytes) > stream.len() {
        // The note begins a line of its own.
        assert_eq!(first.pop(), Some(b'\n'));
    }
    assert!(stream.starts_with(&first) && stream.ends_with(&last));
    let end = stream.len() - last.len();
    assert_eq!(gap.bytes, (end - first.len()) as u64);
    assert_eq!(gap.lines, newlines(&stream[first.len()..end]));
    assert!(gap.bytes >= stream.len() as u64 - cap);
    (first, last)
}

#[test]
fn all_of_it_as_far_as_the_cap() {
    for length in [0, 1, 99, 100, 101, 150, 199, 200] {
        let stream: Vec<u8> = lines(40)[..length].to_vec();
        for piece in [1, 7, 64, 200] {
            let (text, gap) = kept(&stream, 200, piece);
            assert_eq!((text, gap), (stream.clone(), None), "{length} by {piece}");
        }
    }
    let long = lines(1000);
    assert_eq!(kept(&long, long.len() as u64, 333), (long, None));
}

#[test]
fn else_its_first_and_its_last_lines() {
    let stream = lines(2_000);
    for cap in [300, 1_000, 8_000, stream.len() as u64 - 1] {
        for piece in [1, 17, 1_000, stream.len()] {
            let (first, last) = check(&stream, cap, piece);
            assert!(
                first.ends_with(b"\n") && last.starts_with(b"line "),
                "{cap}"
            );
            for part in [first, last] {
                assert!(
                    part.len() as u64 >= cap / 2 - cap / 8 - 12,
                    "{cap}: {}",
                    part.len()
                );
            }
        }
    }
}

#[test]
fn a_long_line_is_cut_between_two_characters() {
    for character in ["x", "é", "漢", "🙂"] {
        let stream = character.repeat(1_000).into_bytes();
        for cap in 90..100 {
            let (first, last) = check(&stream, cap, 13);
            assert!(std::str::from_utf8(&first).is_ok() && std::str::from_utf8(&last).is_ok());
            assert!(first.len() + last.len() > 80);
        }
    }
    // Its end is kept although it is the end of a line.
    let (_, last) = check(&[vec![b'x'; 1_000], vec![b'\n']].concat(), 100, 50);
    assert!(last.len() > 40, "{}", last.len());
}

#[test]
fn the_smallest_caps_hold() {
    for cap in 1..20 {
        check(&lines(20), cap, 3);
        check(&[0xff; 300], cap, 300);
    }
}

/// Nobody is there to finish the file of a backend that was killed.
#[test]
fn a_file_that_is_not_finished_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("job.out");
    let mut file = SpillFile::create(&path, 20_000).unwrap();
    let stream = format!("{}\n", "x".repeat(700)).repeat(100).into_bytes();
    for piece in stream.chunks(100) {
        file.write(piece).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        match text.split_once("[co: ") {
            Some((first, note)) => {
                assert!(stream.starts_with(first.as_bytes()) && first.ends_with('\n'));
                let note = note.strip_suffix('\n').unwrap().trim_end();
                assert!(note.ends_with("the rest is missing]"), "{note}");
            }
            None => assert!(file.received() <= 10_000 && stream.starts_with(text.as_bytes())),
        }
    }
}
