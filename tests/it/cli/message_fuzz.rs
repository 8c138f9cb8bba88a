//! Whatever Neovim's end of the connection sends, the backend answers or ends with one sentence. It never spins.

use proptest::prelude::*;
use rmpv::Value;

use crate::support::cases;
use crate::support::wire::{Wire, notification, packed};

/// The types of messages, and an unknown type.
const TYPES: [&str; 17] = [
    "hello",
    "settings",
    "sandbox",
    "prompt",
    "cancel",
    "command",
    "close",
    "answer",
    "run",
    "run_input",
    "run_resize",
    "cancel_run",
    "saved",
    "buffers",
    "editor_answer",
    "failed",
    "bogus",
];
const FIELDS: [&str; 17] = [
    "protocol", "version", "settings", "chat", "text", "cwd", "context", "range", "name", "args",
    "id", "decision", "run", "command", "data", "request", "buffers",
];

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::from),
        (0_u64..5).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(Value::from("/")),
        "[a-z/]{0,8}".prop_map(Value::from),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(Value::from),
        Just(Value::from("x".repeat(100_000))),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            proptest::collection::vec(("[a-z]{1,6}".prop_map(Value::from), inner), 0..4)
                .prop_map(Value::Map),
        ]
    })
}

/// A message with fields of any types of messages.
fn message() -> impl Strategy<Value = Vec<u8>> {
    let fields = proptest::collection::vec((proptest::sample::select(&FIELDS[..]), value()), 0..8);
    (proptest::sample::select(&TYPES[..]), fields).prop_map(|(kind, fields)| {
        let mut map = vec![(Value::from("type"), Value::from(kind))];
        map.extend(fields.into_iter().map(|(name, value)| (name.into(), value)));
        notification("co", vec![Value::Map(map)])
    })
}

/// Bytes that a connection of Neovim never carries, or only damaged.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let damaged = || (message(), any::<proptest::sample::Index>(), any::<u8>());
    prop_oneof![
        6 => message(),
        1 => damaged().prop_map(|(mut bytes, at, byte)| {
            let at = at.index(bytes.len());
            bytes[at] = byte;
            bytes
        }),
        1 => damaged().prop_map(|(bytes, at, _)| bytes[..at.index(bytes.len())].to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..60),
        1 => value().prop_map(|any| packed(&any)),
        // A response that nobody waits for, and a request.
        1 => (any::<u32>(), value()).prop_map(|(id, any)| {
            packed(&Value::Array(vec![1.into(), id.into(), Value::Nil, any]))
        }),
        1 => (any::<u32>(), value()).prop_map(|(id, any)| {
            packed(&Value::Array(vec![0.into(), id.into(), "co".into(), Value::Array(vec![any])]))
        }),
    ]
}

#[test]
fn it_answers_or_ends_whatever_it_reads() {
    let config = ProptestConfig {
        cases: u32::try_from(cases(60)).unwrap(),
        failure_persistence: None,
        max_shrink_iters: 60,
        ..ProptestConfig::default()
    };
    proptest!(config, |(greeted in any::<bool>(), pieces in proptest::collection::vec(piece(), 1..12))| {
        let mut wire = if greeted { Wire::greeted() } else { Wire::start() };
        for piece in &pieces {
            if !wire.write(piece) {
                break;
            }
        }
        let ended = wire.close();
        prop_assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
        prop_assert!(ended.stderr.lines().count() <= 1, "{ended:?}");
    });
}
