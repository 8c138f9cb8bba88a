//! `:Co /name`.

use serde_json::json;

use crate::support::http::Reply;

use super::scene::Scene;

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
    scene.type_keys(":qa!<CR>");
    scene.wait_exit();
    scene.restart();
    scene.co("commit again");
    let text = scene.wait_chat("Two.");
    assert!(text.contains("  ✓ git commit --allow-empty"), "{text}");
    assert_eq!(scene.workspace.git(&["log", "--format=%s"]), "two\none\n");
}

#[test]
fn every_command_that_is_listed_is_there() {
    let scene = Scene::scripted([Reply::text("Aye.")]);
    scene.co("hello");
    scene.wait_turns(1);
    let names = scene.lua(
        "local names = vim.tbl_keys(require('co.user_command.slash').commands) table.sort(names) return names",
        json!([]),
    );
    for name in names.as_array().unwrap() {
        let name = name.as_str().unwrap();
        // Those that ask a model or open a list of choices have tests of their own.
        if [
            "retry", "continue", "compact", "model", "resume", "delete", "rules", "chats", "rewind",
        ]
        .contains(&name)
        {
            continue;
        }
        scene.co(&format!("/{name}"));
    }
    scene.co("/sandbox");
    scene.wait_notice("sandbox");
    let log = scene.eval("table.concat(require('co.ui.log').lines(), '\\n')");
    let log = log.as_str().unwrap();
    assert!(!log.contains("there is no command"), "{log}");
}
