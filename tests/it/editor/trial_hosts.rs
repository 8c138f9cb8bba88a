//! Trials of a model that reach hosts (`sandbox_network = "ask"`).

use serde_json::json;

use crate::cli::trial_hosts::FileServer;
use crate::support::http::Reply;
use crate::support::{DEADLINE, proc};

use super::scene::Scene;

/// A part of a question about a command that has not run.
const FOR_REAL: &str = "· unconfined";

/// Returns a scene with a script that fetches from the server, which the model runs this many times.
fn fetching(server: &FileServer, times: usize) -> Scene {
    server.add("/f", "fetched\n");
    let scene = Scene::with(json!({}), &[("CO_CLI_SANDBOX_NETWORK", "ask")]);
    let script = format!(
        "curl -sS http://127.0.0.2:{}/f > got; date +%N >> got\n",
        server.port
    );
    scene.workspace.write("fetch.sh", &script);
    let calls = (0..times).map(|number| Reply::shell(&format!("c{number}"), "sh fetch.sh"));
    scene.replies(calls.chain([Reply::text("All through.")]));
    scene
}

/// Returns a scene with this value of `sandbox_network`, whose model installs a package this many times.
fn installing(server: &FileServer, network: &str, times: usize) -> Scene {
    let base = format!("http://127.0.0.2:{}", server.port);
    server.add_npm_package(&base);
    let scene = Scene::with(json!({}), &[("CO_CLI_SANDBOX_NETWORK", network)]);
    scene.workspace.write("package.json", "{}\n");
    let line =
        format!("npm install --no-audit --no-fund --fetch-retries 0 --registry {base}/ own-pkg");
    let calls = (0..times).map(|number| Reply::shell(&format!("c{number}"), &line));
    scene.replies(calls.chain([Reply::text("All through.")]));
    scene
}

impl Scene {
    /// Lets co try the command in the question, and waits for the question about the host.
    fn try_fetch(&self, server: &FileServer) {
        self.answer_text(FOR_REAL, "t");
        self.nvim.wait_text("wants to reach this host:");
        let host = format!(
            "127.0.0.2 (port {}) · the address is of this machine",
            server.port
        );
        self.nvim.wait_text(&host);
    }
}

#[test]
fn the_person_is_asked_about_a_host_when_a_trial_connects() {
    let server = FileServer::start_at("127.0.0.2");
    let scene = fetching(&server, 2);
    scene.co("do it");
    scene.try_fetch(&server);
    assert_eq!(server.requests(), [""; 0]);
    scene.answer("y");
    let host = format!("127.0.0.2:{}", server.port);
    scene.nvim.wait_text(&format!("it reached {host}"));
    scene.answer("y");
    // The second command is asked about anew.
    scene.try_fetch(&server);
    assert!(
        scene
            .workspace
            .read("got")
            .unwrap()
            .starts_with("fetched\n")
    );
    scene.answer("n");
    scene.nvim.wait_text("yes keeps the changes");
    scene.answer("n");
    scene.nvim.wait_text("All through.");
    scene.wait_turns(1);
    assert_eq!(server.requests().len(), 1);
    let told = scene.outcome(2, "c1");
    assert!(
        told.contains(&format!("The command was not allowed to reach {host}")),
        "{told}"
    );
    assert!(
        told.contains(&format!("co: {host} is not allowed: the person refused it"))
            || !told.contains("fetched"),
        "{told}"
    );
}

#[test]
fn a_host_that_is_always_allowed_is_not_asked_about_again() {
    let server = FileServer::start_at("127.0.0.2");
    let scene = fetching(&server, 2);
    scene.co("do it");
    scene.try_fetch(&server);
    scene.answer("as");
    scene.nvim.wait_text("yes keeps the changes");
    scene.answer("n");
    scene.answer_text(FOR_REAL, "t");
    scene.nvim.wait_text("it reached");
    scene.answer("n");
    scene.nvim.wait_text("All through.");
    scene.wait_turns(1);
    assert_eq!(server.requests().len(), 2);
    scene.nvim.command("Co /rules");
    scene
        .nvim
        .wait_text(&format!("reach 127.0.0.2:{} (saved)", server.port));
}

