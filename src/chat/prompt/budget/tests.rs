use serde_json::json;

use super::*;
use co_llm::transcript::{Call, Context, Image, Outcome};

fn user(text: &str) -> Item {
    Item::user(text)
}

fn step(number: usize, output: String) -> [Item; 3] {
    let id = format!("call-{number}");
    [
        Item::Text {
            text: format!("step {number}"),
        },
        Item::Call(Call::new(
            id.clone(),
            "run_shell_command",
            json!({"cmd": format!("make {number}")}),
        )),
        Item::Outcome(Outcome {
            spill: Some(format!("/spill/{number}").into()),
            ..Outcome::new(id, output, true)
        }),
    ]
}

fn outputs(items: &[Item]) -> Vec<&str> {
    items
        .iter()
        .filter_map(|item| match item {
            Item::Outcome(outcome) => Some(outcome.text.as_str()),
            _ => None,
        })
        .collect()
}

#[test]
fn what_fits_is_sent_as_it_is() {
    let mut items = vec![user("go")];
    items.extend(step(1, "fine".repeat(100)));
    let fit = Budget { window: 10_000 }.fit("system", &[], &items);
    assert_eq!(fit.items, items);
    assert_eq!((fit.shortened, fit.summarise), (Vec::new(), None));
}

#[test]
fn two_hundred_steps_with_five_megabytes_stay_under_and_keep_the_first_words() {
    let budget = Budget { window: 128_000 };
    let mut items = vec![user("Rename every Foo to Bar, but never touch vendor/.")];
    let mut prefixes = 0;
    let mut last: Vec<Item> = Vec::new();
    for number in 0..200 {
        items.extend(step(
            number,
            format!("line {number:03}\n").repeat(25_000 / 9),
        ));
        let fit = budget.fit("system", &[], &items);
        assert!(
            fit.tokens <= 128_000 / 5 * 4,
            "{} tokens at {number}",
            fit.tokens
        );
        assert_eq!(fit.summarise, None, "at {number}");
        assert_eq!(fit.items[0], items[0]);
        let (_, changed) = transcript::repair(fit.items.clone());
        assert!(!changed, "a pair was split at {number}");
        let recent = outputs(&fit.items);
        assert!(
            recent[recent.len() - 1].len() > 20_000,
            "the last output is whole"
        );
        // Each request begins like the last one, unless that is announced.
        let begins = fit.items.starts_with(&last);
        assert!(begins || !fit.shortened.is_empty(), "at {number}");
        prefixes += usize::from(begins);
        last = fit.items;
        if !fit.shortened.is_empty() {
            items.push(Item::Shortened {
                texts: fit.shortened,
            });
            let again = budget.fit("system", &[], &items);
            assert_eq!(again.items, last, "it stays as it was sent");
            assert_eq!(again.shortened, []);
        }
    }
    let total: usize = outputs(&items).iter().map(|text| text.len()).sum();
    assert!(total > 4_800_000, "{total}");
    assert!(outputs(&last)[0].contains("/spill/0"));
    assert!(
        prefixes > 140,
        "only {prefixes} of 200 requests had the last one as their beginning"
    );
}

#[test]
fn one_output_larger_than_the_window_is_cut_in_its_middle() {
    let mut items = vec![user("go")];
    let mut step = step(
        1,
        format!("first{}last\n[all 1 lines]", "ä".repeat(100_000)),
    );
    if let Item::Call(call) = &mut step[1] {
        call.name = "read_file".to_owned();
    }
    items.extend(step);
    let fit = Budget { window: 10_000 }.fit("", &[], &items);
    assert!(fit.tokens <= 8_000, "{}", fit.tokens);
    let output = outputs(&fit.items)[0];
    let (frame, after) = output.split_once("\n</output-").unwrap();
    assert!(frame.starts_with("<output-") && frame.contains(">\nfirst"));
    assert!(frame.ends_with("last"));
    let lines: Vec<_> = after.lines().skip(1).collect();
    assert_eq!(lines[0], "[all 1 lines]");
    assert!(
        lines[1].starts_with("[co left out ") && lines[1].ends_with(" bytes in the middle]"),
        "{after}"
    );
    assert_eq!(fit.summarise, None);
    items.push(Item::Shortened {
        texts: fit.shortened,
    });
    let again = Budget { window: 10_000 }.fit("", &[], &items);
    assert_eq!(again.items, fit.items, "it stays as it was sent");
}

