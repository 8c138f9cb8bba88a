//! Containers as a person has them: runs, jobs, questions.

use super::{BASH, BUSYBOX, engines, workspace};
use crate::support::chat::Chat;
use crate::support::http::Reply;
use crate::support::{DEADLINE, proc};

#[test]
fn a_model_writes_a_script_that_times_out_and_writes_it_anew() {
    for engine in engines() {
        let mut settings = engine.settings(BASH);
        settings["auto_confirm"] = true.into();
        let chat = Chat::start(workspace(), &settings);
        let shell = |id: &str, command: &str| Reply::shell(id, command);
        chat.server
            .reply(shell("c1", "printf 'echo part; sleep 60' > s.sh"));
        chat.server.reply(Reply::new().call(
            "c2",
            "run_shell_command",
            &serde_json::json!({ "cmd": "bash s.sh", "timeout": 1 }),
        ));
        chat.server
            .reply(shell("c3", "printf 'echo whole' > s.sh; pwd"));
        chat.server.reply(shell("c4", "bash s.sh"));
        chat.server.reply(shell("c5", "cat s.sh"));
        let read = serde_json::json!({ "path": "/workspace/s.sh" });
        chat.server
            .reply(Reply::new().call("c6", "read_file", &read));
        chat.server.reply(Reply::text("It works."));
        chat.co(" make a script");
        chat.wait_turns(1);
        let requests = chat.server.requests();
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
        let names = engine.containers(&chat.workspace);
        let looks = names.iter().filter(|name| name.ends_with("-ro")).count();
        assert_eq!((names.len(), looks), (2, 1), "{engine:?}: {names:?}");
    }
}

#[test]
fn a_container_that_stops_or_goes_is_there_again() {
    for engine in engines() {
        let chat = Chat::start(workspace(), &engine.settings(BUSYBOX));
        chat.co("! echo on$((0))e");
        chat.wait_buffer("co://shell", "\non0e");
        let names = engine.containers(&chat.workspace);
        let [name] = &names[..] else {
            panic!("{engine:?}: {names:?}");
        };
        // The process that keeps it alive.
        chat.co("! kill -9 -1; sleep 60");
        chat.wait_buffer("co://shell", "in the container was killed");
        chat.co("! echo tw$((0))o");
        chat.wait_buffer("co://shell", "\ntw0o");
        chat.co("! echo up > up; sleep 60");
        proc::wait_until(DEADLINE, "the command", || {
            chat.workspace.exists("up").then_some(())
        });
        engine.call(&["rm", "--force", name]);
        chat.wait_buffer("co://shell", "exit 137");
        chat.co("! echo $((1+2)) again");
        chat.wait_buffer("co://shell", "\n3 again");
        assert_eq!(engine.containers(&chat.workspace), names);
        // The limit of processes stops a bomb, and its end takes the whole container if nothing else does.
        chat.co("! ++timeout=2 b() { b | b & }; b; while :; do :; done");
        chat.wait_buffer("co://shell", "timed out");
        chat.co("! echo $((2+2)) again");
        chat.wait_buffer("co://shell", "\n4 again");
    }
}

#[test]
fn a_command_lives_through_what_happens_to_others() {
    for engine in engines() {
        let workspace = workspace();
        workspace.write(".env", "KEY=secret\n");
        let chat = Chat::start(workspace, &engine.settings(BUSYBOX));
        chat.co("! echo on$((0))e");
        chat.wait_buffer("co://shell", "\non0e");
        let names = engine.containers(&chat.workspace);
        engine.call(&["kill", &names[0]]);
        // It starts the container again.
        chat.co("! echo up > up; until [ -e end ]; do sleep 0.1; done; echo whole$((0))");
        proc::wait_until(DEADLINE, "the command", || {
            chat.workspace.exists("up").then_some(())
        });
        // One with this secret, then one without it.
        chat.co("! cat .env; echo tw$((0))o");
        chat.wait_buffer("co://shell", "\ntw0o");
        chat.co("! echo fou$((0))r");
        chat.wait_buffer("co://shell", "\nfou0r");
        chat.workspace.write("end", "");
        chat.wait_buffer("co://shell", "\nwhole0");
    }
}

