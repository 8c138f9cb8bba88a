//! Keys in Neovim's environment serve requests, and no process of the backend shows them.

use serde_json::json;

use super::scene::Scene;
use crate::support::http::Reply;
use crate::support::proc;

const KEY: &str = "sk-hunter2-of-neovim";

/// Prints a line for each process that shows the key, then a last line.
const SEARCH: &str =
    "grep -la 'sk-hunter[2]-of' /proc/[0-9]*/environ 2> /dev/null; echo se''arched";

fn keys(scene: &Scene) -> Vec<String> {
    let requests = scene.server.requests();
    let header =
        |name| move |it: &crate::support::http::Request| it.header(name).map(str::to_owned);
    requests
        .iter()
        .filter_map(header("authorization"))
        .collect()
}

#[test]
fn a_command_finds_the_key_in_neovim_alone_and_requests_have_it() {
    let settings = json!({"api_key_env": "OPENAI_API_KEY"});
    let scene = Scene::with(settings, &[("OPENAI_API_KEY", KEY)]);
    for _ in 0..3 {
        scene.server.reply(Reply::text("Aye."));
    }
    scene.co("hello");
    scene.wait_turns(1);
    scene.run(SEARCH);
    let shell = scene.wait_shell("\nsearched");
    let found: Vec<i32> = shell
        .lines()
        .filter_map(|line| {
            line.strip_prefix("/proc/")?
                .strip_suffix("/environ")?
                .parse()
                .ok()
        })
        .collect();
    let ours = proc::descendants(scene.pid());
    assert!(found.contains(&scene.pid()), "{shell}");
    assert!(!found.iter().any(|pid| ours.contains(pid)), "{shell}");
    scene.co("/restart");
    scene.wait_text("a new backend runs");
    scene.co("hello again");
    scene.wait_turns(2);
    assert_eq!(keys(&scene), vec![format!("Bearer {KEY}"); 2]);
}

#[test]
fn a_program_that_prints_the_key_and_an_inherited_environment_have_the_variables() {
    let settings = json!({ "api_key_cmd": ["sh", "-c", "echo \"$WORK_KEY\""] });
    let scene = Scene::with(settings, &[("WORK_KEY", KEY)]);
    scene.server.reply(Reply::text("Aye."));
    scene.co("hello");
    scene.wait_turns(1);
    assert_eq!(keys(&scene), [format!("Bearer {KEY}")]);
    scene.run("++env=inherit echo \"<$WORK_KEY>\"");
    scene.wait_shell(&format!("<{KEY}>"));
}