#[test]
fn talk_alone_asks_for_a_summary_and_keeps_whole_steps() {
    let mut items = vec![user("the first words")];
    for number in 0..50 {
        items.extend(step(number, "ok".into()));
        items.push(Item::Text {
            text: "talk ".repeat(200),
        });
    }
    let budget = Budget { window: 10_000 };
    let fit = budget.fit("", &[], &items);
    let keep = fit.summarise.unwrap();
    assert!(keep > 0 && keep < items.len());
    let kept = transcript::joined(&items[items.len() - keep..]);
    items.push(Item::Summary {
        text: "In short: fifty steps.".into(),
        keep,
    });
    let fit = budget.fit("", &[], &items);
    assert_eq!(fit.summarise, None);
    assert!(fit.tokens < 5_000, "{}", fit.tokens);
    assert_eq!(fit.items[0], user("the first words"));
    let (_, changed) = transcript::repair(fit.items.clone());
    assert!(!changed, "a pair was split");
    assert_eq!(fit.items[2..], kept);
}

#[test]
fn a_summary_keeps_an_answer_with_its_first_piece_or_not_at_all() {
    let mut items = vec![user("go")];
    for number in 0..9 {
        items.extend(step(number, "ok".into()));
        items.extend((0..100).map(|piece| Item::Text {
            text: format!("{piece} talk talk talk talk "),
        }));
    }
    let keep = Budget { window: 5_000 }.fit("", &[], &items).summarise;
    let from = items.len() - keep.unwrap();
    assert!(!matches!(items[from - 1], Item::Text { .. }));
}

#[test]
fn a_prompt_larger_than_the_window_cannot_be_summed_up() {
    let budget = Budget { window: 1_000 };
    let fit = budget.fit("", &[], &[user(&"x".repeat(100_000))]);
    assert!(fit.tokens > 800);
    assert_eq!(fit.summarise, None);
}

#[test]
fn what_is_attached_and_the_tools_count() {
    let budget = Budget { window: 10_000 };
    let plain = budget.fit("", &[], &[user("go")]).tokens;
    let attached = Item::User {
        text: "go".into(),
        context: vec![Context {
            name: "@file:src/main.rs".into(),
            text: "x".repeat(7_000),
            ..Context::default()
        }],
        at: None,
    };
    assert!(budget.fit("", &[], &[attached]).tokens > plain + 2_000);
    let tool = ToolSpec {
        name: "run".into(),
        description: "x".repeat(3_500),
        schema: json!({"about": "x".repeat(3_500)}),
    };
    assert!(budget.fit("", &[tool], &[user("go")]).tokens > plain + 2_000);
}

fn attached(text: &str, files: &[(&str, usize)]) -> Item {
    let context = |(name, size): &(&str, usize)| Context {
        name: (*name).into(),
        text: "x".repeat(*size),
        ..Context::default()
    };
    Item::User {
        text: text.into(),
        context: files.iter().map(context).collect(),
        at: None,
    }
}

fn contexts(items: &[Item]) -> Vec<&str> {
    let mut texts = Vec::new();
    for item in items {
        if let Item::User { context, .. } = item {
            texts.extend(context.iter().map(|it| it.text.as_str()));
        }
    }
    texts
}

