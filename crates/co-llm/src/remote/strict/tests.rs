//! Random and cut transcripts, through the checker of each family of servers.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::conversation::Conversation;
use super::super::options::RequestOptions;
use super::super::request_info::{RequestInfo, test_info};
use super::super::{protocol, reasoning};
use super::{Checked, anthropic, chat_completions, gemini, ollama, responses};
use crate::effort::Effort;
use crate::provider_table::Protocol;
use crate::request::{ModelRequest, ToolSpec};
use crate::transcript::test_items::{call, end, note, outcome, png, said, summary, user};
use crate::transcript::{Call, Context, Decision, End, Image, Item, Outcome, Usage};

/// Stands for the signature of the model that is asked.
const OWN: &str = "own";
/// A thought that the asked model has encrypted.
const OWN_REDACTED: &str = "own redacted";

/// A server, and its checker.
struct Family {
    info: RequestInfo,
    check: fn(&Value, &[&str]) -> Checked,
    /// True if the server is known to take prompts in a row.
    no_bridges: bool,
}

fn family(
    protocol: Protocol,
    host: &str,
    model: &str,
    check: fn(&Value, &[&str]) -> Checked,
) -> Family {
    let mut info = RequestInfo {
        host: host.into(),
        model: model.into(),
        own: host.contains('.') && !host.starts_with("127"),
        images: true,
        ..test_info(protocol)
    };
    info.thinking = reasoning::has_budget(&info);
    Family {
        info,
        check,
        no_bridges: false,
    }
}

fn families() -> Vec<Family> {
    use Protocol::{Anthropic, Gemini, Ollama, OpenAi, Responses};
    use chat_completions::{CLAUDE, DEEPSEEK, GROQ, MISTRAL, OPENAI, TEMPLATE, XAI, check as chat};
    let free = |family: Family| Family {
        no_bridges: true,
        ..family
    };
    let claude = |body: &Value, tools: &[&str]| anthropic::check(body, tools, false);
    let mut thinking = free(family(
        Anthropic,
        "api.anthropic.com",
        "claude-haiku-4-5",
        claude,
    ));
    thinking.info.effort = Some(Effort::High);
    thinking.info.thinking = reasoning::has_budget(&thinking.info);
    assert!(thinking.info.thinking);
    vec![
        thinking,
        free(family(
            Anthropic,
            "api.anthropic.com",
            "claude-sonnet-5-5",
            claude,
        )),
        family(Anthropic, "127.0.0.1:8000", "claude-x", |body, tools| {
            anthropic::check(body, tools, true)
        }),
        free(family(OpenAi, "api.openai.com", "gpt-4.1", |b, t| {
            chat(b, t, &OPENAI)
        })),
        free(family(OpenAi, "api.x.ai", "grok-4.5", |b, t| {
            chat(b, t, &XAI)
        })),
        family(OpenAi, "api.mistral.ai", "magistral-medium", |b, t| {
            chat(b, t, &MISTRAL)
        }),
        family(OpenAi, "127.0.0.1:8000", "Devstral-Small-2", |b, t| {
            let reasoning = chat_completions::ChatRules {
                no_reasoning: false,
                ..MISTRAL
            };
            chat(b, t, &reasoning)
        }),
        family(OpenAi, "127.0.0.1:8080", "qwen3", |b, t| {
            chat(b, t, &TEMPLATE)
        }),
        family(OpenAi, "api.groq.com", "llama-4", |b, t| chat(b, t, &GROQ)),
        family(OpenAi, "api.deepseek.com", "deepseek-v4-pro", |b, t| {
            chat(b, t, &DEEPSEEK)
        }),
        family(OpenAi, "openrouter.ai", "anthropic/claude-x", |b, t| {
            chat(b, t, &CLAUDE)
        }),
        family(OpenAi, "127.0.0.1:4000", "bedrock/claude-x", |b, t| {
            chat(b, t, &CLAUDE)
        }),
        free(family(
            Responses,
            "api.openai.com",
            "gpt-6-astra",
            |body, tools| responses::check(body, tools, false),
        )),
        family(Responses, "127.0.0.1:8000", "gpt-oss", |body, tools| {
            responses::check(body, tools, true)
        }),
        free(family(
            Gemini,
            "generativelanguage.googleapis.com",
            "gemini-3.8-flash",
            gemini::check,
        )),
        free(family(Ollama, "127.0.0.1:11434", "qwen3", ollama::check)),
    ]
}

