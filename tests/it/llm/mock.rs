//! Another program's idea of the five wire formats, which refuses what it does not expect.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use co_llm::transcript::{Call, Item};
use co_llm::{
    AnswerBuilder, Delta, Fault, ModelRequest, Provider, ProviderSettings, STALL_TIMEOUT, Stop,
};
use serde_json::{Value, json};

use super::wire::{WIRES, Wire, ask, key, outcome, request, text, user};

/// The program, on a port of its own.
pub(crate) struct Mock {
    child: Child,
    url: String,
    _fixtures: tempfile::TempDir,
}

impl Mock {
    pub(crate) fn start(fixtures: &Value) -> Self {
        let program = |name: &str| {
            std::env::var(name)
                .unwrap_or_else(|_| panic!("{name} is not set: run the tests with make test"))
        };
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("fixtures.json");
        std::fs::write(&path, json!({ "fixtures": fixtures }).to_string()).expect("it is written");
        let mut child = Command::new(program("CO_TEST_NODE"))
            .arg(program("CO_TEST_AIMOCK"))
            .args(["-p", "0", "--strict", "-f"])
            .arg(&path)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the mock starts");
        let stdout = child.stdout.take().expect("it is piped");
        let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
        let url = lines
            .find_map(|line| Some(line.split_once("listening on ")?.1.to_owned()))
            .expect("the mock prints its address");
        // It must never wait for a reader of what it logs.
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            child,
            url,
            _fixtures: directory,
        }
    }

    pub(crate) fn connect(&self, wire: Wire) -> Arc<dyn Provider> {
        let mut settings: ProviderSettings = wire.settings(&self.url);
        if wire == Wire::Anthropic {
            settings.extra_body =
                Some(json!({"thinking": {"type": "enabled", "budget_tokens": 1024}}));
        }
        co_llm::make_provider_with(
            &settings,
            &key,
            STALL_TIMEOUT,
            co_llm::ServerMemory::default(),
        )
        .expect("a provider")
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The items of an answer.
fn items(deltas: &[Result<Delta, Fault>]) -> Vec<Item> {
    let mut answer = AnswerBuilder::new();
    let mut items: Vec<Item> = deltas
        .iter()
        .flatten()
        .flat_map(|delta| answer.push(delta))
        .collect();
    items.extend(answer.finish());
    items
}

fn succeeded(call: &Call) -> Item {
    outcome(&call.id, "exit 0", true)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_its_result_and_a_closing_word() {
    let mock = Mock::start(&json!([
        {"match": {"userMessage": "job 1 (make) ended"}, "response": {"content": "So it ended."}},
        {"match": {"userMessage": "make it", "hasToolResult": true},
         "response": {"content": "The folder is there."}},
        {"match": {"userMessage": "make it"},
         "response": {"reasoning": "A folder, then.",
                      "toolCalls": [{"name": "run", "arguments": "{\"cmd\":\"mkdir out\"}"}]}},
    ]));
    for wire in WIRES {
        let provider = mock.connect(wire);
        let mut said = vec![user("make it")];
        let first = ask(provider.as_ref(), request(said.clone())).await;
        said.extend(items(&first));
        let thought =
            |item: &Item| matches!(item, Item::Reasoning { text, .. } if text == "A folder, then.");
        assert!(said.iter().any(thought), "{wire:?}: {first:?}");
        let Some(Item::Call(call)) = said.last().cloned() else {
            panic!("{wire:?}: no call at the end of {first:?}");
        };
        assert_eq!(call.arguments, json!({"cmd": "mkdir out"}), "{wire:?}");
        said.push(succeeded(&call));
        let second = ask(provider.as_ref(), request(said.clone())).await;
        assert_eq!(
            text(&second),
            "The folder is there.",
            "{wire:?}: {second:?}"
        );
        assert_eq!(
            second.last(),
            Some(&Ok(Delta::Stop(Stop::Done))),
            "{wire:?}"
        );
        // The news of a job comes between a call's result and the next answer.
        said.push(Item::JobEnded {
            job: 1,
            text: "job 1 (make) ended: exit 1".into(),
            told: false,
        });
        let third = ask(provider.as_ref(), request(said)).await;
        assert_eq!(text(&third), "So it ended.", "{wire:?}: {third:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_calls_at_once_then_an_answer_without_calls_at_each_effort() {
    let run = |cmd: &str| json!({"name": "run", "arguments": json!({ "cmd": cmd }).to_string()});
    let mock = Mock::start(&json!([
        {"match": {"userMessage": "both", "hasToolResult": true}, "response": {"content": "Both."}},
        {"match": {"userMessage": "both"},
         "response": {"reasoning": "Two, then.", "toolCalls": [run("ls"), run("pwd")]}},
    ]));
    for wire in WIRES {
        for effort in ["none", "low", "max"] {
            let mut settings = wire.settings(&mock.url);
            settings.effort = effort.parse().ok();
            if wire == Wire::Anthropic {
                // One with a budget for its thoughts: aimock demands them before the calls then.
                settings.model = Some("claude-sonnet-4-5".into());
            }
            let provider = co_llm::make_provider(&settings, &key).expect("a provider");
            let mut said = vec![user("both")];
            let first = ask(provider.as_ref(), request(said.clone())).await;
            said.extend(items(&first));
            let calls: Vec<Call> = said.iter().filter_map(call).cloned().collect();
            let commands = calls.iter().map(|call| &call.arguments["cmd"]);
            assert_eq!(
                Vec::from_iter(commands),
                ["ls", "pwd"],
                "{wire:?}: {first:?}"
            );
            said.extend(calls.iter().map(succeeded));
            let last = ModelRequest {
                may_call: false,
                ..request(said)
            };
            let second = ask(provider.as_ref(), last).await;
            assert_eq!(text(&second), "Both.", "{wire:?} {effort}: {second:?}");
        }
    }
}

fn call(item: &Item) -> Option<&Call> {
    match item {
        Item::Call(call) => Some(call),
        _ => None,
    }
}
