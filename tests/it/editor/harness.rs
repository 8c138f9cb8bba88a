//! That what the other tests lean on holds.

use std::io::{Read, Write};
use std::path::Path;

use serde_json::{Value, json};

use crate::support::http::{Gate, Reply, Server};
use crate::support::model::{self, Model};
use crate::support::nvim::{Nvim, Options};
use crate::support::workspace::Workspace;
use crate::support::{BACKEND, DEADLINE, ROOT, proc};

fn bare() -> Nvim {
    Nvim::start(Options {
        size: (60, 12),
        plugin: false,
        ..Options::default()
    })
}

#[test]
fn typed_keys_reach_the_screen_and_the_buffer() {
    let nvim = bare();
    nvim.type_keys("ihallo <lt>Welt>, 漢字<Esc>");
    let lines = nvim.wait_text("hallo <Welt>, 漢字");
    assert_eq!(lines[0], "hallo <Welt>, 漢字");
    assert_eq!(lines[1], "~");
    assert_eq!(lines.len(), 12);
    assert_eq!(nvim.buffer_text("").as_deref(), Some("hallo <Welt>, 漢字"));
    assert_eq!(nvim.buffer_text("co://none"), None);
    nvim.wait_screen(
        |_| nvim.cursor() == (0, 16),
        "the cursor on the last character",
    );
}

#[test]
fn many_keys_all_arrive() {
    let nvim = bare();
    let text = "0123456789<CR>".repeat(1000);
    nvim.type_keys(&format!("i{text}<Esc>"));
    nvim.wait_for("vim.fn.line('$') == 1001", "all lines");
    nvim.wait_mode("n");
}

#[test]
fn floats_scrolling_and_highlights_are_on_the_screen() {
    let nvim = bare();
    let numbers: Vec<String> = (1..=50).map(|n| format!("line {n}")).collect();
    nvim.lua(
        "vim.api.nvim_buf_set_lines(0, 0, -1, false, ...)",
        json!([numbers]),
    );
    nvim.wait_screen(|lines| lines[0] == "line 1", "the lines");
    nvim.type_keys("5<C-e>");
    let lines = nvim.wait_screen(|lines| lines[0] == "line 6", "five lines less");
    assert_eq!(lines[8], "line 14");
    let open = "local buffer = vim.api.nvim_create_buf(false, true)
        vim.api.nvim_buf_set_lines(buffer, 0, -1, false, { 'may I?' })
        vim.api.nvim_open_win(buffer, false, { relative = 'editor', row = 2, col = 20, width = 10,
            height = 1, border = 'single' })
        return vim.api.nvim_get_current_buf()";
    assert_eq!(nvim.lua(open, json!([])), 1);
    let lines = nvim.wait_text("│may I?    │");
    assert_eq!(lines[3], "line 9              │may I?    │");
    let groups = nvim.groups("may I?").unwrap();
    assert!(
        groups.iter().any(|group| group == "NormalFloat"),
        "{groups:?}"
    );
    assert_eq!(nvim.groups("nowhere"), None);
}

#[test]
fn the_screen_follows_its_size() {
    let nvim = bare();
    nvim.resize(80, 20);
    assert_eq!(nvim.screen().len(), 20);
    assert_eq!(
        nvim.lua("return { vim.o.columns, vim.o.lines }", json!([])),
        json!([80, 20])
    );
    nvim.resize(40, 8);
    assert_eq!(nvim.screen().len(), 8);
}

#[test]
fn the_mode_is_told_even_while_neovim_waits() {
    let nvim = bare();
    assert_eq!(nvim.mode().name, "n");
    nvim.type_keys("i");
    nvim.wait_mode("i");
    nvim.type_keys("<Esc>r");
    proc::wait_until(DEADLINE, "Neovim to wait for a key", || {
        nvim.mode().blocking.then_some(())
    });
    nvim.type_keys("<Esc>");
    nvim.wait_mode("n");
    nvim.wait_for("true", "an answer");
}

