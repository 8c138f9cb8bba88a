//! `co-nvim check` as a person and a test harness use it.

use std::process::{Command, Output};

use super::world::World;
use crate::support::{BACKEND, output_of};

fn check(world: &World, args: &[&str], stdin: &str) -> Output {
    let mut command = Command::new(BACKEND);
    command.args(["check", "--cwd"]).arg(&world.workspace);
    command.args(args).env("PATH", world.path());
    command.env("HOME", &world.home);
    command.env_remove("XDG_CONFIG_HOME");
    output_of(&mut command, stdin.as_bytes())
}

fn text_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn one_command_is_explained() {
    let world = World::new();
    let output = check(&world, &["find . -delete"], "");
    assert!(output.status.success());
    assert_eq!(
        text_of(&output),
        "ask\n  find . -delete\n  ^^^^^^^^^^^^^^ deletes the files it finds in ., for good\n"
    );
    assert!(text_of(&check(&world, &["ls"], "")).starts_with("auto"));
    assert!(text_of(&check(&world, &["rm -rf /"], "")).starts_with("deny"));
    assert!(text_of(&check(&world, &["ls \u{202e}x"], "")).contains("\\u{202e}"));
}

#[test]
fn json_says_the_same() {
    let world = World::new();
    let json = |command: &str| -> serde_json::Value {
        serde_json::from_slice(&check(&world, &["--json", command], "").stdout).unwrap()
    };
    let asked = json("git commit -m x");
    assert_eq!(
        (&asked["verdict"], &asked["prefix"]),
        (&"ask".into(), &"git commit".into())
    );
    let span = &asked["reasons"][0]["span"];
    assert_eq!((&span[0], &span[1]), (&0.into(), &15.into()));
    assert_eq!(json("git status")["by"], "sort");
    assert_eq!(json("rm -rf /")["rule"], "root-deletion");
    let form = &json("ls && git -C src --no-pager push -f --repo=x main")["commands"][1];
    let expected = serde_json::json!({
        "program": "git",
        "program_options": [{ "name": "-C", "value": "src" }, { "name": "--no-pager", "value": null }],
        "subcommand": ["push"],
        "options": [{ "name": "--force", "value": null }, { "name": "--repo", "value": "x" }],
        "operands": ["main"],
    });
    assert_eq!(*form, expected);
}

#[test]
fn many_commands_come_on_standard_input() {
    let world = World::new();
    let output = check(
        &world,
        &[],
        "\"ls\"\n\"rm x\"\n\"ls\\nrm x\"\n\"rm -rf /\"\n\"\"\n",
    );
    assert_eq!(text_of(&output), "auto\nask\nask\ndeny\ndeny\n");
    let output = check(&world, &[], "ls\n");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("JSON string"));
}