#[test]
fn a_stop_reaches_inside_and_streams_work_as_everywhere() {
    for engine in engines() {
        let chat = Chat::start(workspace(), &engine.settings(BUSYBOX));
        chat.co("! ++stdin read x; echo g$((0))t $x");
        chat.wait_text("$ read x");
        chat.co(" /jobs");
        chat.wait_text("   1  running");
        chat.type_keys("i");
        chat.wait_text("stdin of run 1:");
        chat.type_keys("hello<CR>");
        chat.wait_buffer("co://shell", "\ng0t hello");
        chat.type_keys("q");
        chat.co("! trap '' TERM; echo up > up; while :; do sleep 1; done");
        proc::wait_until(DEADLINE, "the command", || {
            chat.workspace.exists("up").then_some(())
        });
        chat.type_keys("<C-w>b");
        chat.wait_for("vim.bo.filetype == 'co-shell'", "the shell's window");
        chat.type_keys("<C-c>");
        chat.wait_buffer("co://shell", "\ncancelled");
        chat.co("! ++pty [ -t 0 ] && echo t$((0))y");
        chat.wait_text("t0y");
        let names = engine.containers(&chat.workspace);
        // A command that is cancelled while it starts ends a moment later.
        proc::wait_until(DEADLINE, "the end of the loop", || {
            let left = engine.call(&["exec", &names[0], "ps"]);
            let mut lines = left.lines().filter(|line| !line.contains("86400"));
            let any = lines.any(|line| line.contains("sleep 1") || line.contains("trap"));
            (!any).then_some(())
        });
    }
}

/// Waits until co shows the person a sentence that contains this part.
#[track_caller]
fn wait_told(chat: &Chat, part: &str) {
    chat.wait_for(
        &format!("table.concat(require('co.ui.log').lines(), '\\n'):find({part:?}, 1, true)"),
        part,
    );
}

#[test]
fn auto_takes_a_container_and_another_choice_ends_that() {
    for engine in engines() {
        let mut settings = engine.settings(BUSYBOX);
        settings["sandbox_backend"] = "auto".into();
        let chat = Chat::start(workspace(), &settings);
        chat.co("! pwd");
        chat.wait_buffer("co://shell", "\n/workspace\n");
        chat.co(" /sandbox");
        wait_told(
            &chat,
            "write in the workspace and /tmp only, without network (auto takes docker); tried in one: all its limits hold",
        );
        chat.co(" /cd /");
        wait_told(&chat, "cannot go to /: the container of this chat has ");
        chat.co(" /sandbox subprocess");
        wait_told(&chat, "unconfined, with all your permissions");
        chat.co("! pwd");
        let path = chat.workspace.path().display().to_string();
        chat.wait_buffer("co://shell", &format!("\n{path}\n"));
        chat.co(" /sandbox docker");
        wait_told(&chat, "all its limits hold (/sandbox subprocess ends this)");
        chat.co("! echo $((1+1)); pwd");
        chat.wait_buffer("co://shell", "\n2\n/workspace\n");
    }
}

#[test]
fn a_job_in_the_background_is_written_to_and_cancelled_inside() {
    for engine in engines() {
        let mut settings = engine.settings(BUSYBOX);
        settings["auto_confirm"] = true.into();
        let chat = Chat::start(workspace(), &settings);
        let job = |id: &str, name: &str, arguments: serde_json::Value| {
            chat.server.reply(Reply::new().call(id, name, &arguments));
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
        chat.server.reply(Reply::text("Done."));
        chat.co(" go");
        chat.wait_turns(1);
        let told = chat.server.requests()[3].last("tool").unwrap();
        assert!(told.contains("cancelled"), "{engine:?}: {told}");
        let names = engine.containers(&chat.workspace);
        let left = engine.call(&["exec", &names[0], "ps"]);
        assert!(!left.contains("sleep 100"), "{left}");
    }
}