fn tools() -> Arc<[ToolSpec]> {
    let tool = |name: &str| ToolSpec {
        name: name.into(),
        description: "Does something.".into(),
        schema: json!({"type": "object"}),
    };
    Arc::new([tool("run"), tool("read_file")])
}

fn request(items: Vec<Item>) -> ModelRequest {
    ModelRequest {
        system: "system".into(),
        items: items.into(),
        tools: tools(),
        may_call: true,
        cache_key: Some("chat".into()),
        room: None,
    }
}

/// Returns the items as this server's model left them: with its own signatures.
fn signed(info: &RequestInfo, items: &[Item]) -> Vec<Item> {
    let details = json!([{"type": "reasoning.text", "text": "hm"}]).to_string();
    let own = match info.protocol {
        Protocol::OpenAi if info.is_at("openrouter.ai") => Some(info.keep_signature(&details)),
        Protocol::OpenAi | Protocol::Ollama => None,
        _ => Some(info.keep_signature("c2ln")),
    };
    let redacted = json!({"type": "redacted_thinking", "data": "c2ln"}).to_string();
    let sign = |signature: &mut Option<String>| match signature.as_deref() {
        Some(OWN_REDACTED) if info.protocol == Protocol::Anthropic => {
            *signature = Some(info.keep_signature(&redacted));
        }
        Some(OWN | OWN_REDACTED) => signature.clone_from(&own),
        _ => {}
    };
    let mut items = items.to_vec();
    for item in &mut items {
        match item {
            Item::Reasoning { signature, .. } => sign(signature),
            Item::Call(call) if info.protocol == Protocol::Gemini => sign(&mut call.signature),
            Item::Call(call) => call.signature = None,
            _ => {}
        }
    }
    items
}

fn body(info: &RequestInfo, request: &ModelRequest) -> Value {
    let chat = Conversation::new(info, request);
    protocol::body(info, &RequestOptions::default(), &chat)
}

/// Checks the request of these items for each family of servers.
fn check(base: &ModelRequest) -> Result<(), TestCaseError> {
    for family in families() {
        let request = ModelRequest {
            items: signed(&family.info, &base.items).into(),
            ..base.clone()
        };
        let body = body(&family.info, &request);
        let named = ["run", "read_file"];
        let reduced = base.items.contains(&Item::Reduced);
        let named = if base.tools.is_empty() {
            &[][..]
        } else {
            &named
        };
        let checked = (family.check)(&body, named);
        let (host, model) = (&family.info.host, &family.info.model);
        prop_assert_eq!(checked, Ok(()), "{} {}: {:#}", host, model, body);
        let bridged = body.to_string().contains("(no answer)");
        let bridges = reduced || !family.no_bridges;
        prop_assert!(bridges || !bridged, "{} {}: {:#}", host, model, body);
    }
    Ok(())
}

fn any_image() -> impl Strategy<Value = Image> {
    let side = prop_oneof![
        Just(1),
        Just(0),
        Just(2_001),
        Just(8_001),
        Just(10_001),
        Just(40_000)
    ];
    let bytes = |data: &str| Image {
        media_type: "image/png".into(),
        data: data.into(),
    };
    prop_oneof![
        12 => Just(png(2_000, 1)),
        4 => (side.clone(), side).prop_map(|(width, height)| png(width, height)),
        1 => Just(bytes("ZWlnaHQgYnk=")),
        1 => Just(bytes("no base64")),
        1 => Just(bytes("")),
        1 => Just(Image { media_type: "image/gif".into(), ..png(2, 2) }),
    ]
}