#[test]
fn settings_and_the_plugin_are_there_before_start_up_ends() {
    let nvim = Nvim::start(Options {
        settings: json!({ "max_steps": 3, "deny": ["git push"] }),
        env: vec![("EXTRA".into(), "yes".into())],
        args: vec!["one.txt".into()],
        ..Options::default()
    });
    assert_eq!(
        nvim.lua("return vim.g.co", json!([])),
        json!({ "max_steps": 3, "deny": ["git push"], "bin": BACKEND })
    );
    let first = nvim.lua("return vim.opt.runtimepath:get()[1]", json!([]));
    assert_eq!(first, ROOT);
    assert_eq!(nvim.lua("return vim.env.EXTRA", json!([])), "yes");
    assert_eq!(
        nvim.lua("return vim.fn.expand('%:t')", json!([])),
        "one.txt"
    );
}

#[test]
fn it_has_a_home_of_its_own() {
    let nvim = bare();
    let home = nvim.home().to_owned();
    for place in ["config", "data", "state", "cache", "run"] {
        let path = nvim.lua("return vim.fn.stdpath(...)", json!([place]));
        assert!(
            Path::new(path.as_str().unwrap()).starts_with(&home),
            "{place}: {path}"
        );
    }
    drop(nvim);
    assert!(!home.exists());
}

#[test]
fn a_home_can_outlive_its_neovim() {
    let home = tempfile::tempdir().unwrap();
    let start = || {
        Nvim::start(Options {
            plugin: false,
            home: Some(home.path().to_owned()),
            ..Options::default()
        })
    };
    start().command("call writefile(['kept'], stdpath('data') .. '-note')");
    let read = "return vim.fn.readfile(vim.fn.stdpath('data') .. '-note')";
    assert_eq!(start().lua(read, json!([])), json!(["kept"]));
}

#[test]
fn nothing_it_started_outlives_it() {
    let nvim = bare();
    nvim.lua(
        "vim.fn.jobstart({ 'sh', '-c', 'setsid sleep 300 & sleep 300' }, { detach = true })",
        json!([]),
    );
    let two = || {
        let found = nvim.marked();
        // Neovim, sh and its two.
        (found.len() >= 4).then_some(found)
    };
    let marked = proc::wait_until(DEADLINE, "the jobs", two);
    assert!(nvim.descendants().len() >= 3);
    assert!(marked.iter().all(|pid| proc::alive(*pid)));
    drop(nvim);
    for pid in marked {
        proc::wait_until(DEADLINE, "the end of a job", || {
            (!proc::alive(pid)).then_some(())
        });
    }
}

#[test]
fn it_can_crash_and_it_can_quit() {
    let mut nvim = bare();
    let pid = nvim.pid();
    nvim.kill9();
    assert!(!proc::alive(pid));
    let mut nvim = bare();
    nvim.type_keys(":3cq<CR>");
    assert_eq!(nvim.wait_exit().code(), Some(3));
}

#[test]
#[should_panic(expected = "nvim_exec_lua: ")]
fn an_error_of_lua_fails_the_test() {
    bare().lua("error('no')", json!([]));
}

#[test]
fn children_are_seen_and_the_dead_are_not_alive() {
    let me = i32::try_from(std::process::id()).unwrap();
    let mut child = std::process::Command::new("sleep")
        .arg("300")
        .spawn()
        .unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    assert!(proc::children(me).contains(&pid));
    assert!(proc::alive(pid));
    proc::kill9(pid);
    proc::wait_until(DEADLINE, "its end", || (!proc::alive(pid)).then_some(()));
    child.wait().unwrap();
    assert!(!proc::descendants(me).contains(&pid));
}

#[test]
fn the_backend_is_built() {
    assert!(Path::new(BACKEND).is_file());
}

#[test]
fn a_workspace_is_a_repository_without_the_persons_configuration() {
    let workspace = Workspace::new();
    workspace.write("src/a.rs", "fn a() {}\n");
    assert!(workspace.exists("src/a.rs") && !workspace.exists("b"));
    assert_eq!(workspace.read("src/a.rs").as_deref(), Some("fn a() {}\n"));
    workspace.commit("first");
    assert_eq!(workspace.git(&["log", "--format=%an %s"]), "Test first\n");
    assert_eq!(workspace.git(&["status", "--short"]), "");
    let real = workspace.path().canonicalize().unwrap();
    assert_eq!(workspace.path(), real);
}

/// Sends one request and reads all that comes back.
fn post(server: &Server, body: &Value) -> (std::net::TcpStream, String) {
    let url = server.url();
    let address = url.trim_start_matches("http://").trim_end_matches("/v1/");
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let body = body.to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nX-Test: Yes\r\ncontent-length: {}",
        body.len()
    );
    write!(stream, "{head}\r\n\r\n{body}").unwrap();
    (stream, head)
}