#[test]
fn what_is_not_understood_is_said() {
    let world = World::new();
    for args in [
        &["--nope"][..],
        &["ls", "-la"],
        &["--cwd", "/nowhere", "ls"],
    ] {
        let output = check(&world, args, "");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn a_workspace_file_that_is_broken_makes_all_ask_in_one_sentence() {
    let world = World::new();
    let file = world.workspace.join(".co/policy.toml");
    std::fs::write(&file, "allow = [\"ls\"]").unwrap();
    let output = check(&world, &["ls"], "");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let broken = told.contains("policy.toml cannot be read");
    assert!(broken && told.contains("unknown field `allow`"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(text_of(&output).starts_with("ask"));
    std::fs::write(&file, "deny = [\"ls\"]").unwrap();
    let output = check(&world, &["ls"], "");
    assert!(output.stderr.is_empty() && text_of(&output).starts_with("deny"));
}

#[test]
fn rules_of_a_workspace_that_match_nothing_are_told() {
    let world = World::new();
    let file = world.workspace.join(".co/policy.toml");
    let check = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let output = check(&world, &["ls"], "");
        assert!(text_of(&output).starts_with("auto"), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert_eq!(check("deny = ['mcp:git:log']\nask = ['mcp:git']\n"), "");
    let told = check("deny = ['mcp:git log']\nask = ['mcp:*', 'rename_symbol']\n");
    let lines: Vec<_> = told.lines().collect();
    for (line, part) in lines.iter().zip([
        "`deny`: the rule `mcp:git log` matches no call of a tool server: write mcp:server",
        "`ask`: the rule `mcp:*` matches no call of a tool server",
        "`ask`: the rule `rename_symbol` matches nothing",
    ]) {
        assert!(
            line.contains(".co/policy.toml: ") && line.contains(part),
            "{line}"
        );
    }
    assert_eq!(lines.len(), 3, "{told}");
    let many = vec![r"'mcp:'"; 1_000].join(", ");
    let told = check(&format!("deny = [{many}, \"mcp:\\u202e\"]\n"));
    assert!(
        told.contains("996 more rules cannot match either"),
        "{told}"
    );
    assert!(
        told.lines().count() == 6 && !told.contains('\u{202e}'),
        "{told}"
    );
}

#[test]
fn a_workspace_file_that_never_ends_is_not_waited_for() {
    let world = World::new();
    let file = world.workspace.join(".co/policy.toml");
    let asks = |what: &str| {
        let output = check(&world, &["ls"], "");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("it is not a regular file"), "{what}: {told}");
        assert!(text_of(&output).starts_with("ask"), "{what}");
    };
    nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap();
    asks("a FIFO");
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
    asks("a device");
}

#[test]
fn what_is_wrong_with_settings_is_said_in_a_sentence_each() {
    let world = World::new();
    let directory = world.home.join(".config/co-nvim");
    std::fs::create_dir_all(&directory).unwrap();
    let text = "shell_lift_deny = ['nope']\nallow = ['git push && rm']\nshell_safe_commands = ['mytool', 'ls']\n";
    std::fs::write(directory.join("config.toml"), text).unwrap();
    let output = check(&world, &["ls"], "");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text_of(&output).starts_with("auto"), "{output:?}");
    let lines: Vec<_> = told.lines().collect();
    assert_eq!(lines.len(), 3, "{told}");
    for (name, part) in [
        ("`shell_lift_deny`", "there is no rule `nope`"),
        ("`allow`", "operator"),
        ("`shell_safe_commands`", "`mytool`"),
    ] {
        let line = lines.iter().find(|line| line.contains(&format!("{name}:")));
        assert!(
            line.is_some_and(|line| line.contains(part)),
            "{name}: {told}"
        );
    }
}

#[test]
fn questions_that_are_turned_off_are_told() {
    let world = World::new();
    let output = |command: &str, args: &[&str], variable: &str| {
        let mut backend = Command::new(BACKEND);
        backend
            .arg(command)
            .args(args)
            .current_dir(&world.workspace);
        backend.env("PATH", world.path()).env("HOME", &world.home);
        backend
            .env_remove("XDG_CONFIG_HOME")
            .env("CO_CLI_AUTO_CONFIRM", variable);
        text_of(&output_of(&mut backend, b""))
    };
    let check = |command: &str, variable| output("check", &["--json", command], variable);
    assert!(check("make", "0").contains("\"verdict\":\"ask\""));
    let confirmed = check("make", "1");
    assert!(confirmed.contains("\"verdict\":\"auto\""), "{confirmed}");
    assert!(confirmed.contains("\"by\":\"auto_confirm\""), "{confirmed}");
    assert!(check("rm -rf /", "1").contains("\"verdict\":\"deny\""));
    assert!(output("check", &["make"], "1").starts_with("auto: auto_confirm"));
    let long = format!("echo {}", "x".repeat(10_000));
    assert!(check(&long, "1").contains("\"verdict\":\"ask\""));
    assert!(output("doctor", &[], "1").contains("CO_CLI_AUTO_CONFIRM"));
    assert!(!output("doctor", &[], "0").contains("CO_CLI_AUTO_CONFIRM"));
}
