//! Messages on the standard input of the backend: large ones and invalid ones.

use rmpv::Value;

use crate::support::wire::{Ended, Wire, map, notification, packed};

const MIB: usize = 1 << 20;

/// Checks that the backend ended with exit status 1 and one sentence that contains `part`.
#[track_caller]
fn ended_with(ended: &Ended, part: &str) {
    assert_eq!(ended.code, Some(1), "{part}: {ended:?}");
    assert!(ended.stderr.contains(part), "{part}: {ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{part}: {ended:?}");
}

/// The head of a notification whose argument is a string of `length` bytes.
fn announced(length: usize) -> Vec<u8> {
    let mut head = vec![0x93, 0x02, 0xa2, b'c', b'o', 0x91, 0xdb];
    head.extend(u32::try_from(length).unwrap().to_be_bytes());
    head
}

/// A run that counts the bytes of its input.
fn count(length: usize) -> Value {
    map([
        ("type", "run".into()),
        ("run", 1.into()),
        ("command", "wc -c".into()),
        ("cwd", "/".into()),
        ("stdin", "x".repeat(length).into()),
    ])
}

#[test]
fn a_large_message_arrives_whole() {
    let mut wire = Wire::greeted();
    assert!(wire.tell(count(15 * MIB)));
    let output = wire.wait_for("run_output");
    let lines = output["patch"]["lines"].clone();
    assert_eq!(lines[0].as_str(), Some("15728640"), "{output}");
    assert_eq!(wire.close().code, Some(0));
}

#[test]
fn a_backend_for_a_chat_probes_the_sandbox_before_its_first_message() {
    let mut wire = Wire::greeted_for_chat();
    wire.wait_for("isolation");
    assert_eq!(wire.close().code, Some(0));
}

#[test]
fn a_message_that_is_too_long_ends_the_backend() {
    let mut wire = Wire::greeted();
    wire.write(&announced(64 * MIB));
    // The backend does not read it to its end.
    let piece = vec![b'x'; MIB];
    while wire.write(&piece) {}
    ended_with(&wire.ended(), "longer than 16 MiB");
}

#[test]
fn what_is_no_message_ends_the_backend_with_one_sentence() {
    let notified = |args| notification("co", args);
    let array = |values| packed(&Value::Array(values));
    for (garbage, part) in [
        (b"hello, is this co?\n".to_vec(), "is not a message"),
        (vec![0xff; 100_000], "is not a message"),
        (vec![0; 1000], "is not a message"),
        (
            array(vec![7.into(), "co".into(), Value::Nil]),
            "is not a message",
        ),
        (
            array(vec![2.into(), "co".into(), Value::Nil]),
            "is not a message",
        ),
        (
            array(vec![2.into(), 3.into(), Value::Array(Vec::new())]),
            "is not a message",
        ),
        (
            array(vec![1.into(), "one".into(), Value::Nil, Value::Nil]),
            "is not a message",
        ),
        // Nested deeper than any message.
        (
            [&[0x93][..], &[0x91; 100_000], &[0xc0; 3]].concat(),
            "is not a message",
        ),
        (notified(vec!["words".into()]), "could not read a message"),
        (
            notified(vec![map([("type", "bogus".into())])]),
            "could not read a message",
        ),
        (
            notified(vec![map([("type", "prompt".into())])]),
            "could not read a message",
        ),
    ] {
        let mut wire = Wire::start();
        wire.write(&garbage);
        ended_with(&wire.ended(), part);
        let mut wire = Wire::greeted();
        wire.write(&garbage);
        ended_with(&wire.ended(), part);
    }
}

#[test]
fn many_messages_that_cannot_be_read_give_one_sentence() {
    let mut wire = Wire::greeted();
    let bad = notification("co", vec![map([("type", "bogus".into())])]);
    wire.write(&bad.repeat(10_000));
    ended_with(&wire.ended(), "could not read a message");
}

#[test]
fn what_is_meant_for_somebody_else_is_let_be_and_requests_are_refused() {
    let mut wire = Wire::greeted();
    wire.write(&notification(
        "nvim_error_event",
        vec![0.into(), "E1".into()],
    ));
    wire.write(&packed(&Value::Array(vec![
        0.into(),
        77.into(),
        "what".into(),
        Value::Array(Vec::new()),
    ])));
    let refused = wire.wait_response(77);
    assert!(
        refused[2].to_string().contains("takes no requests"),
        "{refused}"
    );
    assert!(wire.tell(count(3)));
    wire.wait_for("run_ended");
    assert_eq!(wire.close().code, Some(0));
}

#[test]
fn a_neovim_that_ends_in_the_middle_of_a_message_is_only_gone() {
    let mut wire = Wire::greeted();
    wire.write(&announced(1000));
    let ended = wire.close();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
}
