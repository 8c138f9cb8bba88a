//! Plans: a turn of `/plan` only looks, the person edits the plan, and `/go` starts the work with it.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::http::Reply;

use super::scene::Scene;

/// The tables of the tests of policy.
const TABLES: [&str; 3] = [
    include_str!("../../fixtures/policy/asks.txt"),
    include_str!("../../fixtures/policy/deny.txt"),
    include_str!("../../fixtures/policy/looks.txt"),
];

/// Ends of commands that change something.
const CHANGES: [&str; 12] = [
    "; touch made",
    " && rm -rf src",
    " > made",
    " | tee made",
    "; git add -A",
    "\ncp a.txt made",
    " & sleep 0.01",
    "; python3 -c 'open(\"made\", \"w\")'",
    "; (mkdir -p made/d)",
    "; sh -c 'echo x >> a.txt'",
    " || :; mv a.txt made",
    "; make",
];

/// The calls of a step, and the steps of a turn.
const CALLS: usize = 16;
const STEPS: usize = 40;

/// Returns the files below a directory, with their modes and texts.
pub(super) fn files(dir: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let facts = path.symlink_metadata().unwrap();
            if facts.is_dir() {
                dirs.push(path.clone());
            }
            let text = std::fs::read(&path).unwrap_or_default();
            found.insert(path, (facts.permissions().mode(), text));
        }
    }
    found
}

/// Returns the commands: those of the tables that ask or are denied, and those that look with a change behind.
pub(super) fn commands() -> Vec<String> {
    let lines = |table: &'static str| {
        let lines = table.lines();
        lines.filter(|line| !line.is_empty() && !line.starts_with("## "))
    };
    let [asks, deny, looks] = TABLES.map(lines);
    let changes = CHANGES.iter().cycle();
    let with_changes = looks
        .zip(changes)
        .map(|(look, change)| format!("{look}{change}"));
    let commands: Vec<_> = asks
        .chain(deny)
        .map(str::to_owned)
        .chain(with_changes)
        .collect();
    assert!(commands.len() >= 1_000, "{} commands", commands.len());
    commands
}

/// Returns a scene with files that hostile commands might change.
pub(super) fn hostile_scene(settings: Value) -> Scene {
    let scene = Scene::with(settings, &[]);
    scene.workspace.git(&["init", "-q"]);
    for name in ["a.txt", "src/main.rs", "Makefile"] {
        scene.workspace.write(name, "made:\n\ttouch made\n");
    }
    scene
}

/// Returns a step that calls the commands in all ways in which a model can.
pub(super) fn hostile_step(step: usize, commands: &[String]) -> Reply {
    let calls = commands.iter().enumerate();
    calls.fold(Reply::new(), |reply, (at, command)| {
        let arguments = match at % 4 {
            0 => json!({ "cmd": command, "background": true }),
            1 => json!({ "cmd": command, "pty": true }),
            2 => json!({ "cmd": command, "real": true }),
            _ => json!({ "cmd": command }),
        };
        reply.call(&format!("c{step}-{at}"), "run_shell_command", &arguments)
    })
}

#[test]
fn a_thousand_commands_change_nothing_in_a_plan_and_none_asks() {
    let scene = hostile_scene(json!({ "context_window": 100_000_000 }));
    let before = files(scene.workspace.path());
    let commands = commands();
    let steps: Vec<_> = commands.chunks(CALLS).enumerate().collect();
    let turns = steps.chunks(STEPS);
    let count = turns.len();
    for (number, turn) in turns.enumerate() {
        for (step, commands) in turn {
            scene.replies([hostile_step(*step, commands)]);
        }
        scene.replies([Reply::text("1. Nothing.")]);
        scene.co(&format!("/plan part {number}"));
        scene.wait_turns(number as u64 + 1);
    }
    assert_eq!(scene.events("CoApprovalRequested"), 0);
    assert_eq!(files(scene.workspace.path()), before);
    let items = scene.items();
    let outcomes = items.iter().filter(|item| item["item"] == "outcome");
    let refused = outcomes.filter(|item| {
        let told = item["text"].as_str().unwrap();
        told.starts_with("Not run: /plan only looks") || told.starts_with("Refused by a deny rule")
    });
    let refused = refused.count();
    // A few of them look in a workspace that has not what they are about.
    assert!(refused * 100 >= commands.len() * 97, "{refused} refused");
    let decided = items.iter().filter(|item| item["item"] == "decision");
    for decision in decided {
        let decision = decision["decision"]["decision"].as_str().unwrap();
        assert!(["unasked", "forbidden"].contains(&decision), "{decision}");
    }
    assert_eq!(count, 2);
}

