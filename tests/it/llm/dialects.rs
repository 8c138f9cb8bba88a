//! Streams as real servers send them, and the answers that co reads from them.
//!
//! The files in `dialects/` hold streams: a name after `#`, one frame on each line, and the answer in short after `=>`.
//! `docs/PROVIDERS.md` says from where the formats are known.

use co_llm::{Delta, Fault, STALL_TIMEOUT, Stop};

use super::wire::{Wire, go};
use crate::support::http::Server;

/// Returns a delta in short: its kind and its text.
///
/// `T` is text, `R` reasoning, `S` a signature, `C` a call, `B` a bad call, `N` the last word of a notice. `U` is usage: input
/// and output, then what was read from the cache and written to it, and the cost if the server says it.
fn in_short(delta: &Result<Delta, Fault>) -> (&'static str, String) {
    let none = String::new;
    match delta {
        Ok(Delta::Text(text)) => ("T", text.clone()),
        Ok(Delta::Reasoning(text)) => ("R", text.replace('\n', "\\n")),
        Ok(Delta::Signature(kept)) => ("S", kept.rsplit('|').next().unwrap_or("").to_owned()),
        Ok(Delta::Call(call)) => {
            let signature = call
                .signature
                .as_deref()
                .map_or("", |it| it.rsplit('|').next().unwrap_or(""));
            let (id, name, arguments) = (&call.id, &call.name, &call.arguments);
            ("C", format!("{id} {name}{arguments}{signature}"))
        }
        Ok(Delta::BadCall { call, .. }) => ("B", call.id.clone()),
        Ok(Delta::Notice(text)) => ("N", text.rsplit(' ').next().unwrap_or("").to_owned()),
        Ok(Delta::Usage(usage)) => {
            let (input, output) = (usage.input, usage.output);
            let cache = format!("{}/{}", usage.cached, usage.written);
            let cost = usage
                .cost
                .map_or(String::new(), |it| format!(" ${}", it.dollars()));
            ("U", format!("{input}+{output} {cache}{cost}"))
        }
        Ok(Delta::Stop(Stop::Done)) => ("done", none()),
        Ok(Delta::Stop(Stop::Length)) => ("length", none()),
        Ok(Delta::Stop(Stop::Refused)) => ("refused", none()),
        Err(Fault::Malformed { detail }) => ("malformed", detail.clone()),
        Err(Fault::Cut) => ("cut", none()),
        Err(Fault::RateLimited { .. }) => ("slow down", none()),
        Err(Fault::Server { status, .. }) => ("server", status.to_string()),
        Err(other) => ("fault", other.to_string()),
    }
}

/// Returns an answer in short. The pieces of a text are joined.
fn all_in_short(deltas: &[Result<Delta, Fault>]) -> String {
    let mut parts: Vec<(&str, String)> = Vec::new();
    for (kind, text) in deltas.iter().map(in_short) {
        match parts.last_mut() {
            Some((last, whole)) if *last == kind && matches!(kind, "T" | "R") => {
                whole.push_str(&text);
            }
            _ => parts.push((kind, text)),
        }
    }
    let parts = parts.iter().map(|(kind, text)| match text.is_empty() {
        true => (*kind).to_owned(),
        false => format!("{kind}:{text}"),
    });
    parts.collect::<Vec<_>>().join(" | ")
}

/// The least number of streams of each protocol.
const ROWS: usize = 25;

async fn check(wire: Wire, streams: &str) {
    let (mut rows, mut wrong) = (0, Vec::new());
    for row in streams.split("\n# ").skip(1) {
        let (name, rest) = row.split_once('\n').expect("a name");
        let (frames, expected) = rest.split_once("=> ").expect("what it comes to");
        let end = if wire == Wire::Ollama { "\n" } else { "\n\n" };
        let frames = frames
            .lines()
            .map(|line| format!("{line}{end}").into_bytes());
        let server = Server::always(wire.reply(frames.collect()));
        let provider = wire.connect(&server, STALL_TIMEOUT);
        let deltas = go(provider.as_ref()).await;
        let (found, expected) = (all_in_short(&deltas), expected.trim());
        if found != expected {
            wrong.push(format!("{name}\n  expected {expected}\n  found    {found}"));
        }
        rows += 1;
    }
    assert!(wrong.is_empty(), "{wire:?}:\n{}", wrong.join("\n"));
    assert!(rows >= ROWS, "{wire:?}: {rows} streams");
}

#[tokio::test]
async fn chat_completions() {
    check(Wire::OpenAi, include_str!("dialects/chat_completions.txt")).await;
}

#[tokio::test]
async fn openrouter() {
    check(Wire::OpenRouter, include_str!("dialects/openrouter.txt")).await;
}

#[tokio::test]
async fn responses() {
    check(Wire::Responses, include_str!("dialects/responses.txt")).await;
}

#[tokio::test]
async fn anthropic() {
    check(Wire::Anthropic, include_str!("dialects/anthropic.txt")).await;
}

#[tokio::test]
async fn gemini() {
    check(Wire::Gemini, include_str!("dialects/gemini.txt")).await;
}

#[tokio::test]
async fn ollama() {
    check(Wire::Ollama, include_str!("dialects/ollama.txt")).await;
}