#[test]
fn a_command_that_fetches_is_tried_first_if_co_asks_about_hosts() {
    let server = FileServer::start_at("127.0.0.2");
    let scene = installing(&server, "ask", 2);
    let host = format!("127.0.0.2:{}", server.port);
    scene.co("do it");
    scene.answer_text(FOR_REAL, "T");
    scene.nvim.wait_text("wants to reach this host:");
    assert_eq!(server.requests(), [""; 0]);
    scene.answer("y");
    scene.nvim.wait_text(&format!("it reached {host}"));
    scene.nvim.wait_text("own-pkg");
    scene.answer("n");
    // The second one is tried without a question about the command.
    scene.nvim.wait_text("wants to reach this host:");
    let before = server.requests().len();
    scene.answer("n");
    scene.nvim.wait_text("All through.");
    scene.wait_turns(1);
    assert_eq!(server.requests().len(), before);
    assert_eq!(scene.workspace.read("package.json").unwrap(), "{}\n");
    let told = scene.outcome(2, "c1");
    let line = format!("The command was not allowed to reach {host}");
    assert!(told.contains(&line), "{told}");
}

#[test]
fn a_command_that_fetches_is_not_tried_without_hosts() {
    let server = FileServer::start_at("127.0.0.2");
    let scene = installing(&server, "none", 1);
    scene.co("do it");
    scene.wait_ask("1/1");
    scene
        .nvim
        .wait_text("downloads packages and runs their scripts");
    let may_try = "require('co.question').pending()[1].may_try == true";
    assert_eq!(scene.nvim.eval(may_try), json!(false));
    scene.answer("n");
    scene.nvim.wait_text("All through.");
    scene.wait_turns(1);
    assert_eq!(server.requests(), [""; 0]);
}

/// Returns a scene in which approved commands are confined to the workspace, with a script that fetches from the server.
fn confined(server: &FileServer, calls: Vec<Reply>) -> Scene {
    server.add("/f", "fetched\n");
    let variables = [
        ("CO_CLI_SANDBOX_NETWORK", "ask"),
        ("CO_CLI_SANDBOX_BACKEND", "landlock"),
    ];
    let scene = Scene::with(json!({}), &variables);
    let script = format!("curl -sS http://127.0.0.2:{}/f\n", server.port);
    scene.workspace.write("fetch.sh", &script);
    scene.replies(calls.into_iter().chain([Reply::text("All through.")]));
    scene
}

#[test]
fn an_approved_command_is_asked_about_a_host_when_it_connects() {
    let server = FileServer::start_at("127.0.0.2");
    let lines = [
        ("c0", ""),
        ("c1", ""),
        ("c2", ""),
        ("c3", " 3"),
        ("c4", " 4"),
    ];
    let calls = lines.map(|(id, more)| Reply::shell(id, &format!("sh fetch.sh{more}")));
    let scene = confined(&server, calls.into());
    let host = format!("127.0.0.2:{}", server.port);
    scene.co("do it");
    scene.answer_text("· landlock", "y");
    scene
        .nvim
        .wait_text("It runs, and wants to reach this host:");
    assert_eq!(server.requests(), [""; 0]);
    scene.answer("n");
    scene.answer_text("· landlock", "y");
    scene.nvim.wait_text("wants to reach this host:");
    scene.answer("ac");
    // The same command is not asked about the host, but another one is.
    scene.answer_text("· landlock", "y");
    scene.answer_text("sh fetch.sh 3", "y");
    scene.nvim.wait_text("wants to reach this host:");
    assert_eq!(server.requests().len(), 2);
    scene.answer("aE");
    // Now no command of the chat is asked.
    scene.answer_text("sh fetch.sh 4", "y");
    scene.nvim.wait_text("All through.");
    scene.wait_turns(1);
    assert_eq!(server.requests().len(), 4);
    let told = scene.outcome(1, "c0");
    let refused = format!("The command was not allowed to reach {host}");
    assert!(told.contains(&refused), "{told}");
    assert!(scene.outcome(3, "c2").contains("fetched"));
    scene.nvim.command("Co /rules");
    let of_command = format!("reach {host} for `sh fetch.sh` (this chat)");
    scene.nvim.wait_text(&of_command);
    scene.nvim.wait_text(&format!("reach {host} (this chat)"));
}

