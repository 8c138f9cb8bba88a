//! `:Co /name`.

use serde_json::json;

use crate::support::http::Reply;

use super::scene::Scene;

/// A scene in which two turns have ended, ten tokens in and five out each.
fn two_turns() -> Scene {
    let scene = Scene::scripted([Reply::text("Aye."), Reply::text("Seven.")]);
    scene.co("remember seven");
    scene.wait_turns(1);
    scene.co("which?");
    scene.wait_turns(2);
    scene.wait_chat("Seven.");
    scene
}

fn id(scene: &Scene) -> String {
    let path = scene.chats().pop().unwrap();
    path.file_stem().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn an_export_has_the_conversation_and_what_it_cost() {
    let scene = two_turns();
    for item in scene.items().iter().filter(|item| item["item"] == "end") {
        assert_eq!(
            item["usage"]["input"], 10,
            "each turn says what it cost itself"
        );
    }
    scene.co("/export talk.md");
    scene.nvim.wait_text("exported to");
    let text = scene.workspace.read("talk.md").unwrap();
    assert!(
        text.contains("remember seven") && text.contains("Seven."),
        "{text}"
    );
    let turn = text.matches("_10 tokens in (0 cached), 5 out_").count();
    assert_eq!(turn, 2, "{text}");
    assert!(
        text.ends_with("\n20 tokens in (0 cached), 10 out\n"),
        "{text}"
    );
    scene.co("/export talk.md");
    scene.nvim.wait_text("cannot export to");
    wait_log(&scene, "name another file with /export");
    assert_eq!(scene.workspace.read("talk.md").unwrap(), text);
}

#[test]
fn a_resumed_conversation_goes_on_counting() {
    let mut scene = two_turns();
    scene.nvim.wait_text("20 in 10 out");
    scene.nvim.type_keys(":qa!<CR>");
    scene.nvim.wait_exit();
    let id = id(&scene);
    scene.restart();
    scene.co(&format!("/resume {id}"));
    scene.nvim.wait_text("20 in 10 out");
    scene.co("/usage");
    scene
        .nvim
        .wait_text("20 tokens in (0 cached), 10 out; the last turn 10 tokens in (0 cached), 5 out");
}

#[test]
fn another_model_answers_the_next_prompt() {
    let scene = two_turns();
    scene.co("/model");
    scene.nvim.wait_text("1: scripted");
    scene.nvim.type_keys("<Esc>");
    scene.co("/model other-one");
    scene.nvim.wait_text("other-one answers from now on");
    scene.server.reply(Reply::text("I am new."));
    scene.co("hello");
    scene.wait_chat("I am new.");
    scene.wait_turns(3);
    assert_eq!(scene.server.requests()[2].body["model"], "other-one");
}

#[test]
fn a_copy_goes_on_and_the_original_stays() {
    let scene = two_turns();
    let original = scene.chats().pop().unwrap();
    let before = std::fs::read_to_string(&original).unwrap();
    scene.co("/fork");
    scene.nvim.wait_text("this chat is now a copy");
    scene.server.reply(Reply::text("Only here."));
    scene.co("go on");
    scene.wait_turns(3);
    assert_eq!(scene.chats().len(), 2);
    assert_eq!(std::fs::read_to_string(&original).unwrap(), before);
}

#[test]
fn a_chat_is_renamed_and_deleted_from_another() {
    let scene = two_turns();
    let first = id(&scene);
    scene.co("/rename about seven");
    scene.nvim.wait_text("renamed");
    scene.co(&format!("/delete {first}"));
    scene.nvim.wait_text("not deleted: chat 1 has it open");
    assert_eq!(scene.chats().len(), 1);
    scene.co("/new");
    scene.nvim.wait_for(
        "vim.api.nvim_buf_get_name(0) == 'co://chat/2/prompt'",
        "another chat",
    );
    scene.co("/delete");
    scene.nvim.wait_text("about seven");
    scene.nvim.wait_text("open: chat 1");
}

#[test]
fn a_rule_of_the_chat_is_listed_and_taken_back() {
    let scene = Scene::scripted([
        Reply::shell("c1", "touch a"),
        Reply::text("One."),
        Reply::shell("c2", "touch a"),
        Reply::text("Two."),
    ]);
    scene.co("make it");
    scene.wait_ask("1/1");
    scene.co("/always command");
    scene.wait_chat("One.");
    scene.wait_turns(1);
    scene.co("/rules");
    scene.nvim.wait_text("allow = touch a");
    scene.nvim.type_keys("1<CR>");
    scene.nvim.wait_text("2: yes");
    scene.nvim.type_keys("2<CR>");
    scene.nvim.wait_text("no longer allowed: = touch a");
    scene.co("again");
    scene.wait_ask("1/1");
    scene.co("/deny not again");
    scene.wait_chat("Two.");
    let told = scene.server.requests()[3].last("tool").unwrap();
    assert_eq!(told, "User denied this action: not again");
}

#[test]
fn a_saved_rule_holds_in_the_next_neovim_and_there_alone() {
    let mut scene = Scene::scripted([
        Reply::shell("c1", "git commit --allow-empty --quiet --message one"),
        Reply::text("One."),
        Reply::shell("c2", "git commit --allow-empty --quiet --message two"),
        Reply::text("Two."),
    ]);
    scene.co("commit");
    scene.wait_ask("1/1");
    scene.co("/always prefix_saved");
    scene.wait_chat("One.");
    scene.wait_turns(1);
    scene.nvim.type_keys(":qa!<CR>");
    scene.nvim.wait_exit();
    scene.restart();
    scene.co("commit again");
    let text = scene.wait_chat("Two.");
    assert!(
        text.contains("*allowed by your rule `git commit`*"),
        "{text}"
    );
    assert_eq!(scene.workspace.git(&["log", "--format=%s"]), "two\none\n");
}

#[test]
fn everything_is_allowed_but_what_a_deny_rule_refuses() {
    let scene = Scene::with(json!({ "deny": ["touch never"] }), &[]);
    for (id, cmd) in [("c1", "touch a"), ("c2", "touch b"), ("c3", "touch never")] {
        scene.server.reply(Reply::shell(id, cmd));
    }
    scene.server.reply(Reply::text("All through."));
    scene.co("make them");
    scene.wait_ask("1/1");
    scene.co("/always everything");
    let text = scene.wait_chat("All through.");
    assert!(text.contains("*refused: "), "{text}");
    assert!(scene.workspace.exists("b") && !scene.workspace.exists("never"));
}

#[test]
fn the_directory_of_a_chat_is_changed() {
    let scene = Scene::scripted([Reply::shell("c1", "pwd"), Reply::text("There.")]);
    std::fs::create_dir(scene.workspace.path().join("sub")).unwrap();
    scene.co("/cd sub");
    scene.nvim.wait_text("/sub");
    scene.co("where?");
    let text = scene.wait_chat("There.");
    let there = scene.workspace.path().join("sub");
    assert!(text.contains(&format!("\n{}\n", there.display())), "{text}");
    scene.co("/cd nowhere");
    scene.nvim.wait_text("cannot go to");
    wait_log(&scene, "choose a directory that exists");
}

/// Waits for a sentence that may be longer than the screen is wide.
fn wait_log(scene: &Scene, text: &str) {
    let log = "table.concat(require('co.ui.log').lines(), ' ')";
    scene
        .nvim
        .wait_for(&format!("{log}:find('{text}', 1, true) ~= nil"), text);
}

#[test]
fn a_conversation_is_summed_up_for_the_model() {
    let scene = two_turns();
    scene.server.reply(Reply::text("They said seven."));
    scene.co("/compact");
    scene.wait_chat("earlier turns were summed up");
    scene.wait_turns(3);
    scene.server.reply(Reply::text("Still seven."));
    scene.co("and now?");
    scene.wait_chat("Still seven.");
    let last = scene.server.requests().pop().unwrap().body.to_string();
    assert!(
        last.contains("They said seven.") && !last.contains("which?"),
        "{last}"
    );
    assert!(scene.chat().contains("remember seven"));
}

#[test]
fn every_command_that_is_listed_is_there() {
    let scene = two_turns();
    let names = scene.nvim.lua(
        "local names = vim.tbl_keys(require('co.user_command.slash').commands) table.sort(names) return names",
        json!([]),
    );
    for name in names.as_array().unwrap() {
        let name = name.as_str().unwrap();
        // Those that ask a model or open a list of choices have tests of their own.
        if [
            "retry", "continue", "compact", "model", "resume", "delete", "rules",
        ]
        .contains(&name)
        {
            continue;
        }
        scene.co(&format!("/{name}"));
    }
    scene.co("/sandbox");
    scene.nvim.wait_for(
        "table.concat(require('co.ui.log').lines(), '\\n'):find('sandbox', 1, true)",
        "what holds commands",
    );
    let log = scene.nvim.lua(
        "return table.concat(require('co.ui.log').lines(), '\\n')",
        json!([]),
    );
    let log = log.as_str().unwrap();
    assert!(!log.contains("there is no command"), "{log}");
}

#[test]
fn the_runs_are_listed() {
    let scene = Scene::new();
    scene.co("/jobs");
    scene.nvim.wait_text("nothing has been run yet");
    scene.nvim.type_keys("q");
    scene.run("sleep 110");
    scene.run("echo ended");
    scene.wait_shell("exit 0, after");
    scene.co("/jobs");
    let lines = scene.nvim.wait_text("  running  ");
    let at = |text: &str| lines.iter().position(|line| line.ends_with(text));
    let (running, ended) = (at("  sleep 110"), at("  echo ended"));
    assert!(running.is_some() && running < ended, "{lines:#?}");
    assert!(lines[ended.unwrap()].contains("  exit 0  "), "{lines:#?}");
}
