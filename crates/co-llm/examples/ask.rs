//! Sends one prompt to a model and prints the answer as it arrives.
//!
//! `cargo run -p co-llm --features scripted --example ask -- PROMPT [PROVIDER [MODEL [BASE_URL]]]`
//!
//! Without a provider, a scripted provider answers, so the example needs no network and no key.

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use co_llm::scripted::Scripted;
use co_llm::transcript::Item;
use co_llm::{AnswerBuilder, Delta, ModelRequest, Provider, ProviderSettings, make_provider};
use futures::StreamExt;

#[tokio::main]
async fn main() -> ExitCode {
    match ask().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _written = writeln!(std::io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

async fn ask() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let prompt = arguments.next().ok_or("the first argument is the prompt")?;
    let provider: Arc<dyn Provider> = match arguments.next() {
        None => Scripted::new([Scripted::says("This answer comes from a script.")]),
        name => {
            let settings = ProviderSettings {
                provider: name,
                model: arguments.next(),
                base_url: arguments.next(),
                ..ProviderSettings::default()
            };
            make_provider(&settings, &|variable| std::env::var(variable).ok())?
        }
    };
    let request = ModelRequest {
        system: "Answer in one sentence.".to_owned(),
        items: Arc::new([Item::user(prompt)]),
        tools: Arc::new([]),
        may_call: false,
        cache_key: None,
        room: None,
    };
    let mut out = std::io::stdout().lock();
    let mut answer = AnswerBuilder::new();
    let mut items = Vec::new();
    let mut deltas = provider.stream(request).await?;
    while let Some(delta) = deltas.next().await {
        let delta = delta?;
        if let Delta::Text(text) = &delta {
            out.write_all(text.as_bytes())?;
            out.flush()?;
        }
        items.extend(answer.push(&delta));
    }
    // A transcript holds these items. With them, the next request continues the chat.
    writeln!(out, "\n[{}: {} item(s)]", provider.label(), items.len())?;
    Ok(())
}