#[test]
fn what_an_earlier_prompt_attached_is_left_out_like_an_old_output() {
    let mut items = vec![attached(
        "read",
        &[("@file:a", 20_000), ("@file:b", 20_000)],
    )];
    items.extend(step(1, "fine".into()));
    items.push(attached("and now", &[("@file:c", 9_000)]));
    items.extend((2..7).flat_map(|number| step(number, "fine".into())));
    let budget = Budget { window: 10_000 };
    let fit = budget.fit("", &[], &items);
    let told = contexts(&fit.items);
    assert!(
        told[0].contains(" bytes, left out to save room"),
        "{}",
        told[0]
    );
    assert!(
        told[2].contains(&"x".repeat(9_000)),
        "the last prompt keeps what it attaches"
    );
    assert_eq!(fit.summarise, None);
    items.push(Item::Shortened {
        texts: fit.shortened,
    });
    let again = budget.fit("", &[], &items);
    assert_eq!(again.items, fit.items, "it stays as it was sent");
    assert_eq!(again.shortened, []);
}

#[test]
fn an_image_of_an_earlier_prompt_is_left_out_as_a_whole() {
    let image = |name: &str, data: &str| Context {
        name: name.into(),
        image: Some(Image {
            media_type: "image/png".into(),
            data: data.repeat(500),
        }),
        ..Context::default()
    };
    let mut items = vec![Item::User {
        text: "see".into(),
        context: ["a", "b", "c", "d", "e", "f"]
            .map(|name| image(name, "AAAA"))
            .into(),
        at: None,
    }];
    items.extend(step(1, "fine".into()));
    items.push(Item::User {
        text: "and now".into(),
        context: vec![image("a", "AAAABBBB")],
        at: None,
    });
    items.extend((2..7).flat_map(|number| step(number, "fine".into())));
    let budget = Budget { window: 10_000 };
    let fit = budget.fit("", &[], &items);
    assert!(fit.tokens <= 8_000, "{}", fit.tokens);
    assert_eq!(fit.summarise, None);
    assert_eq!(contexts(&fit.items)[0], "[an image, left out to save room]");
    let last = fit.items.iter().rev().find_map(|item| match item {
        Item::User { context, .. } => context.first(),
        _ => None,
    });
    assert!(last.is_some_and(|it| it.image.is_some()), "{last:?}");
    items.push(Item::Shortened {
        texts: fit.shortened,
    });
    assert_eq!(budget.fit("", &[], &items).items, fit.items);
}

#[test]
fn one_context_larger_than_the_window_is_cut_in_its_middle() {
    let prompt = attached("read", &[("@file:a", 561_000)]);
    let fit = Budget { window: 10_000 }.fit("", &[], &[prompt]);
    assert!(fit.tokens <= 8_000, "{}", fit.tokens);
    assert!(contexts(&fit.items)[0].ends_with(" bytes in the middle]"));
}

/// A server may number its calls anew after a summary, and a person may attach a file again.
#[test]
fn a_text_is_whole_if_only_an_earlier_one_with_its_name_was_shortened() {
    let mut items = vec![attached("read", &[("@file:a", 5_000)])];
    items.extend(step(1, "old".repeat(1_000)));
    items.push(user("and now"));
    items.extend((2..7).flat_map(|number| step(number, "fine".into())));
    let texts = Budget { window: 1_500 }.fit("", &[], &items).shortened;
    assert_eq!(texts.len(), 2, "{texts:?}");
    items.push(Item::Shortened { texts });
    let budget = Budget { window: 100_000 };
    let before = budget.fit("", &[], &items).items;
    assert!(outputs(&before)[0].contains("left out to save room"));
    for summary in [false, true] {
        let mut items = items.clone();
        if summary {
            let text = "It was read.".into();
            items.push(Item::Summary { text, keep: 0 });
        }
        items.push(attached("read it again", &[("@file:a", 5_000)]));
        items.extend(step(if summary { 1 } else { 7 }, "new".repeat(1_000)));
        let fit = budget.fit("", &[], &items).items;
        let told = contexts(&fit);
        assert!(told[0].contains("left out to save room"), "{told:?}");
        assert!(told[1].contains(&"x".repeat(5_000)), "{told:?}");
        assert_eq!(outputs(&fit).last(), Some(&"new".repeat(1_000).as_str()));
    }
}
