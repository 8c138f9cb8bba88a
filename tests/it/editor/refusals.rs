//! A long chat with a server that refuses at random: for the form, for the length, for a call or a picture, and for no reason.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use fastrand::Rng;
use serde_json::{Value, json};

use super::scene::Scene;
use crate::llm::strict::refused_by_mistral;
use crate::llm::wire::Wire;
use crate::support::http::{Request, Response, Server};
use crate::support::{cases, random};

const TURNS: usize = 200;
/// The longest request that the server takes. It says of its model what is not true.
const MOST_BYTES: usize = 70_000;
const WINDOW: u64 = 60_000;

/// A server with a mind of its own.
struct Moody {
    chance: Rng,
    /// The requests that it refused with 400, 413 or 422.
    refused: HashSet<Vec<u8>>,
    /// The ids of calls, and pictures, that it does not take any more.
    hated: HashSet<String>,
    hates_pictures: bool,
    /// The number of refusals by kind.
    kinds: HashMap<&'static str, usize>,
    calls: usize,
    calm: bool,
    /// The messages of the last request that it took.
    taken: Vec<Value>,
    /// The requests that did not begin like the one before.
    breaks: usize,
    /// The faults that must not occur.
    wrongs: Vec<String>,
}

impl Moody {
    fn new(seed: u64) -> Self {
        Self {
            chance: random(seed),
            refused: HashSet::new(),
            hated: HashSet::new(),
            hates_pictures: false,
            kinds: HashMap::new(),
            calls: 0,
            calm: false,
            taken: Vec::new(),
            breaks: 0,
            wrongs: Vec::new(),
        }
    }

    fn answer(&mut self, request: &Request) -> Response {
        if self.refused.contains(&request.bytes) {
            self.wrongs.push("a refused request came again".to_owned());
        }
        if let Some(words) = refused_by_mistral(&request.body) {
            self.wrongs.push(format!("{words}: {}", request.body));
        }
        match self.refusal(request) {
            Some((kind, status, response)) => {
                *self.kinds.entry(kind).or_default() += 1;
                if status != 500 {
                    self.refused.insert(request.bytes.clone());
                }
                response
            }
            None => self.take(request),
        }
    }

    fn refusal(&mut self, request: &Request) -> Option<(&'static str, u16, Response)> {
        let text = String::from_utf8_lossy(&request.bytes);
        if request.bytes.len() > MOST_BYTES {
            let (status, response) = self.too_long();
            return Some(("length", status, response));
        }
        if self.hates_pictures && text.contains("data:image/") {
            return Some(("picture", 422, error(422, "cannot load the image")));
        }
        if let Some(id) = ids(&request.body).find(|id| self.hated.contains(id)) {
            return Some((
                "call",
                400,
                error(400, &format!("tool call {id} is not valid")),
            ));
        }
        if self.calm {
            return None;
        }
        match self.chance.u8(..20) {
            0 => Some(("no reason", 400, error(400, "invalid_request_error"))),
            1 => Some((
                "no reason",
                422,
                Response::json(
                    422,
                    &json!({"detail": [{"msg": "value error", "input": null}]}),
                ),
            )),
            2 => {
                let raw = error_body("messages: something is wrong").to_string();
                let body = json!({"error": {"message": "Provider returned error", "metadata": {"raw": raw}}});
                Some(("no reason", 400, Response::json(400, &body)))
            }
            3 => Some((
                "bytes",
                413,
                Response::new(413, "text/html", vec!["<html>413</html>".into()]),
            )),
            4 => {
                let all: Vec<String> = ids(&request.body).collect();
                let id = self.chance.choice(all)?;
                self.hated.insert(id.clone());
                Some((
                    "call",
                    400,
                    error(400, &format!("tool call {id} is not valid")),
                ))
            }
            5 if text.contains("data:image/") => {
                self.hates_pictures = true;
                Some(("picture", 422, error(422, "cannot load the image")))
            }
            _ => None,
        }
    }

    /// Returns a refusal for the length, in one of the ways of the servers, or in words that co does not know.
    fn too_long(&mut self) -> (u16, Response) {
        let (status, words) = *self
            .chance
            .choice(&[
                (400, "The number of tokens to keep from the initial prompt is greater than the context length"),
                (400, "prompt is too long: 210000 tokens > 200000 maximum"),
                (400, "bad request"),
                (413, "too much"),
                (422, "no"),
                (500, "litellm.ContextWindowExceededError: too long"),
                (500, "out of memory"),
            ])
            .unwrap();
        (status, error(status, words))
    }

