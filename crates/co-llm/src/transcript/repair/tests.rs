use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::transcript::test_items::{call, end, note, outcome, said, summary, user};
use crate::transcript::{Call, Decision};

fn interrupted(id: &str) -> Item {
    Item::Outcome(Outcome::new(id, INTERRUPTED, false))
}

fn check(items: &[Item], expected: &[Item]) {
    let (mended, changed) = repair(items.to_vec());
    assert_eq!(mended, expected);
    assert_eq!(changed, items != expected);
}

#[test]
fn what_is_whole_stays() {
    let items = [
        user("x"),
        said("y"),
        call("1"),
        call("2"),
        outcome("1", "a"),
        outcome("2", "b"),
        said("z"),
        end(),
    ];
    check(&items, &items);
    check(&[], &[]);
}

#[test]
fn a_call_without_a_result_gets_one() {
    check(
        &[user("x"), call("1")],
        &[user("x"), call("1"), interrupted("1")],
    );
    check(
        &[call("1"), call("2"), outcome("2", "b"), user("y")],
        &[
            call("1"),
            call("2"),
            outcome("2", "b"),
            interrupted("1"),
            user("y"),
        ],
    );
}

#[test]
fn a_call_that_was_only_tried_changed_nothing() {
    let decided = |decision| Item::Decision {
        call: "1".to_owned(),
        decision,
    };
    let tried = [call("1"), decided(Decision::Tried)];
    let dropped = Item::Outcome(Outcome::new("1", TRIAL_INTERRUPTED, false));
    check(&tried, &[&tried[..], &[dropped]].concat());
    let approved = [&tried[..], &[decided(Decision::Approved)]].concat();
    check(&approved, &[&approved[..], &[interrupted("1")]].concat());
}

#[test]
fn a_result_that_came_late_takes_its_place() {
    check(
        &[call("1"), user("y"), outcome("1", "a")],
        &[call("1"), outcome("1", "a"), user("y")],
    );
}

#[test]
fn a_step_has_all_its_results_before_the_next_begins() {
    check(
        &[
            call("1"),
            call("2"),
            outcome("1", "a"),
            call("3"),
            outcome("2", "b"),
        ],
        &[
            call("1"),
            call("2"),
            outcome("1", "a"),
            outcome("2", "b"),
            call("3"),
            interrupted("3"),
        ],
    );
}

#[test]
fn results_of_nothing_and_second_results_go() {
    check(&[outcome("1", "a"), user("x")], &[user("x")]);
    check(
        &[call("1"), outcome("1", "a"), outcome("1", "b")],
        &[call("1"), outcome("1", "a")],
    );
}

#[test]
fn a_second_call_of_the_same_id_gets_its_own() {
    check(
        &[call("1"), outcome("1", "a"), call("1"), outcome("1", "b")],
        &[
            call("1"),
            outcome("1", "a"),
            call("1_2"),
            outcome("1_2", "b"),
        ],
    );
}

#[test]
fn a_turn_without_an_end_is_unfinished() {
    assert!(!unfinished(&[]));
    assert!(unfinished(&[user("x")]));
    assert!(unfinished(&[user("x"), call("1")]));
    assert!(!unfinished(&[user("x"), said("y"), end()]));
    assert!(!unfinished(&[user("x"), end(), summary("s", 0)]));
    assert!(!unfinished(&[user("x"), end(), note("n", false)]));
    assert!(unfinished(&[user("x"), end(), note("n", true)]));
    assert!(unfinished(&[user("x"), note("n", false)]));
}

/// Checks the conditions that all repaired items meet.
fn assert_valid(items: &[Item]) {
    let mut ids = HashSet::new();
    let mut open: HashSet<&str> = HashSet::new();
    let mut answering = false;
    for item in items {
        match item {
            Item::Call(call) => {
                assert!(
                    !answering || open.is_empty(),
                    "{call:?} stands before {open:?} have results"
                );
                answering = false;
                assert!(
                    ids.insert(call.id.as_str()),
                    "the id {} is there twice",
                    call.id
                );
                assert!(call.arguments.is_object());
                open.insert(&call.id);
            }
            Item::Outcome(outcome) => {
                answering = true;
                assert!(
                    open.remove(outcome.call.as_str()),
                    "{outcome:?} answers nothing"
                );
            }
            Item::Decision { .. } | Item::Notice { .. } | Item::Unknown => {}
            // Between two calls of one answer.
            Item::Text { .. } | Item::Reasoning { .. } if !answering => {}
            _ => assert!(
                open.is_empty(),
                "{item:?} stands before {open:?} have results"
            ),
        }
    }
    assert!(open.is_empty(), "{open:?} have no results");
}

fn any_item() -> impl Strategy<Value = Item> {
    let id = prop_oneof![Just("1"), Just("2"), Just("3")];
    prop_oneof![
        Just(user("u")),
        Just(said("t")),
        Just(Item::Reasoning {
            text: "r".into(),
            signature: None
        }),
        Just(summary("s", 1)),
        Just(Item::Notice { text: "n".into() }),
        Just(Item::Unknown),
        Just(end()),
        id.clone().prop_map(|id| Item::Decision {
            call: id.into(),
            decision: Decision::Approved
        }),
        (id.clone(), any::<bool>()).prop_map(|(id, object)| Item::Call(Call::new(
            id,
            "run",
            if object { json!({"a": 1}) } else { json!("a") }
        ))),
        (id, "[a-z]{1,3}").prop_map(|(id, text)| outcome(id, &text)),
    ]
}

proptest! {
    #[test]
    fn any_sequence_repairs_to_a_valid_one(items in prop::collection::vec(any_item(), 0..40)) {
        let (mended, _) = repair(items.clone());
        assert_valid(&mended);
        // Nothing but results is ever taken away.
        let others = |items: &[Item]| {
            items.iter().filter(|item| !matches!(item, Item::Outcome(_))).count()
        };
        prop_assert_eq!(others(&items), others(&mended));
        // What is whole is left alone.
        let (again, changed) = repair(mended.clone());
        prop_assert!(!changed);
        prop_assert_eq!(again, mended);
    }

    #[test]
    fn any_prefix_of_a_whole_conversation_repairs_and_keeps_what_was_shown(
        steps in prop::collection::vec(0usize..4, 1..12), cut in any::<prop::sample::Index>()
    ) {
        let mut items = vec![user("go")];
        for (step, calls) in steps.iter().enumerate() {
            items.push(said("t"));
            items.extend((0..*calls).map(|n| call(&format!("{step}-{n}"))));
            items.extend((0..*calls).map(|n| outcome(&format!("{step}-{n}"), "o")));
        }
        items.push(end());
        let prefix = &items[..=cut.index(items.len())];
        let (mended, _) = repair(prefix.to_vec());
        assert_valid(&mended);
        prop_assert_eq!(&mended[..prefix.len()], prefix);
    }
}

#[test]
fn calls_without_an_outcome_are_unanswered() {
    let items = [
        user("x"),
        call("1"),
        call("2"),
        call("3"),
        outcome("2", "a"),
        call("2"),
    ];
    let open: Vec<_> = unanswered(&items)
        .into_iter()
        .map(|call| call.id.as_str())
        .collect();
    assert_eq!(open, ["1", "3", "2"]);
}
