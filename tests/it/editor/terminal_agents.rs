//! Agents in terminals of Neovim, which call co's tools by `co-nvim mcp`.

use std::process::Stdio;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::rename;
use super::scene::Scene;
use crate::support::BACKEND;
use co_mcp::{AnswerPart, ClientName, ServerConnection, ToolAnswer, call_events};

/// An agent that has started `co-nvim mcp`.
struct Agent {
    runtime: Runtime,
    connection: Arc<ServerConnection>,
    server: Child,
}

/// A call that waits for its result.
type OpenCall = JoinHandle<(String, bool)>;

impl Agent {
    /// Starts `co-nvim mcp` in the workspace of a scene, as an agent in a terminal of its Neovim does.
    fn start(scene: &Scene, name: &'static str) -> Self {
        let address = scene.lua("return vim.v.servername", json!([]));
        Self::start_at(scene, name, address.as_str())
    }

    fn start_at(scene: &Scene, name: &'static str, address: Option<&str>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let (connection, server) = runtime.block_on(async {
            let mut command = Command::new(BACKEND);
            command.arg("mcp").current_dir(scene.workspace.path());
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            for variable in ["NVIM", "CO_TOOLS_PORT", "CO_TOOLS_TOKEN"] {
                command.env_remove(variable);
            }
            command.envs(address.map(|address| ("NVIM", address)));
            let mut server = command.kill_on_drop(true).spawn().unwrap();
            let (output, input) = (server.stdout.take().unwrap(), server.stdin.take().unwrap());
            let client = ClientName { name, version: "1" };
            let connection = ServerConnection::open(output, input, client).await.unwrap();
            (connection, server)
        });
        Self {
            runtime,
            connection: Arc::new(connection),
            server,
        }
    }

    fn tools(&self) -> Vec<String> {
        let (tools, _) = self.runtime.block_on(self.connection.tools()).unwrap();
        tools.into_iter().map(|it| it.name).collect()
    }

    /// Begins a call.
    fn begin(&self, tool: &'static str, arguments: Value) -> OpenCall {
        let connection = Arc::clone(&self.connection);
        let arguments = arguments.as_object().unwrap().clone();
        self.runtime.spawn(async move {
            let answer = connection.call(tool, arguments, call_events().0).await;
            text(answer.unwrap())
        })
    }

    /// Returns the result of a call, and whether it failed.
    fn end(&self, call: OpenCall) -> (String, bool) {
        self.runtime.block_on(call).unwrap()
    }

    /// Asks what is open in the editor.
    fn look(&self) -> (String, bool) {
        self.end(self.begin_look())
    }

    fn begin_look(&self) -> OpenCall {
        self.begin("editor_context", json!({ "what": "state" }))
    }

    /// Checks that a call fails with these words.
    #[track_caller]
    fn assert_refused(&self, words: &str) {
        let (said, failed) = self.look();
        assert!(failed && said.contains(words), "{words}: {said}");
    }
}

fn text(answer: ToolAnswer) -> (String, bool) {
    match answer.parts.as_slice() {
        [AnswerPart::Text(text)] => (text.clone(), answer.is_error),
        other => panic!("{other:?}"),
    }
}

/// A scene with a file that is open.
fn scene() -> Scene {
    let scene = Scene::new();
    scene.workspace.write("a.txt", "a name\n");
    scene.workspace.write(".env", "TOKEN=hunter2-token\n");
    scene.command("edit a.txt");
    scene
}