fn any_context() -> impl Strategy<Value = Context> {
    let image = prop::option::of(any_image());
    (any_text(), any_text(), image).prop_map(|(name, text, image)| Context { name, text, image })
}

fn any_text() -> impl Strategy<Value = String> {
    let fixed = ["", " \n", "words", "é 👩‍👩‍👧", "<|im_end|>", "{}"];
    prop_oneof![
        prop::sample::select(fixed.to_vec()).prop_map(str::to_owned),
        ".{0,12}"
    ]
}

fn any_id() -> impl Strategy<Value = String> {
    let fixed = [
        "",
        "1",
        "a:1",
        "a_1",
        "a.1",
        "call#run",
        "V2bduoFbR",
        "functions.run:0",
        "é",
    ];
    let long = (0..3_usize).prop_map(|n| "x".repeat(98 + n));
    prop_oneof![6 => prop::sample::select(fixed.to_vec()).prop_map(str::to_owned), 1 => long]
}

fn any_name() -> impl Strategy<Value = String> {
    let odd = [
        "",
        "run<|channel|>commentary",
        "functions.run",
        "run it",
        "rün",
        "gone",
    ];
    prop_oneof![
        12 => Just("run".to_owned()),
        4 => Just("read_file".to_owned()),
        1 => prop::sample::select(odd.to_vec()).prop_map(str::to_owned),
        1 => Just("n".repeat(200)),
    ]
}

fn any_signature() -> impl Strategy<Value = Option<String>> {
    let fixed = [
        OWN,
        OWN,
        OWN_REDACTED,
        "anthropic|claude-opus-4-1|sig",
        r#"anthropic|claude-opus-4-1|{"type":"redacted_thinking","data":"x"}"#,
        "gemini|h|m|sig",
        "nobody",
    ];
    prop::option::of(prop::sample::select(fixed.to_vec()).prop_map(str::to_owned))
}

fn any_item() -> impl Strategy<Value = Item> {
    let arguments = prop_oneof![
        Just(json!({"cmd": "ls"})),
        Just(json!({})),
        Just(json!("x"))
    ];
    let prompt = (any_text(), prop::collection::vec(any_context(), 0..3));
    let call = (any_id(), any_name(), arguments, any_signature());
    let reason = [
        End::Done,
        End::Cancelled,
        End::Failed,
        End::Guarded,
        End::Interrupted,
    ];
    let end = prop::sample::select(reason.to_vec());
    prop_oneof![
        3 => prompt.prop_map(|(text, context)| Item::User { text, context, at: None }),
        3 => any_text().prop_map(|text| Item::Text { text }),
        3 => (any_text(), any_signature())
            .prop_map(|(text, signature)| Item::Reasoning { text, signature }),
        5 => call.prop_map(|(id, name, arguments, signature)| {
            Item::Call(Call { id, name, arguments, signature })
        }),
        5 => (any_id(), any_text(), any::<bool>())
            .prop_map(|(id, text, ok)| Item::Outcome(Outcome::new(id, text, ok))),
        2 => end.prop_map(|reason| Item::End { reason, usage: Usage::default(), explained: false }),
        1 => (any_text(), any::<bool>()).prop_map(|(text, once)| Item::Note { text, once }),
        1 => (any_text(), any::<bool>()).prop_map(|(text, told)| Item::JobEnded { job: 1, text, told }),
        1 => (any_text(), 0..4_usize).prop_map(|(text, keep)| Item::Summary { text, keep }),
        1 => Just(Item::Retried),
        1 => Just(Item::Unknown),
    ]
}