    fn take(&mut self, request: &Request) -> Response {
        let messages = request.body["messages"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let is_summary = request
            .last("user")
            .is_some_and(|it| it.contains("Sum up our chat"));
        if !is_summary {
            self.breaks += usize::from(!messages.starts_with(&self.taken));
            self.taken = messages;
        }
        if is_summary {
            return Wire::OpenAi.says("In short: nothing much.");
        }
        self.calls += 1;
        let id = self.calls;
        let call = |id: &str, index: usize, name: &str| {
            json!({"index": index, "id": id, "type": "function",
                   "function": {"name": name, "arguments": json!({"cmd": format!("echo {index}")}).to_string()}})
        };
        let shell = "run_shell_command";
        match self.chance.u8(..12) {
            0 => calls(vec![call(&format!("c{id}"), 0, shell)]),
            1 => calls(vec![
                call(&format!("a:{id}"), 0, shell),
                call(&format!("a_{id}"), 1, shell),
            ]),
            2 => calls(vec![call("same", 0, shell), call("same", 1, shell)]),
            3 => calls(vec![call(&"long".repeat(30), 0, shell)]),
            4 => calls(vec![call("", 0, "run_shell_command<|channel|>commentary")]),
            5 => calls(vec![call(&format!("c{id}"), 0, &"n".repeat(200))]),
            6 => Wire::OpenAi.says("<tool_call>{\"name\": \"run_shell_command\"}</tool_call>"),
            _ => Wire::OpenAi.says(&"A rather long answer. ".repeat(self.chance.usize(1..400))),
        }
    }
}

fn error_body(words: &str) -> Value {
    json!({"error": {"message": words}})
}

fn error(status: u16, words: &str) -> Response {
    Response::json(status, &error_body(words))
}

/// Returns the ids of the calls in a request.
fn ids(body: &Value) -> impl Iterator<Item = String> {
    let messages = body["messages"].as_array().into_iter().flatten();
    let calls = messages.flat_map(|it| it["tool_calls"].as_array().into_iter().flatten());
    calls.filter_map(|call| call["id"].as_str().map(str::to_owned))
}

fn calls(calls: Vec<Value>) -> Response {
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        Wire::OpenAi.frame(&json!({"id": "c", "choices": [choice]}))
    };
    Wire::OpenAi.reply(vec![
        chunk(json!({ "tool_calls": calls }), Value::Null),
        chunk(json!({}), json!("tool_calls")),
    ])
}

/// Starts the server.
fn serve(moody: &Arc<Mutex<Moody>>) -> Server {
    let moody = Arc::clone(moody);
    Server::start(move |request, _| match request.method.as_str() {
        "GET" => {
            let model = json!({"id": "devstral-small", "context_length": WINDOW});
            Response::json(200, &json!({ "data": [model] }))
        }
        _ => moody.lock().unwrap().answer(request),
    })
}

/// A PNG of one pixel.
fn png() -> Vec<u8> {
    const DATA: &str = "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082";
    let byte = |at| u8::from_str_radix(&DATA[at..at + 2], 16).unwrap();
    (0..DATA.len()).step_by(2).map(byte).collect()
}

/// Types what a person might, and returns whether the turn that follows is answered.
fn take_turn(scene: &Scene, chance: &mut Rng, turn: usize, failed: bool) -> bool {
    match (failed, chance.u8(..12)) {
        (true, 0..4) => scene.co("/retry"),
        (true, 4..6) => scene.co("/compact"),
        (_, 6) => scene.co(&format!("look at @file:a.png, turn {turn}")),
        (_, 7) => scene.co(&format!("{} turn {turn}", "a longer question ".repeat(200))),
        _ => scene.co(&format!("go on, turn {turn}")),
    }
    scene.wait_turns(turn as u64);
    let items = scene.items();
    let end = items.iter().rfind(|item| item["item"] == "end").unwrap();
    end["reason"] == "done"
}

#[test]
fn a_chat_goes_on_whatever_the_server_refuses() {
    let turns = cases(TURNS);
    let moody = Arc::new(Mutex::new(Moody::new(54)));
    let server = serve(&moody);
    let scene = Scene::with(
        json!({ "base_url": format!("{}/v1", server.url()), "model": "devstral-small", "images": true,
                "auto_confirm": true }),
        &[],
    );
    std::fs::write(scene.workspace.path().join("a.png"), png()).unwrap();
    let mut chance = random(moody.lock().unwrap().chance.u64(..));
    let (mut answered, mut told, mut failed) = (0, 0, false);
    for turn in 1..=turns {
        failed = !take_turn(&scene, &mut chance, turn, failed);
        answered += usize::from(!failed);
        if failed {
            told += 1;
            let chat = scene.chat();
            assert_eq!(chat.matches("/rewind").count(), told, "turn {turn}: {chat}");
        }
        let wrongs = &moody.lock().unwrap().wrongs;
        assert!(wrongs.is_empty(), "turn {turn}: {wrongs:#?}");
    }
    moody.lock().unwrap().calm = true;
    assert!(
        take_turn(&scene, &mut chance, turns + 1, false),
        "{}",
        scene.chat()
    );
    let moody = moody.lock().unwrap();
    eprintln!(
        "{answered} of {turns} turns were answered; refusals: {:?}; {} breaks",
        moody.kinds, moody.breaks
    );
    assert!(answered * 10 > turns * 8, "{answered} of {turns}");
    for kind in ["length", "picture", "call", "bytes", "no reason"] {
        assert!(moody.kinds.contains_key(kind), "{kind}: {:?}", moody.kinds);
    }
    let chat = scene.chat();
    let announced = [
        "summed up",
        "only parts of older",
        "in a reduced form",
        "asked again",
    ];
    let announced: usize = announced.iter().map(|it| chat.matches(it).count()).sum();
    assert!(
        moody.breaks <= announced,
        "{} breaks, {announced} announced",
        moody.breaks
    );
}
