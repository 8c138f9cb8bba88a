//! `co-nvim exec --backend docker`: what holds a command, and how it ends.

use std::os::unix::fs::MetadataExt;

use serde_json::Value;

use super::{BASH, BUSYBOX, Engine, engines, exec, told, workspace};
use crate::support::workspace::Workspace;

/// Runs a command and returns its output.
#[track_caller]
fn output(engine: &Engine, workspace: &Workspace, args: &[&str]) -> (String, Value) {
    let told = told(&exec(engine, workspace, BASH, args));
    (told["output"].as_str().unwrap().to_owned(), told)
}

/// Prints `pids`, `memory` and `cpu`, of either version of control groups.
const LIMITS: &str = "cd /sys/fs/cgroup; echo pids $(cat pids/pids.max pids.max 2>&-); \
    echo memory $(cat memory/memory.limit_in_bytes memory.max 2>&-); \
    echo cpu $(cat cpu/cpu.cfs_quota_us cpu,cpuacct/cpu.cfs_quota_us cpu.max 2>&-) ";

#[test]
fn each_limit_holds_inside() {
    for engine in engines() {
        let workspace = workspace();
        workspace.write(".env", "KEY=secret");
        workspace.write("sub/plain", "text");
        super::give_away(&workspace);
        let script = format!(
            "pwd; id -u; echo [$PYTHONUNBUFFERED$CO_TEST_OF_HOST]; cat .env ../workspace/sub/plain; \
             grep -E 'CapEff|NoNewPrivs' /proc/self/status; cat /proc/net/dev; touch /x; \
             echo x >> .git/config; echo x > .git/hooks/pre-commit; \
             mv .git other; echo $((6*7)) > made; (: > /dev/tcp/192.0.2.1/80); {LIMITS}; \
             spin() {{ timeout 2 bash -c 'while :; do :; done'; }}; spin & spin; wait; \
             times | {{ read -r own; read -r user system; echo \"spent $user\"; }}"
        );
        let (output, told) = output(&engine, &workspace, &[&script]);
        assert_eq!(told["level"], "container", "{told}");
        let uid = nix::unistd::geteuid().as_raw();
        let uid = if uid == 0 { 1000 } else { uid };
        for line in [
            &format!("/workspace\n{uid}\n[1]\n")[..],
            "cat: .env: Permission denied\n",
            "text",
            "CapEff:\t0000000000000000\n",
            "NoNewPrivs:\t1\n",
            "touch: cannot touch '/x': Read-only file system\n",
            ".git/config: Read-only file system\n",
            ".git/hooks/pre-commit: Read-only file system\n",
            "mv: cannot move '.git' to 'other': Device or resource busy\n",
            "pids 256\n",
            "memory 1073741824\n",
            "cpu 100000",
        ] {
            assert!(output.contains(line), "{engine:?}: {line:?} in {output}");
        }
        assert!(
            output.contains("Network is unreachable"),
            "{engine:?}: {output}"
        );
        // Two processes for two seconds, with one processor.
        let spent = output
            .lines()
            .find_map(|line| line.strip_prefix("spent 0m"));
        let spent: f64 = spent.unwrap().trim_end_matches('s').parse().unwrap();
        assert!(spent < 3.0, "{engine:?}: {output}");
        let devices: Vec<_> = output.lines().filter(|line| line.contains(": ")).collect();
        let devices = devices.iter().filter(|line| line.contains("    "));
        assert!(
            devices.clone().all(|line| line.trim().starts_with("lo:")),
            "{output}"
        );
        assert_eq!(workspace.read("made").as_deref(), Some("42\n"));
        let made = workspace.path().join("made").metadata().unwrap();
        assert_eq!(made.uid(), uid);
        assert!(
            engine.containers(&workspace).is_empty(),
            "it is removed at the end"
        );
    }
}

#[test]
fn a_command_that_only_looks_gets_less() {
    for engine in engines() {
        let workspace = workspace();
        workspace.write("secrets/key", "secret");
        let script = "echo x > made; cat secrets/key; ls secrets; echo x > /tmp/x && cat /tmp/x";
        let (output, told) = output(&engine, &workspace, &["--read-only", script]);
        assert_eq!(told["level"], "read-only", "{told}");
        for line in [
            "made: Read-only file system\n",
            "cat: secrets/key: Permission denied\n",
            "ls: cannot open directory 'secrets': Permission denied\n",
            "\nx\n",
        ] {
            assert!(output.contains(line), "{engine:?}: {line:?} in {output}");
        }
        assert!(!workspace.exists("made"));
    }
}

