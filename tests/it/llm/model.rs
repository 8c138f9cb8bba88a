//! A real model behind a real server.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use co_llm::transcript::{Call, Item, Outcome};
use co_llm::{Delta, Fault, ProviderSettings, Stop};

use super::wire::{ask, request, text, user};

/// The server ends when its standard input closes, so it cannot outlive the test.
struct Model {
    child: Child,
    url: String,
}

impl Model {
    fn start() -> Self {
        let program = |name: &str| {
            std::env::var(name)
                .unwrap_or_else(|_| panic!("{name} is not set: run the tests with make test"))
        };
        let mut child = Command::new(program("CO_TEST_MODEL_PYTHON"))
            .arg(program("CO_TEST_MODEL_SCRIPT"))
            .arg("0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the model's server starts");
        let stdout = child.stdout.take().expect("it is piped");
        let url = BufReader::new(stdout)
            .lines()
            .map_while(Result::ok)
            .find(|line| line.starts_with("http://"))
            .expect("the model's server prints its address");
        Self { child, url }
    }

    fn settings(&self, provider: &str) -> ProviderSettings {
        ProviderSettings {
            provider: Some(provider.into()),
            base_url: Some(self.url.clone()),
            extra_body: Some(serde_json::json!({"temperature": 0})),
            max_output_tokens: Some(64),
            ..ProviderSettings::default()
        }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// The tool under the name the model was taught.
fn shell(items: Vec<Item>) -> co_llm::ModelRequest {
    let mut request = request(items);
    let mut tools = request.tools.to_vec();
    tools[0].name = "run_shell_command".into();
    request.tools = tools.into();
    request
}

fn call(deltas: &[Result<Delta, Fault>]) -> Call {
    deltas
        .iter()
        .find_map(|delta| match delta {
            Ok(Delta::Call(call)) => Some(call.clone()),
            _ => None,
        })
        .unwrap_or_else(|| panic!("no call in {deltas:?}"))
}

/// One server for all of it: two at once would take each other's time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_found_calls_answers_and_stops_over_both_wire_formats() {
    let model = tokio::task::spawn_blocking(Model::start).await.unwrap();
    for provider in ["openai", "anthropic"] {
        makes_a_file_and_says_so(&model.settings(provider)).await;
    }
    stops_at_the_limit(&model.settings("openai")).await;
}

async fn makes_a_file_and_says_so(settings: &ProviderSettings) {
    let provider = co_llm::make_provider(settings, &|_| None).expect("a provider");
    let mut items = vec![user("create the file notes.txt with touch notes.txt")];
    let first = ask(provider.as_ref(), shell(items.clone())).await;
    let made = call(&first);
    assert_eq!(made.name, "run_shell_command");
    assert_eq!(made.arguments["cmd"], "touch notes.txt");
    let counted = first
        .iter()
        .any(|delta| matches!(delta, Ok(Delta::Usage(usage)) if usage.input > 0));
    assert!(counted, "{first:?}");
    let outcome = Outcome {
        call: made.id.clone(),
        text: "(no output)".into(),
        ok: true,
        spill: None,
        hidden: 0,
        shown: None,
    };
    items.extend([Item::Call(made), Item::Outcome(outcome)]);
    let second = ask(provider.as_ref(), shell(items)).await;
    assert!(!text(&second).trim().is_empty(), "{second:?}");
    assert_eq!(
        second.last(),
        Some(&Ok(Delta::Stop(Stop::Done))),
        "{second:?}"
    );
}

async fn stops_at_the_limit(settings: &ProviderSettings) {
    let settings = ProviderSettings {
        max_output_tokens: Some(3),
        ..settings.clone()
    };
    let provider = co_llm::make_provider(&settings, &|_| None).expect("a provider");
    let mut request = request(vec![user("tell me a long story")]);
    request.tools = std::sync::Arc::new([]);
    let deltas = ask(provider.as_ref(), request).await;
    assert_eq!(
        deltas.last(),
        Some(&Ok(Delta::Stop(Stop::Length))),
        "{deltas:?}"
    );
}