#[test]
fn a_job_asks_about_a_host_after_its_turn_has_ended() {
    let server = FileServer::start_at("127.0.0.2");
    let arguments = json!({
        "cmd": "while ! test -e go; do sleep 0.05; done; sh fetch.sh; cat", "background": true
    });
    let job = Reply::new().call("c0", "run_shell_command", &arguments);
    let scene = confined(&server, vec![job]);
    scene.co("do it");
    scene.answer_text("· landlock", "y");
    scene.nvim.wait_text("All through.");
    scene.wait_turns(1);
    scene.workspace.write("go", "");
    scene
        .nvim
        .wait_text("It runs, and wants to reach this host:");
    scene.answer("y");
    scene.wait_shell("\nfetched\n");
    assert_eq!(server.requests().len(), 1);
}

/// Returns a scene with a job that fetches after each of the files `go1`, `go2` and so on appears.
fn fetching_job(server: &FileServer, times: usize) -> Scene {
    let line = format!(
        "for i in $(seq {times}); do while ! test -e go$i; do sleep 0.05; done; sh fetch.sh; done; cat"
    );
    let arguments = json!({ "cmd": line, "background": true });
    let job = Reply::new().call("c0", "run_shell_command", &arguments);
    let scene = confined(server, vec![job]);
    scene.co("do it");
    scene.answer_text("· landlock", "y");
    scene.nvim.wait_text("All through.");
    scene.wait_turns(1);
    scene
}

