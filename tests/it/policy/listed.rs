//! What xargs hands on: only what a program lists of the workspace, and only to a program that may be trusted.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use co_policy::PolicySettings;

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
    let (judge, _) = world.judge(PolicySettings::default());
    for (command, expected) in cases {
        let verdict = world.verdict(&judge, command);
        assert_eq!(word(&verdict), *expected, "{command}: {verdict:?}");
    }
}

#[test]
fn a_lister_prints_nothing_that_it_is_told() {
    let world = harmless();
    fs::remove_dir_all(world.workspace.join(".git")).unwrap();
    check(
        &world,
        &[
            ("fd main | xargs cat", "auto"),
            ("fd -e rs -t f . src | xargs cat", "auto"),
            ("fd --format=/etc/passwd . | xargs cat", "ask"),
            ("fd --path-separator ' /etc/passwd ' | xargs cat", "ask"),
            ("fd --path-separator=' /etc/passwd ' | xargs wc -l", "ask"),
            ("fd -C src x | xargs cat", "ask"),
            ("rg -l main | xargs cat", "auto"),
            ("rg -ln main src | xargs cat", "auto"),
            ("rg --files -g '*.rs' | xargs head -3", "auto"),
            ("rg --files --path-separator=: | xargs wc -l", "ask"),
            ("rg -l --replace=/etc/passwd main | xargs cat", "ask"),
            ("rg main | xargs cat", "ask"),
            ("grep -rl main . | xargs cat", "auto"),
            ("grep -lrn main src | xargs cat", "auto"),
            (
                "grep -l --label=/etc/passwd one - < a.txt | xargs cat",
                "ask",
            ),
            (
                "grep -l --label /etc/passwd one - < a.txt | xargs wc -l",
                "ask",
            ),
            ("grep -r main . | xargs cat", "ask"),
        ],
    );
}

#[test]
fn git_lists_paths_and_nothing_beside_them() {
    let world = harmless();
    check(
        &world,
        &[
            ("git diff --name-only | xargs wc -l", "auto"),
            ("git diff --name-only --cached HEAD | xargs wc -l", "auto"),
            (
                "git diff --name-only --line-prefix='/etc/passwd ' | xargs wc -l",
                "ask",
            ),
            ("git diff --name-only -p | xargs wc -l", "ask"),
            ("git diff --name-only --stat | xargs wc -l", "ask"),
            ("git ls-files -o --exclude-standard | xargs wc -l", "auto"),
            ("git ls-files --eol | xargs wc -l", "ask"),
            ("git ls-files -t | xargs wc -l", "ask"),
            ("git ls-files --format=/etc/passwd | xargs wc -l", "ask"),
        ],
    );
}

#[test]
fn what_is_listed_elsewhere_is_looked_at_there() {
    let world = harmless();
    fs::remove_dir_all(world.workspace.join(".git")).unwrap();
    check(
        &world,
        &[
            ("cd src && fd . .. | xargs cat", "auto"),
            ("cd src && grep -rl main .. | xargs cat", "auto"),
        ],
    );
    fs::write(world.workspace.join(".env"), "TOKEN=hush\n").unwrap();
    check(
        &world,
        &[
            ("cd src && fd main | xargs cat", "auto"),
            ("cd src && fd -H . .. | xargs cat", "ask"),
            ("cd src && grep -rl TOKEN .. | xargs cat", "ask"),
            ("cd src && rg -l TOKEN .. | xargs cat", "ask"),
            ("cd src && rg --files -e x .. | xargs cat", "ask"),
            ("cd src && grep -rl -e TOKEN .. | xargs cat", "ask"),
            ("fd main src | xargs cat", "auto"),
            ("rg -l main src | xargs cat", "auto"),
            ("grep -l main src/main.rs | xargs cat", "auto"),
        ],
    );
    world.git(&["init", "-q", "."]);
    check(
        &world,
        &[
            ("cd src && git ls-files -o .. | xargs cat", "ask"),
            ("cd src && git ls-files -o ':/' | xargs cat", "ask"),
            ("cd src && git ls-files -o | xargs cat", "auto"),
        ],
    );
}

