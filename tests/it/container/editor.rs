//! Containers as a person has them: runs, jobs, questions.

use super::{BASH, BUSYBOX, engines, workspace};
use crate::support::http::Reply;
use crate::support::scene::Scene;
use crate::support::{DEADLINE, proc};

#[test]
fn a_model_writes_a_script_that_times_out_and_writes_it_anew() {
    for engine in engines() {
        let mut settings = engine.settings(BASH);
        settings["auto_confirm"] = true.into();
        let scene = Scene::in_workspace(workspace(), settings, &[]);
        let shell = |id: &str, command: &str| Reply::shell(id, command);
        scene.replies([
            shell("c1", "printf 'echo part; sleep 60' > s.sh"),
            Reply::new().call(
                "c2",
                "run_shell_command",
                &serde_json::json!({ "cmd": "bash s.sh", "timeout": 1 }),
            ),
            shell("c3", "printf 'echo whole' > s.sh; pwd"),
            shell("c4", "bash s.sh"),
            shell("c5", "cat s.sh"),
        ]);
        let read = serde_json::json!({ "path": "/workspace/s.sh" });
        scene.replies([
            Reply::new().call("c6", "read_file", &read),
            Reply::text("It works."),
        ]);
        scene.co("make a script");
        scene.wait_turns(1);
        let requests = scene.server.requests();
        let told = |request: usize| requests[request].last("tool").unwrap();
        assert!(
            told(2).contains("\npart\n") && told(2).contains("timed out after 1"),
            "{}",
            told(2)
        );
        assert!(told(3).contains("\n/workspace\n"), "{}", told(3));
        assert!(told(4).contains("\nwhole\n"), "{}", told(4));
        assert!(told(5).contains("\necho whole"), "{}", told(5));
        assert!(told(6).contains("echo whole"), "{}", told(6));
        let system = requests[0].last("system").unwrap();
        assert!(system.contains("run in a container"), "{system}");
        // One for approved commands, one for those that only look.
        let names = engine.containers(&scene.workspace);
        let looks = names.iter().filter(|name| name.ends_with("-ro")).count();
        assert_eq!((names.len(), looks), (2, 1), "{engine:?}: {names:?}");
    }
}

#[test]
fn a_container_that_stops_or_goes_is_there_again() {
    for engine in engines() {
        let scene = Scene::in_workspace(workspace(), engine.settings(BUSYBOX), &[]);
        scene.run("echo on$((0))e");
        scene.wait_shell("\non0e");
        let names = engine.containers(&scene.workspace);
        let [name] = &names[..] else {
            panic!("{engine:?}: {names:?}");
        };
        // The process that keeps it alive.
        scene.run("kill -9 -1; sleep 60");
        scene.wait_shell("in the container was killed");
        scene.run("echo tw$((0))o");
        scene.wait_shell("\ntw0o");
        scene.run("echo up > up; sleep 60");
        proc::wait_until(DEADLINE, "the command", || {
            scene.workspace.exists("up").then_some(())
        });
        engine.call(&["rm", "--force", name]);
        scene.wait_shell("exit 137");
        scene.run("echo $((1+2)) again");
        scene.wait_shell("\n3 again");
        assert_eq!(engine.containers(&scene.workspace), names);
        // The limit of processes stops a bomb, and its end takes the whole container if nothing else does.
        scene.run("++timeout=2 b() { b | b & }; b; while :; do :; done");
        scene.wait_shell("timed out");
        scene.run("echo $((2+2)) again");
        scene.wait_shell("\n4 again");
    }
}

#[test]
fn a_command_lives_through_what_happens_to_others() {
    for engine in engines() {
        let workspace = workspace();
        workspace.write(".env", "KEY=secret\n");
        let scene = Scene::in_workspace(workspace, engine.settings(BUSYBOX), &[]);
        scene.run("echo on$((0))e");
        scene.wait_shell("\non0e");
        let names = engine.containers(&scene.workspace);
        engine.call(&["kill", &names[0]]);
        // It starts the container again.
        scene.run("echo up > up; until [ -e end ]; do sleep 0.1; done; echo whole$((0))");
        proc::wait_until(DEADLINE, "the command", || {
            scene.workspace.exists("up").then_some(())
        });
        // One with this secret, then one without it.
        scene.run("cat .env; echo tw$((0))o");
        scene.wait_shell("\ntw0o");
        scene.run("echo fou$((0))r");
        scene.wait_shell("\nfou0r");
        scene.workspace.write("end", "");
        scene.wait_shell("\nwhole0");
    }
}