#[test]
fn a_new_rule_that_denies_holds_for_a_running_job() {
    let server = FileServer::start_at("127.0.0.2");
    let scene = fetching_job(&server, 3);
    scene.workspace.write("go1", "");
    scene.nvim.wait_text("wants to reach this host:");
    scene.answer("y");
    scene.wait_shell("\nfetched\n");
    scene
        .workspace
        .write(".co/policy.toml", "deny_hosts = [\"127.0.0.2\"]\n");
    scene.workspace.write("go2", "");
    scene.wait_shell("is not allowed: the rule `127.0.0.2` denies it");
    // If the rules cannot be read, nothing is allowed.
    scene.workspace.write(".co/policy.toml", "deny_hosts = 1\n");
    scene.workspace.write("go3", "");
    scene.wait_shell("policy.toml cannot be read, so no host is allowed");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_job_that_is_kept_is_refused_hosts_when_its_chat_has_gone() {
    let server = FileServer::start_at("127.0.0.2");
    let scene = fetching_job(&server, 1);
    scene.nvim.command("Co /jobs");
    let listed = "vim.bo.filetype == 'co-jobs'";
    scene.nvim.wait_for(listed, "the list");
    scene.nvim.type_keys("K");
    scene.nvim.wait_text("running, kept");
    let delete = "for _, buf in ipairs(vim.api.nvim_list_bufs()) do
        if vim.api.nvim_buf_get_name(buf):find('^co://chat/1/') then
            vim.api.nvim_buf_delete(buf, { force = true })
        end
    end";
    scene.nvim.lua(delete, json!([]));
    let end = "it is no longer this chat's";
    let is_told = || scene.items().iter().any(|it| it.to_string().contains(end));
    proc::wait_until(DEADLINE, end, || is_told().then_some(()));
    scene.workspace.write("go1", "");
    scene.wait_shell("the chat of the command has ended, so nobody can be asked");
    assert_eq!(server.requests(), [""; 0]);
}

#[test]
fn a_question_is_withdrawn_when_its_client_has_left() {
    let server = FileServer::start_at("127.0.0.2");
    let line = format!(
        "curl -sS --max-time 1 http://127.0.0.2:{}/f; cat",
        server.port
    );
    let arguments = json!({ "cmd": line, "background": true });
    let job = Reply::new().call("c0", "run_shell_command", &arguments);
    let scene = confined(&server, vec![job]);
    scene.co("do it");
    scene.answer_text("· landlock", "y");
    scene.nvim.wait_text("wants to reach this host:");
    scene.wait_shell("timed out");
    scene.nvim.wait_no_text("wants to reach this host:");
    let pending = "#require('co.question').pending() == 0";
    scene.nvim.wait_for(pending, "no question");
    assert_eq!(server.requests(), [""; 0]);
}

#[test]
fn a_command_does_not_start_if_the_rules_about_hosts_cannot_be_read() {
    let server = FileServer::start_at("127.0.0.2");
    let scene = confined(&server, vec![Reply::shell("c0", "sh fetch.sh")]);
    scene.workspace.write(".co/policy.toml", "deny_hosts = 1\n");
    let why = "policy.toml cannot be read, so no host is allowed: correct or remove it";
    scene.co("do it");
    scene.answer_text("· landlock", "y");
    scene.nvim.wait_text("All through.");
    scene.wait_turns(1);
    let told = scene.outcome(1, "c0");
    assert!(told.contains(why), "{told}");
    scene.nvim.command("Co! sh fetch.sh");
    scene.wait_shell(why);
}

#[test]
fn a_command_of_the_person_asks_about_a_host() {
    let server = FileServer::start_at("127.0.0.2");
    let scene = confined(&server, Vec::new());
    let host = format!("127.0.0.2:{}", server.port);
    scene.nvim.command("Co! sh fetch.sh");
    scene
        .nvim
        .wait_text("It runs, and wants to reach this host:");
    scene.answer_text("run 1 · #1", "n");
    scene.wait_shell(&format!("it was refused {host}"));
    scene.nvim.command("Co! sh fetch.sh");
    scene.answer_text("run 2 · #2", "as");
    scene.wait_shell(&format!("it reached {host}"));
    scene.nvim.command("Co! sh fetch.sh && echo again");
    scene.wait_shell("\nfetched\nagain\n");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_trial_of_the_person_asks_about_a_host() {
    let server = FileServer::start_at("127.0.0.2");
    let scene = confined(&server, Vec::new());
    let reached = format!("it reached 127.0.0.2:{}", server.port);
    scene.nvim.command("Co! ++try sh fetch.sh > got");
    let asked = "It runs as a trial, and wants to reach this host:";
    scene.nvim.wait_text(asked);
    assert_eq!(server.requests(), [""; 0]);
    scene.answer("y");
    scene.nvim.wait_text(&reached);
    scene.answer_text("yes keeps the changes", "y");
    let kept = || scene.workspace.read("got").filter(|it| it == "fetched\n");
    proc::wait_until(DEADLINE, "what the trial fetched", kept);
    scene.wait_shell(&reached);
}

#[test]
fn a_host_of_the_chat_does_not_wait_behind_a_question_about_another() {
    let server = FileServer::start_at("127.0.0.2");
    let calls = ["sh fetch.sh", "sh two.sh"];
    let calls = calls.iter().enumerate();
    let calls = calls.map(|(number, line)| Reply::shell(&format!("c{number}"), line));
    let scene = confined(&server, calls.collect());
    let script = format!(
        "curl -sS http://127.0.0.3:{0}/f & while ! test -e go; do sleep 0.05; done; curl -sS http://127.0.0.2:{0}/f; wait\n",
        server.port
    );
    scene.workspace.write("two.sh", &script);
    scene.co("do it");
    scene.answer_text("· landlock", "y");
    scene.nvim.wait_text("127.0.0.2 (port");
    scene.answer("aE");
    scene.answer_text("· landlock", "y");
    scene.nvim.wait_text("127.0.0.3 (port");
    scene.workspace.write("go", "");
    proc::wait_until(DEADLINE, "the second request", || {
        (server.requests().len() == 2).then_some(())
    });
    scene.answer("n");
    scene.nvim.wait_text("All through.");
    scene.wait_turns(1);
    assert_eq!(server.requests().len(), 2);
}