#[test]
fn a_time_out_is_told_from_an_exit_status() {
    for engine in engines() {
        let workspace = workspace();
        for (image, script, timed_out, part) in [
            (BASH, "echo before; sleep 77", true, "before\n"),
            (BUSYBOX, "echo before; sleep 77", true, "before\n"),
            (
                BASH,
                "trap '' TERM; echo before; sleep 77; sleep 78",
                true,
                "before\n",
            ),
            (BUSYBOX, "exit 124", false, "[exit 124]"),
            (BASH, "exit 143", false, "[exit 143"),
        ] {
            // On a loaded machine, an engine may take more than a second to start a command.
            let limit = if timed_out { "3" } else { "60" };
            let done = exec(&engine, &workspace, image, &["--timeout", limit, script]);
            let told = told(&done);
            assert_eq!(
                told["timed_out"], timed_out,
                "{engine:?} {image} {script}: {told}"
            );
            assert!(told["output"].as_str().unwrap().contains(part), "{told}");
            let wall = told["wall_ms"].as_u64().unwrap();
            assert!(wall < 20_000, "{engine:?} {script}: {told}");
        }
    }
}

#[test]
fn what_happens_inside_has_one_outcome() {
    for engine in engines() {
        let workspace = workspace();
        let check = |script: &str, part: &str| {
            let (output, told) = output(&engine, &workspace, &["--timeout", "9", script]);
            assert!(output.contains(part), "{engine:?} {script}: {told}");
            assert_eq!(told["timed_out"], false, "{told}");
        };
        check(
            "sleep 77 & setsid sleep 78 & echo started",
            "co ended what it left running: ",
        );
        check(
            "head -c 1500M /dev/zero | tail",
            "more than 1 GiB of memory",
        );
        check(
            "head -c 1500M /dev/zero | tail | cat",
            "a program was killed: it took more than 1 GiB of memory",
        );
        check(
            "head -c 300M /dev/zero > /tmp/full",
            "No space left on device",
        );
        check("kill -9 1; echo went on", "went on\n");
        check(
            "kill -9 -1; sleep 5",
            "its shell in the container was killed",
        );
        let script = "for i in $(seq 300); do sleep 70 & done";
        let done = exec(&engine, &workspace, BUSYBOX, &["--timeout", "9", script]);
        let told = super::told(&done);
        let output = told["output"].as_str().unwrap();
        assert!(output.contains("can't fork"), "{engine:?}: {told}");
        assert!(output.contains("co ended what it left running: "), "{told}");
    }
}

#[test]
fn settings_change_the_container() {
    for engine in engines() {
        let workspace = workspace();
        let script = format!(
            "touch /etc/x && echo wrote; id -u; cat .env; grep /tmp /proc/mounts; cat /proc/net/dev; {LIMITS}"
        );
        workspace.write(".env", "KEY=shown");
        let home = tempfile::tempdir().unwrap();
        let mut command = std::process::Command::new(crate::support::BACKEND);
        command
            .args(["exec", &script])
            .current_dir(workspace.path())
            .env("HOME", home.path())
            .env("XDG_CONFIG_HOME", home.path())
            .env("CO_CLI_SANDBOX_BACKEND", "docker")
            .env("CO_CLI_CONTAINER_ENGINE", &engine.program)
            .env("CO_CLI_DOCKER_IMAGE", BASH)
            .env("CO_CLI_CONTAINER_USER", "0:0")
            .env("CO_CLI_CONTAINER_READ_ONLY", "false")
            .env("CO_CLI_CONTAINER_TMP_SIZE", "8MiB")
            .env("CO_CLI_SANDBOX_MEM_LIMIT", "64MiB")
            .env("CO_CLI_SANDBOX_CPUS", "0.5")
            .env("CO_CLI_HIDE_SECRETS", "false");
        let done = command.output().unwrap();
        let output = String::from_utf8_lossy(&done.stdout);
        for part in [
            "wrote\n0\n",
            "KEY=shown",
            "size=8192k",
            "memory 67108864\n",
            "cpu 50000",
        ] {
            assert!(output.contains(part), "{engine:?}: {part:?} in {done:?}");
        }
        command.env("CO_CLI_SANDBOX_NETWORK", "host");
        let done = command.output().unwrap();
        let devices = std::fs::read_to_string("/proc/net/dev").unwrap();
        let device = devices
            .lines()
            .filter_map(|line| line.split_once(':'))
            .map(|it| it.0);
        let device = device.map(str::trim).find(|name| *name != "lo");
        let output = String::from_utf8_lossy(&done.stdout);
        assert!(
            device.is_none_or(|name| output.contains(&format!("{name}:"))),
            "{output}"
        );
    }
}