#[test]
fn a_name_does_not_find_what_a_secret_directory_holds() {
    let world = harmless();
    let aws = world.workspace.join("d/.aws/sso");
    fs::create_dir_all(&aws).unwrap();
    fs::write(aws.join("cache.json"), "{}\n").unwrap();
    check(
        &world,
        &[
            ("find . -name '*.rs' | xargs cat", "auto"),
            ("find . -name '*.toml' -type f | xargs cat", "auto"),
            ("find . -name config | xargs cat", "ask"),
            ("find . -type f -name HEAD | xargs head -3", "ask"),
            ("find d -name '*.json' | xargs cat", "ask"),
            ("find src -name '*.json' | xargs cat", "auto"),
        ],
    );
    // The names of git's objects are its own, and there are many.
    let objects = world.workspace.join(".git/objects/a.rs");
    fs::write(objects, "x\n").unwrap();
    check(&world, &[("find . -name '*.rs' | xargs cat", "auto")]);
}

#[test]
fn a_name_takes_the_place_of_a_whole_word() {
    let world = harmless();
    check(
        &world,
        &[
            ("find src -name '*.rs' | xargs -I{} cat {}", "auto"),
            ("find src -name '*.rs' | xargs -IX grep -n main X", "auto"),
            (
                "find src -name '*.rs' | xargs -I {} basename {} .rs",
                "auto",
            ),
            ("find n -name n | xargs -I{} cat .e{}v", "ask"),
            ("find src -name n | xargs -In cat .env", "ask"),
            ("find src -name '*.rs' | xargs -I{} ls {}/..", "ask"),
            ("find src -name '*.rs' | xargs -I wc wc wc", "ask"),
            ("find src -name '*.rs' | xargs -Ic cat a.txt", "ask"),
            ("find src -name '*.rs' | xargs -I $X wc rm wc", "ask"),
            ("find src -name '*.rs' | xargs -n $X wc", "ask"),
            ("find src -name '*.rs' | grep -n rs | xargs cat", "ask"),
            (
                "find src -name '*.rs' | grep -v x | head -n 3 | xargs cat",
                "auto",
            ),
        ],
    );
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
            ("zcat a.gz", "auto"),
        ],
    );
    for name in ["wc", "grep", "jq", "gzip"] {
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
            ("zcat a.gz", "ask"),
            ("find src -name '*.rs' | xargs cat", "auto"),
        ],
    );
}

#[test]
fn a_name_that_xargs_would_take_apart_asks() {
    let world = harmless();
    fs::write(world.workspace.join("a b.rs"), "x\n").unwrap();
    check(
        &world,
        &[
            ("find . -name '*.rs' | xargs cat", "ask"),
            ("find . -name '*.rs' -print0 | xargs -0 cat", "auto"),
            ("find . -name '*.rs' -print0 | xargs --null cat", "auto"),
            ("find . -name '*.rs' -print0 | xargs -0r cat", "auto"),
            ("find . -name '*.rs' -print0 | xargs -r0 cat", "auto"),
            ("find . -name '*.rs' | xargs -r cat", "ask"),
            ("find . -name '*.toml' | xargs cat", "auto"),
            (
                "find src -name '*.rs' | xargs -t -n 1 -L 1 -P 2 cat",
                "auto",
            ),
            (
                "find src -name '*.rs' | xargs --no-run-if-empty cat",
                "auto",
            ),
        ],
    );
}

#[test]
fn a_link_that_leaves_is_passed_over_by_who_lists_files_alone() {
    let world = harmless();
    std::os::unix::fs::symlink("/etc/passwd", world.workspace.join("odd.rs")).unwrap();
    check(
        &world,
        &[
            ("find . -name '*.rs' | xargs cat", "ask"),
            ("find . -type f -name '*.rs' | xargs cat", "auto"),
            ("find . -type d -name '*.rs' | xargs cat", "ask"),
            ("find . -name '*.rs' -name f | xargs cat", "ask"),
            ("find . -type f -o -name '*.rs' | xargs cat", "ask"),
            ("find -H . -name '*.rs' | xargs cat", "ask"),
            ("find src -name '*.rs' | xargs cat", "auto"),
            ("find -P src -name '*.rs' | xargs cat", "auto"),
            (
                "find src -name '*.rs' -printf '/etc/passwd\\n' | xargs cat",
                "ask",
            ),
            ("find src -name '*.rs' -ls | xargs cat", "ask"),
        ],
    );
}