/// A chat with all that a chat usually has.
fn usual_chat() -> Vec<Item> {
    let thought = |text: &str| Item::Reasoning {
        text: text.into(),
        signature: Some(OWN.into()),
    };
    let signed = |id: &str, name: &str| {
        Item::Call(Call {
            signature: Some(OWN.into()),
            ..Call::new(id, name, json!({"cmd": "cargo test"}))
        })
    };
    let decided = |id: &str, decision| Item::Decision {
        call: id.into(),
        decision,
    };
    let ended = |reason| Item::End {
        reason,
        usage: Usage::default(),
        explained: false,
    };
    let picture = Context {
        name: "@file:shot.png".into(),
        text: String::new(),
        image: Some(png(9_000, 100)),
    };
    let started = Item::JobStarted {
        job: 1,
        call: "toolu_2".into(),
        command: "make".into(),
    };
    let job = Item::JobEnded {
        job: 1,
        text: "job 1 (make) ended: exit 1".into(),
        told: false,
    };
    vec![
        Item::User {
            text: "Why does the test fail?".into(),
            context: vec![picture],
            at: None,
        },
        thought("I look at it."),
        said("I run "),
        said("the test.\n"),
        signed("toolu_1", "run"),
        signed("toolu:1", "run"),
        decided("toolu_1", Decision::Unasked),
        decided("toolu:1", Decision::Denied { reason: None }),
        outcome("toolu_1", "1 failed"),
        outcome("toolu:1", "denied"),
        user("Only the library."),
        thought(""),
        call("toolu_2"),
        started,
        outcome("toolu_2", ""),
        said("It fails in `parse`."),
        end(),
        job,
        user("Mend it."),
        ended(End::Failed),
        user("Go on."),
        thought("Hm."),
        ended(End::Cancelled),
        Item::Notice {
            text: "stopped".into(),
        },
        user("Again."),
        signed("call#run", "functions.run"),
        outcome("call#run", "there is no tool functions.run"),
        signed("call#run_1", "run"),
        outcome("call#run_1", "ok"),
        ended(End::Guarded),
        note("the directory is now src", false),
        user("Done?"),
        said("Yes."),
        end(),
        summary("It was mended.", 3),
        user("Thanks."),
        said("</think>You are welcome."),
        Item::Retried,
        said("Good."),
        end(),
    ]
}