#[test]
fn a_plan_is_edited_in_its_buffer_and_only_go_starts_the_work() {
    let touch = |id: &str| Reply::shell(id, "touch made");
    let mut scene = Scene::scripted([
        touch("c1"),
        Reply::text("1. Make the file.\n2. Look at it."),
        touch("c2"),
        Reply::text("All through."),
    ]);
    // The key makes the prompt one of /plan, and again one as always.
    scene.co("");
    scene.wait_for("vim.bo.filetype == 'co-prompt'", "the chat");
    scene.type_keys("imake it<M-p><M-p><M-p><Esc>");
    scene.wait_for(
        "vim.api.nvim_get_current_line() == '/plan make it'",
        "the prompt",
    );
    scene.type_keys("<CR>");
    scene.wait_turns(1);
    scene.wait_chat("only looks");
    scene.wait_chat("/go starts the work with it");
    assert!(!scene.workspace.exists("made"));
    // The person edits the plan; to write it starts nothing.
    scene.co("/plan");
    scene.wait_for("vim.fn.bufname() == 'co://chat/1/plan'", "the plan");
    scene.type_keys("ddi0. First this.<CR><Esc>:w<CR>");
    scene.wait_for("not vim.bo.modified", "the kept plan");
    assert_eq!(scene.events("CoTurnStarted"), 1);
    scene.type_keys("GoAnd then rest.<Esc>:wincmd p<CR>");
    // An unsaved plan is kept too.
    scene.co("/go");
    scene.wait_ask("1/1");
    scene.answer("y");
    scene.wait_turns(2);
    assert!(scene.workspace.exists("made"));
    let told = scene.server.requests()[2].last("user").unwrap();
    assert!(
        told.contains("0. First this.\n2. Look at it.\nAnd then rest."),
        "{told}"
    );
    assert!(told.contains("The plan approves no call"), "{told}");
    // It is kept with the chat.
    scene.restart();
    scene.co("");
    scene.wait_for("vim.bo.filetype == 'co-prompt'", "the chat");
    scene.resume();
    scene.wait_chat("All through.");
    scene.co("/plan");
    scene.wait_buffer("co://chat/1/plan", "0. First this.");
}

#[test]
fn the_person_chooses_by_numbers_and_keys_typed_before_choose_nothing() {
    let choices = |labels: [&str; 3]| labels.map(|label| json!({ "label": label }));
    let questions = json!([
        { "question": "Which base?", "choices": choices(["SQLite", "Postgres", "files"]) },
        { "question": "Which tests?", "choices": choices(["unit", "fuzz", "bench"]), "several": true },
        { "question": "Which name?", "choices": choices(["a", "b", "c"]) },
    ]);
    let scene = Scene::scripted([
        Reply::new().call("c1", "ask_person", &json!({ "questions": questions })),
        Reply::text("All through."),
    ]);
    scene.co("build it");
    scene.wait_text("Which base?");
    // A yes by number is no answer.
    scene.co("/approve 1");
    scene.wait_notice("asks you to choose");
    scene.type_keys(":Co /approve<CR>");
    scene.wait_for(
        "vim.bo.filetype == 'co-approval'",
        "the question to have the focus",
    );
    scene.press("2");
    scene.wait_text("Which tests?");
    // The same key, pressed twice, does not answer the next question.
    scene.type_keys("1");
    scene.press("1");
    scene.wait_text("[x] unit");
    scene.press("3");
    scene.wait_text("[x] bench");
    scene.press("<CR>");
    scene.wait_text("Which name?");
    scene.press("e");
    scene.wait_for("vim.bo.filetype == 'co-reason'", "the place for words");
    scene.type_keys("none of these<CR>");
    scene.wait_turns(1);
    let told = scene.told(1);
    let expected = "Which base?\n- Postgres\nWhich tests?\n- unit\n- bench\nWhich name?\n- in their own words: none of these";
    assert_eq!(told, expected);
    scene.wait_chat("Postgres; unit, bench; none of these");
}
