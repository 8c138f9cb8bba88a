//! The shell, the environment and the time of a person's own commands.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::scene::{Scene, gate, open_gate};

/// A variable that no list has, of Neovim's own environment.
const ENV: &[(&str, &str)] = &[("CO_TEST_MINE", "m1ne"), ("PAGER", "less")];
const SHOW: &str = "echo \"<$CO_TEST_MINE|$CO_TEST_LATER|$PAGER|$NVIM|$0>\"";

/// Makes `'shell'` a program that tells what it is called as `$0`.
fn own_shell(scene: &Scene) {
    scene
        .workspace
        .write("mysh", "#!/bin/bash\nexec -a mysh bash \"$@\"\n");
    let path = scene.workspace.path().join("mysh");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    let shell = path.to_str().unwrap();
    scene.lua("vim.o.shell = ...", json!([shell]));
    scene.lua("vim.env.CO_TEST_LATER = 'l4ter'", json!([]));
}

#[test]
fn a_run_inherits_when_it_is_told_to_and_when_it_is_set() {
    let scene = Scene::with(json!({}), ENV);
    own_shell(&scene);
    scene.run(SHOW);
    scene.wait_shell("\n<||cat||/bin/bash>\nexit 0");
    scene.run(&format!("++env=inherit {SHOW}"));
    scene.wait_shell("\n<m1ne|l4ter|less||mysh>\nexit 0");
    // As it was told.
    scene.type_keys(":Co!<CR>");
    scene.wait_for("(co_seen.CoJobDone or 0) == 3", "three ends");
    let text = scene.wait_shell("exit 0");
    assert_eq!(
        text.matches("\n<m1ne|l4ter|less||mysh>").count(),
        2,
        "{text}"
    );
    let state = scene.home.path().join("state");
    let found = std::process::Command::new("grep")
        .arg("-rl")
        .arg("m1ne")
        .arg(state)
        .output();
    assert_eq!(String::from_utf8_lossy(&found.unwrap().stdout), "");
}

#[test]
fn the_first_run_inherits_where_the_settings_file_says_so() {
    let mut scene = Scene::with(json!({}), ENV);
    let dir = scene.home.path().join("config/co-nvim");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("config.toml"), "run_environment = 'inherit'\n").unwrap();
    scene.restart();
    own_shell(&scene);
    scene.run(SHOW);
    scene.wait_shell("\n<|l4ter|||mysh>\nexit 0");
    scene.run(&format!("++env=restricted {SHOW}"));
    scene.wait_shell("\n<||cat||/bin/bash>\nexit 0");
    scene.type_keys(":Co<CR>i!echo [$CO_TEST_LATER]<C-s>");
    scene.wait_chat("[l4ter]");
    scene.type_keys("!++env=restricted echo [$CO_TEST_LATER$PAGER]<C-s>");
    scene.wait_chat("[cat]");
}

#[test]
fn the_ceiling_is_named_where_it_ends_a_run() {
    let scene = Scene::with(json!({ "shell_max_timeout": 1 }), &[]);
    scene.run("sleep 1000");
    let said = "timed out after 1.0 s and was ended, no output; shell_max_timeout (1 s) is the limit, \
                run_timeout or :Co! ++timeout= sets another, 0 none";
    scene.wait_shell(&format!("$ sleep 1000\n{said}"));
    scene.run("++timeout=2 sleep 1001");
    let text = scene.wait_shell("timed out after 2.0 s and was ended, no output");
    assert_eq!(text.matches("shell_max_timeout").count(), 1, "{text}");
    let gates = ["run", "pty"].map(|name| gate(&scene.workspace, name));
    scene.run("++timeout=0 cat run; echo st$((0))ll there");
    scene.type_keys(":Co! ++pty ++timeout=0 echo at-$((7*7)); cat pty; echo pty l$((0))ves<CR>");
    scene.wait_buffer("co://term/4", "at-49");
    scene.type_keys("<C-\\><C-n>:Co! ++pty sleep 1002<CR>");
    scene.wait_buffer("co://term/5", "run_timeout or :Co! ++timeout= sets another");
    // The ceiling has ended a run that began later.
    gates.iter().for_each(|gate| open_gate(gate));
    scene.wait_shell("st0ll there\nexit 0");
    scene.wait_buffer("co://term/4", "pty l0ves");
    scene.type_keys("<C-\\><C-n>:Co<CR>i!sleep 1003<C-s>");
    scene.wait_chat(said);
}

#[test]
fn a_time_that_is_set_may_be_longer_than_the_ceiling_or_none() {
    for (setting, ends) in [(json!(2), true), (json!(0), false)] {
        let settings = json!({ "shell_max_timeout": 1, "run_timeout": setting });
        let scene = Scene::with(settings, &[]);
        let gate = gate(&scene.workspace, "gate");
        scene.run("cat gate; echo l$((0))ng");
        if ends {
            scene.wait_shell("\ntimed out after 2.0 s and was ended, no output");
            continue;
        }
        scene.run("++timeout=1 sleep 1004");
        scene.wait_shell("\ntimed out after 1.0 s and was ended, no output");
        open_gate(&gate);
        scene.wait_shell("l0ng\nexit 0");
    }
}