#[test]
fn an_agent_sees_what_the_person_allows_once() {
    let scene = scene();
    scene.command("edit .env");
    scene.command("call setqflist([#{filename: 'a.txt', lnum: 1, text: 'hunter2-token'}])");
    scene.command("edit a.txt");
    let agent = Agent::start(&scene, "claude-code");
    assert_eq!(agent.tools(), ["editor_context", "rename_symbol"]);
    let call = agent.begin_look();
    let asked = scene
        .answer_text("Let claude-code, in a terminal, use co", "y")
        .join("\n");
    assert!(asked.contains("open files, cursor"), "{asked}");
    let (said, failed) = agent.end(call);
    assert!(said.contains("a.txt") && !failed, "{said}");
    assert!(!said.contains(".env"), "{said}");
    let list = agent.begin("editor_context", json!({ "what": "quickfix" }));
    let (said, _) = agent.end(list);
    assert!(said.contains("[redacted: secret value]"), "{said}");
    // Another run of it is not asked about again, and another program is.
    let again = Agent::start(&scene, "claude-code");
    assert!(!again.look().1);
    let other = Agent::start(&scene, "codex");
    let call = other.begin_look();
    scene.wait_text("Let codex, in a terminal, use co");
    scene.answer("n");
    let (said, failed) = other.end(call);
    assert!(
        failed && said.contains("the person does not let you"),
        "{said}"
    );
    other.assert_refused("the person does not let you");
    scene.wait_no_text("Let codex, in a terminal, use co");
    let again = Agent::start(&scene, "codex");
    let call = again.begin_look();
    scene.answer_text("Let codex, in a terminal, use co", "y");
    assert!(!again.end(call).1);
    let odd = again.begin("run_shell_command", json!({ "cmd": "true" }));
    assert!(again.end(odd).1);
}

#[test]
fn a_rename_asks_each_time() {
    let scene = scene();
    scene.command(&rename::server(&["a.txt"]));
    let agent = Agent::start(&scene, "claude-code");
    let rename = json!({ "path": "a.txt", "name": "name", "new_name": "other" });
    let call = agent.begin("rename_symbol", rename.clone());
    scene.answer_text("Let claude-code, in a terminal, use co", "y");
    let asked = scene.answer_text("rename_symbol", "n").join("\n");
    assert!(asked.contains("claude-code"), "{asked}");
    let (said, failed) = agent.end(call);
    assert!(failed && said.contains("User denied"), "{said}");
    scene.wait_no_text("rename_symbol");
    let call = agent.begin("rename_symbol", rename);
    scene.answer_text("rename_symbol", "y");
    let (said, failed) = agent.end(call);
    assert!(!failed && said.contains("Done"), "{said}");
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "a other\n");
}

#[test]
fn a_question_goes_with_its_agent() {
    let scene = scene();
    let mut agent = Agent::start(&scene, "claude-code");
    let _call = agent.begin_look();
    scene.wait_text("Let claude-code, in a terminal, use co");
    agent.server.start_kill().unwrap();
    scene.wait_no_text("Let claude-code, in a terminal, use co");
}

#[test]
fn each_failure_is_one_sentence() {
    let scene = scene();
    let agent = Agent::start(&scene, "claude-code");
    scene.command("lua require('co.version').protocol = 7");
    agent.assert_refused("and the plugin co in Neovim 7");
    for (error, told) in [
        ("half a file", "failed ("),
        (
            "module \\'co.backend.agent_calls\\' not found:",
            "is older than this co-nvim",
        ),
    ] {
        scene.command("lua package.loaded['co.backend.agent_calls'] = nil");
        scene.command(&format!(
            "lua package.preload['co.backend.agent_calls'] = function() error('{error}') end"
        ));
        agent.assert_refused(told);
    }
    let outside = Agent::start_at(&scene, "claude-code", None);
    assert_eq!(outside.tools(), Vec::<String>::new());
    outside.assert_refused("the variable NVIM is not set");
    let gone = Agent::start_at(&scene, "claude-code", Some("/nowhere/nvim.0"));
    gone.assert_refused("was closed. Its address /nowhere/nvim.0 cannot be reached");
}

#[test]
fn a_neovim_without_a_backend_says_so() {
    let scene = Scene::with(json!({ "bin": "/nowhere/co-nvim" }), &[]);
    let agent = Agent::start(&scene, "claude-code");
    agent.assert_refused("the backend of co does not run in Neovim");
}

#[test]
fn a_neovim_that_ends_ends_its_calls() {
    let mut scene = scene();
    let agent = Agent::start(&scene, "claude-code");
    let call = agent.begin_look();
    scene.wait_text("Let claude-code, in a terminal, use co");
    scene.kill9();
    let (said, failed) = agent.end(call);
    assert!(failed && said.contains("was closed"), "{said}");
    agent.assert_refused("was closed");
}