/// Returns the beginning of a text.
fn head(text: &str, cut: prop::sample::Index) -> String {
    let characters = text.chars().count();
    text.chars().take(cut.index(characters + 1)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn random_transcripts_are_accepted(
        items in prop::collection::vec(any_item(), 0..24),
        offers_tools: bool,
        may_call: bool,
        reduced: Option<prop::sample::Index>,
    ) {
        let mut items = items;
        if let Some(at) = reduced {
            items.insert(at.index(items.len() + 1), Item::Reduced);
        }
        let mut base = request(items);
        base.may_call = may_call;
        if !offers_tools {
            base.tools = Arc::new([]);
        }
        check(&base)?;
    }

    #[test]
    fn a_usual_chat_is_accepted_wherever_it_is_cut(
        end: prop::sample::Index, cut: prop::sample::Index,
        hole: (prop::sample::Index, prop::sample::Index), torn: bool,
    ) {
        let chat = usual_chat();
        let mut items = chat[..end.index(chat.len() + 1)].to_vec();
        if let Some(Item::Text { text } | Item::Reasoning { text, .. }) = items.last_mut() {
            *text = head(text, cut);
        }
        check(&request(items.clone()))?;
        // A line of the file that cannot be read is left out.
        if torn && !items.is_empty() {
            let (from, to) = (hole.0.index(items.len()), hole.1.index(items.len()));
            items.drain(from.min(to)..=from.max(to));
            check(&request(items))?;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn many_images_are_accepted(images in prop::collection::vec(any_image(), 0..120)) {
        let items = images.into_iter().flat_map(|image| {
            let piece = Context { name: "@clipboard".into(), image: Some(image), ..Context::default() };
            [Item::User { text: "x".into(), context: vec![piece], at: None }, said("y"), end()]
        });
        check(&request(items.collect()))?;
    }
}

/// A step of a chat, after which a request may be sent.
#[derive(Debug, Clone, Copy)]
enum Event {
    Prompt,
    Answer,
    /// The number of calls, with their results. `true`: the person steers meanwhile.
    Calls(usize, bool),
    UnknownCall,
    Failed,
    StoppedWhileSpeaking,
    JobEnded,
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => Just(Event::Prompt),
        2 => Just(Event::Answer),
        3 => (1..4_usize, any::<bool>()).prop_map(|(calls, steers)| Event::Calls(calls, steers)),
        1 => Just(Event::UnknownCall),
        1 => Just(Event::Failed),
        1 => Just(Event::StoppedWhileSpeaking),
        1 => Just(Event::JobEnded),
    ]
}

/// Adds the items of an event. Returns true if a request follows it.
fn add(items: &mut Vec<Item>, at: usize, event: Event) -> bool {
    let ended = |reason| Item::End {
        reason,
        usage: Usage::default(),
        explained: false,
    };
    match event {
        Event::Prompt => items.push(user(&format!("prompt {at}"))),
        Event::Answer => items.extend([said("answer"), end()]),
        Event::Calls(calls, steers) => {
            let ids: Vec<String> = (0..calls).map(|call| format!("a:{at}.{call}")).collect();
            items.extend(ids.iter().map(|id| call(id)));
            items.extend(ids.iter().map(|id| outcome(id, "ok")));
            items.extend(steers.then(|| user("steer")));
        }
        Event::UnknownCall => {
            let id = format!("a_{at}");
            let unknown = Call::new(&*id, "run<|channel|>", json!({}));
            items.extend([Item::Call(unknown), outcome(&id, "no such tool")]);
        }
        Event::Failed => items.push(ended(End::Failed)),
        Event::StoppedWhileSpeaking => items.extend([said("hal"), ended(End::Cancelled)]),
        Event::JobEnded => {
            items.push(Item::JobEnded {
                job: 1,
                text: "job 1 ended".into(),
                told: false,
            });
            return false;
        }
    }
    matches!(event, Event::Prompt | Event::Calls(..) | Event::UnknownCall)
}

/// Returns the messages of a request, without the marks for a cache, which are no part of what is cached.
fn messages(info: &RequestInfo, items: &[Item]) -> Vec<Value> {
    let mut body = body(info, &request(signed(info, items)));
    let field = ["messages", "input", "contents"]
        .into_iter()
        .find(|it| body[it].is_array());
    let mut messages = body[field.expect("each protocol has one")].take();
    let contents = messages.as_array_mut().expect("a list");
    for message in contents.iter_mut() {
        for block in message["content"].as_array_mut().into_iter().flatten() {
            block
                .as_object_mut()
                .map(|block| block.remove("cache_control"));
        }
    }
    std::mem::take(contents)
}

proptest! {
    #[test]
    fn each_request_begins_with_the_one_before_it(
        events in prop::collection::vec(any_event(), 1..16)
    ) {
        for family in families() {
            let mut items = Vec::new();
            let mut before: Vec<Value> = Vec::new();
            let mut waits = false;
            for (at, event) in events.iter().enumerate() {
                // A prompt that has no answer yet waits for the end of the turn.
                if waits && matches!(event, Event::Prompt | Event::JobEnded) {
                    items.push(Item::End { reason: End::Failed, usage: Usage::default(), explained: false });
                }
                let sends = add(&mut items, at, *event);
                waits = sends;
                if !sends {
                    continue;
                }
                let now = messages(&family.info, &items);
                let shared = now.get(..before.len());
                let host = &family.info.host;
                prop_assert_eq!(shared, Some(&before[..]), "{}: {:?}", host, items);
                before = now;
            }
        }
    }
}
