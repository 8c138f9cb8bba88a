//! What xargs hands on: only what a program lists of the workspace, and only to a program that may be trusted.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use co::policy::Settings;

use super::world::{World, word};

/// A workspace in which nothing is secret and nothing leads out of it.
fn harmless() -> World {
    let world = World::new();
    for name in [".env", "server.pem", "out", "dangling", "innocent", "fifo"] {
        fs::remove_file(world.workspace.join(name)).unwrap();
    }
    fs::remove_dir_all(world.workspace.join("nested-repo")).unwrap();
    world
}

fn check(world: &World, cases: &[(&str, &str)]) {
    let (judge, _) = world.judge(Settings::default());
    for (command, expected) in cases {
        let verdict = world.verdict(&judge, command);
        assert_eq!(word(&verdict), *expected, "{command}: {verdict:?}");
    }
}

#[test]
fn what_a_trusted_program_runs_must_be_trusted_too() {
    let world = harmless();
    check(
        &world,
        &[
            ("find src -name '*.rs' | xargs wc -l", "auto"),
            ("egrep x a.txt", "auto"),
            ("yq . package.json", "auto"),
        ],
    );
    for name in ["wc", "grep", "jq"] {
        world.program(name, "#!/bin/sh\n");
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(world.bin.join(name), open).unwrap();
    }
    check(
        &world,
        &[
            ("wc -l a.txt", "ask"),
            ("find src -name '*.rs' | xargs wc -l", "ask"),
            ("egrep x a.txt", "ask"),
            ("fgrep --version", "ask"),
            ("yq . package.json", "ask"),
            ("find src -name '*.rs' | xargs cat", "auto"),
        ],
    );
}