fn answer(server: &Server, body: &Value) -> String {
    let mut text = String::new();
    post(server, body).0.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn the_scripted_model_streams_what_it_was_told() {
    let server = Server::start();
    server.reply(
        Reply::text("He")
            .think("hm")
            .say("llo")
            .call_in_pieces("c1", "run", &["{\"a\"", ":1}"])
            .usage(7, 3),
    );
    let asked = json!({ "stream": true, "messages": [
        { "role": "user", "content": "one" }, { "role": "user", "content": [{ "type": "text", "text": "two" }] },
    ] });
    let text = answer(&server, &asked);
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    for part in [
        r#""content":"llo""#,
        r#""reasoning_content":"hm""#,
        r#""arguments":":1}""#,
        r#""finish_reason":"tool_calls""#,
        r#""prompt_tokens":7"#,
        "data: [DONE]",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(text.ends_with("0\r\n\r\n"));
    let requests = server.wait_requests(1);
    assert_eq!(requests[0].path, "/v1/chat/completions");
    assert_eq!(requests[0].header("x-test"), Some("Yes"));
    assert_eq!(requests[0].last("user").as_deref(), Some("two"));
    assert_eq!(requests[0].last("tool"), None);
    assert_eq!(server.left(), 0);
}

#[test]
fn the_scripted_model_answers_in_one_piece_too() {
    let server = Server::start();
    server.reply(Reply::shell("c1", "ls").finish("length"));
    let text = answer(&server, &json!({}));
    let body: Value = serde_json::from_str(text.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let call = &body["choices"][0]["message"]["tool_calls"][0]["function"];
    assert_eq!(
        *call,
        json!({ "name": "run_shell_command", "arguments": r#"{"cmd":"ls"}"# })
    );
    assert_eq!(body["choices"][0]["finish_reason"], "length");
}

#[test]
fn the_scripted_model_refuses_and_breaks_off() {
    let server = Server::start();
    server.reply(Reply::status(429, "slow down").header("retry-after", "5"));
    server.reply(Reply::text("half").raw(b"data: {\"cho").cut());
    let stream = json!({ "stream": true });
    let refused = answer(&server, &stream);
    assert!(
        refused.starts_with("HTTP/1.1 429") && refused.ends_with("slow down"),
        "{refused}"
    );
    assert!(refused.contains("retry-after: 5\r\n"), "{refused}");
    let cut = answer(&server, &stream);
    assert!(cut.ends_with("data: {\"cho\r\n"), "{cut}");
}

#[test]
fn the_scripted_model_waits_for_the_test_and_sees_a_hang_up() {
    let server = Server::start();
    let gate = Gate::default();
    server.reply(Reply::text("one").hold(&gate).say("two"));
    server.reply(Reply::text("one").hold(&Gate::default()));
    let (mut stream, _) = post(&server, &json!({ "stream": true }));
    let mut so_far = Vec::new();
    while !String::from_utf8_lossy(&so_far).contains("one") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        so_far.push(byte[0]);
    }
    gate.open();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("two") && rest.contains("[DONE]"), "{rest}");
    drop(post(&server, &json!({ "stream": true })));
    server.wait_hangups(1);
}

#[test]
#[should_panic(expected = "after the script's end")]
fn a_request_past_the_script_fails_the_test() {
    let server = Server::start();
    let text = answer(&server, &json!({}));
    assert!(text.starts_with("HTTP/1.1 418"), "{text}");
}

#[test]
fn a_model_ends_with_its_input() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("model.py");
    let text =
        "import sys\nprint('http://127.0.0.1:' + sys.argv[1], flush=True)\nsys.stdin.read()\n";
    std::fs::write(&script, text).unwrap();
    let model = Model::start(Path::new("python3"), &script);
    assert_eq!(model.address(), "http://127.0.0.1:0");
    let pid = model.pid();
    assert!(proc::alive(pid));
    drop(model);
    assert!(!proc::alive(pid));
}

#[test]
fn the_real_model_listens() {
    let address = model::shared();
    let host = address.trim_start_matches("http://").trim_end_matches('/');
    assert!(std::net::TcpStream::connect(host).is_ok(), "{address}");
    assert_eq!(model::shared(), address);
}