#[test]
fn a_stop_reaches_inside_and_streams_work_as_everywhere() {
    for engine in engines() {
        let scene = Scene::in_workspace(workspace(), engine.settings(BUSYBOX), &[]);
        scene.run("++stdin read x; echo g$((0))t $x");
        scene.wait_text("$ read x");
        scene.co("/jobs");
        scene.wait_text("   1  running");
        scene.type_keys("i");
        scene.wait_text("stdin of run 1:");
        scene.type_keys("hello<CR>");
        scene.wait_shell("\ng0t hello");
        scene.type_keys("q");
        scene.run("trap '' TERM; echo up > up; while :; do sleep 1; done");
        proc::wait_until(DEADLINE, "the command", || {
            scene.workspace.exists("up").then_some(())
        });
        scene.type_keys("<C-w>b");
        scene.wait_for("vim.bo.filetype == 'co-shell'", "the shell's window");
        scene.type_keys("<C-c>");
        scene.wait_shell("\ncancelled");
        scene.run("++pty [ -t 0 ] && echo t$((0))y");
        scene.wait_text("t0y");
        let names = engine.containers(&scene.workspace);
        // A command that is cancelled while it starts ends a moment later.
        proc::wait_until(DEADLINE, "the end of the loop", || {
            let left = engine.call(&["exec", &names[0], "ps"]);
            let mut lines = left.lines().filter(|line| !line.contains("86400"));
            let any = lines.any(|line| line.contains("sleep 1") || line.contains("trap"));
            (!any).then_some(())
        });
    }
}

#[test]
fn auto_takes_a_container_and_another_choice_ends_that() {
    for engine in engines() {
        let mut settings = engine.settings(BUSYBOX);
        settings["sandbox_backend"] = "auto".into();
        let scene = Scene::in_workspace(workspace(), settings, &[]);
        scene.run("pwd");
        scene.wait_shell("\n/workspace\n");
        scene.co("/sandbox");
        scene.wait_notice("write in the workspace and /tmp only, without network (auto takes docker); tried in one: all its limits hold",
        );
        scene.co("/cd /");
        scene.wait_notice("cannot go to /: the container of this chat has ");
        scene.co("/sandbox subprocess");
        scene.wait_notice("unconfined, with all your permissions");
        scene.run("pwd");
        let path = scene.workspace.path().display().to_string();
        scene.wait_shell(&format!("\n{path}\n"));
        scene.co("/sandbox docker");
        scene.wait_notice("all its limits hold (/sandbox subprocess ends this)");
        scene.run("echo $((1+1)); pwd");
        scene.wait_shell("\n2\n/workspace\n");
    }
}

#[test]
fn a_job_in_the_background_is_written_to_and_cancelled_inside() {
    for engine in engines() {
        let mut settings = engine.settings(BUSYBOX);
        settings["auto_confirm"] = true.into();
        let scene = Scene::in_workspace(workspace(), settings, &[]);
        let job = |id: &str, name: &str, arguments: serde_json::Value| {
            scene.server.reply(Reply::new().call(id, name, &arguments));
        };
        job(
            "c1",
            "run_shell_command",
            serde_json::json!({ "cmd": "read x; echo got $x > got; sleep 100", "background": true }),
        );
        job(
            "c2",
            "job_write",
            serde_json::json!({ "job": 1, "text": "hello\n" }),
        );
        job("c3", "job_cancel", serde_json::json!({ "job": 1 }));
        scene.server.reply(Reply::text("Done."));
        scene.co("go");
        scene.wait_turns(1);
        let told = scene.told(3);
        assert!(told.contains("cancelled"), "{engine:?}: {told}");
        let names = engine.containers(&scene.workspace);
        let left = engine.call(&["exec", &names[0], "ps"]);
        assert!(!left.contains("sleep 100"), "{left}");
    }
}