#[test]
fn a_name_does_not_become_an_option() {
    let world = harmless();
    check(
        &world,
        &[
            ("find src -name '*.rs' | xargs file", "auto"),
            ("rg -l main src | xargs file", "ask"),
            ("rg -l main src | xargs file --", "auto"),
            ("rg -l main src | xargs file -b", "ask"),
        ],
    );
}

#[test]
fn a_tracked_file_does_not_become_an_option() {
    let world = harmless();
    let cases = |verdict| {
        [
            ("git ls-files | xargs wc", verdict),
            ("git ls-files -z | xargs -0 wc", verdict),
            ("git ls-files | xargs ls", verdict),
            ("git ls-files | xargs cat", verdict),
            ("rg --files | xargs wc", verdict),
            ("git ls-files | xargs wc --", "auto"),
            ("git ls-files src | xargs wc -l --", "auto"),
            ("find . -name '--files*' | xargs wc -l", "auto"),
        ]
    };
    check(&world, &cases("auto"));
    fs::write(world.workspace.join("--files0-from=.env"), "x\n").unwrap();
    world.commit("an option");
    check(&world, &cases("ask"));
}

#[test]
fn a_search_of_selected_secret_files_asks() {
    let world = harmless();
    for name in [".env", "server.pem"] {
        fs::write(world.workspace.join(name), "TOKEN=hush\n").unwrap();
    }
    check(
        &world,
        &[
            ("find -name '.en[v]' | xargs grep ''", "ask"),
            ("find . -name '*.rs' | xargs grep main", "auto"),
            ("find . -name '*.p?m' | xargs grep ''", "ask"),
            ("find . -path '*/.en[v]' | xargs grep ''", "ask"),
            ("find . -regex '.*/.en[v]' | xargs grep ''", "ask"),
            ("find . -size -1 | xargs grep ''", "ask"),
            ("fd -H en[v] | xargs grep ''", "ask"),
            ("find . -iname '*.RS' | xargs cat", "auto"),
            ("find . -iname '.EN[V]' | xargs cat", "ask"),
            ("find . -iname '.EN?' -o -name x | xargs cat", "ask"),
            ("fd -e rs | xargs grep main", "auto"),
            (
                "find src -name '*.rs' -not -path '*/target/*' | xargs cat",
                "auto",
            ),
            (
                "find . ! -path './d/*' -name '*.rs' | xargs grep main",
                "auto",
            ),
            ("find . -not -path '*/target/*' | xargs cat", "ask"),
            ("find . ! \\( -name '*.rs' ! -path x \\) | xargs cat", "ask"),
        ],
    );
}

#[test]
fn filters_that_keep_lines_unchanged_are_allowed() {
    let world = harmless();
    let rest = [
        ("grep -d recurse X", "ask"),
        ("grep -drecurse X", "ask"),
        ("grep --directories recurse X", "ask"),
        ("grep --directories=recurse X", "ask"),
        ("grep -f a.txt", "ask"),
        ("grep X a.txt", "ask"),
        ("grep -e X a.txt", "ask"),
        ("grep -o X", "ask"),
        ("grep -v -e X -e Y", "auto"),
        ("grep -vE 'a|b'", "auto"),
        ("sort -u", "auto"),
        ("sort -k 2", "auto"),
        ("sort -r", "auto"),
        ("sort a.txt", "ask"),
        ("uniq -c", "ask"),
        ("head -n 3", "auto"),
        ("head -3", "auto"),
        ("head -c 9", "ask"),
        ("tail -n +2", "auto"),
    ];
    for (filter, expected) in rest {
        let command = format!("find src -name '*.rs' | {filter} | xargs cat");
        check(&world, &[(&command, expected)]);
    }
}
