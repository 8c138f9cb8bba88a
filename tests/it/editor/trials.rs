//! Trials: the command runs in a layer over the workspace, and the person decides about what it changed.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::cli::trial::{MANY_FILES, SLOW_RULES};
use crate::support::http::Reply;

use super::scene::Scene;

/// Commits what is staged, whoever runs it.
const COMMIT: &str = "git -c user.name=co -c user.email=co@example.org commit -q -m tried";

/// Returns a scene whose model asks for these commands, one after the other.
fn commands<const COUNT: usize>(commands: [&str; COUNT]) -> Scene {
    let calls = commands.iter().enumerate().map(|(number, command)| {
        let arguments = json!({ "cmd": command });
        Reply::new().call(&format!("c{number}"), "run_shell_command", &arguments)
    });
    Scene::scripted(calls.chain([Reply::text("All through.")]))
}

impl Scene {
    /// Sends a prompt, and answers the question about the command with the key `t` or `T`.
    #[track_caller]
    fn try_command(&self, key: &str) {
        self.co("do it");
        self.wait_ask("1/1");
        self.answer(key);
    }

    /// Answers the question after a trial, and waits for the end of the turn.
    #[track_caller]
    fn end_trial(&self, key: &str) {
        self.answer(key);
        self.nvim.wait_text("All through.");
    }
}

#[test]
fn a_trial_changes_nothing_until_it_is_kept() {
    let scene = commands(["sed -i s/one/two/ a.txt; echo more > new.txt; rm gone.txt"]);
    scene.workspace.write("a.txt", "one\n");
    scene.workspace.write("gone.txt", "gone\n");
    scene.try_command("t");
    scene.nvim.wait_text("ran  as a trial: exit 0");
    scene.nvim.wait_text("+ two");
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "one\n");
    assert!(!scene.workspace.exists("new.txt"));
    scene.end_trial("y");
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "two\n");
    assert_eq!(scene.workspace.read("new.txt").unwrap(), "more\n");
    assert!(!scene.workspace.exists("gone.txt"));
    scene.nvim.command("Co /undo");
    scene.nvim.wait_text("/undo  +");
    scene.answer("y");
    scene.nvim.wait_text("taken back");
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "one\n");
    assert_eq!(scene.workspace.read("gone.txt").unwrap(), "gone\n");
    assert!(!scene.workspace.exists("new.txt"));
}

#[test]
fn in_a_trusted_workspace_what_changes_nothing_needs_no_question() {
    let scene = commands([
        "sh -c 'echo two > a.txt'",
        "python3 -c 'print(open(\"a.txt\").read())'",
        "sh -c 'echo 1 > a.o'",
        "sh -c 'echo three > a.txt'",
    ]);
    scene.workspace.write("a.txt", "one\n");
    scene.workspace.write(".gitignore", "*.o\n");
    scene.try_command("T");
    scene.nvim.wait_text("+ two");
    scene.answer("y");
    // Two commands run without a question; the last one changes a file.
    scene.wait_chat("tried: it changed nothing");
    scene.wait_chat("tried: it changed only ignored files");
    scene.nvim.wait_text("+ three");
    scene.end_trial("y");
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "three\n");
}

#[test]
fn a_tried_command_says_what_it_left_as_it_was_and_runs_for_real() {
    let remove = json!({ "cmd": "rm -rf build" });
    let scene = Scene::scripted([
        Reply::shell("c0", "echo 1 > made.o; echo two > a.txt"),
        Reply::call(Reply::new(), "c1", "run_shell_command", &remove),
        Reply::text("All through."),
        Reply::call(
            Reply::new(),
            "c2",
            "run_shell_command",
            &json!({ "cmd": "rm -rf build", "real": true }),
        ),
        Reply::text("Done for real."),
    ]);
    scene.workspace.write(".gitignore", "build/\n*.o\n");
    scene.workspace.write("a.txt", "one\n");
    scene.workspace.write("build/out", "built\n");
    scene.try_command("T");
    scene.nvim.wait_text("your made.o is as it was");
    scene.answer("r");
    scene.nvim.wait_text("All through.");
    assert!(scene.workspace.exists("made.o"));
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "two\n");
    scene.wait_chat("tried: it changed only ignored files, your build/ is as it was");
    assert!(scene.workspace.exists("build/out"));
    let told = scene.outcome(2, "c1");
    assert!(told.contains("your build/ is as it was"), "{told}");
    scene.wait_turns(1);
    scene.co("/real");
    scene.wait_chat("for real: `rm -rf build`. It ended: exit 0");
    scene.co("/real");
    scene.wait_notice("the command of the last trial has already run for real");
    assert!(!scene.workspace.exists("build"));
    scene.workspace.write("build/out", "built\n");
    scene.co("again");
    scene.nvim.wait_text("the model asks to run it for real");
    scene.answer("y");
    scene.nvim.wait_text("Done for real.");
    assert!(!scene.workspace.exists("build"));
    let request = scene.server.requests()[3].body.to_string();
    assert!(request.contains("The person ran the command"), "{request}");
}

#[test]
fn real_runs_nothing_but_a_command_of_a_trial() {
    let scene = commands(["echo two > a.txt"]);
    scene.co("/new");
    scene.co("/real");
    scene.wait_notice("no command of this chat ran as a trial");
    scene.try_command("t");
    scene.nvim.wait_text("+ two");
    scene.co("/real");
    scene.nvim.wait_text("All through.");
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "two\n");
    assert!(!scene.outcome(1, "c0").contains("trial"));
}

#[test]
fn a_trial_keeps_the_focus_for_its_result() {
    let scene = commands(["python3 -c \"open('a.txt', 'w').write('two')\""]);
    scene.try_command("t");
    scene.nvim.wait_text("+ two");
    scene.wait_for("vim.bo.filetype == 'co-approval'", "the focus to come back");
    scene.press("y");
    scene.nvim.wait_text("All through.");
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "two");
}

#[test]
fn a_trial_that_lacks_the_network_can_run_for_real() {
    let scene = commands([
        "python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 9), 2)' || { echo run > a.txt; exit 3; }",
    ]);
    scene.try_command("t");
    scene.nvim.wait_text("yes runs it for real");
    scene.end_trial("n");
    assert!(!scene.workspace.exists("a.txt"));
}

#[test]
fn a_trial_that_is_cancelled_is_dropped_and_the_model_knows() {
    let scene = Scene::scripted([
        Reply::shell("c1", "echo begun; echo two > a.txt; exec sleep 109"),
        Reply::shell("c2", "echo ended; echo two > a.txt"),
        Reply::text("I see."),
    ]);
    scene.workspace.write("a.txt", "one\n");
    scene.try_command("t");
    scene.wait_chat("\n    begun");
    scene.interrupt();
    scene.wait_turns(1);
    scene.try_command("t");
    scene.nvim.wait_text("+ two");
    scene.interrupt();
    scene.wait_turns(2);
    scene.co("what happened?");
    scene.wait_turns(3);
    for (call, output) in [("c1", "begun"), ("c2", "ended")] {
        let told = scene.outcome(2, call);
        assert!(told.contains(output), "{told}");
        assert!(told.contains("what it changed is dropped"), "{told}");
        assert!(!told.contains("not known"), "{told}");
    }
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "one\n");
    scene.assert_outcomes(2);
}

#[test]
fn a_slow_look_at_what_a_trial_changed_ends_with_a_cancel() {
    let line = format!("{MANY_FILES}; echo ended");
    let scene = Scene::scripted([Reply::shell("c1", &line), Reply::text("I see.")]);
    let mut bash = std::process::Command::new("bash");
    let made = bash
        .args(["-c", SLOW_RULES])
        .current_dir(scene.workspace.path());
    assert!(made.status().unwrap().success());
    scene.try_command("t");
    scene.wait_chat("\n    ended");
    scene.interrupt();
    let began = Instant::now();
    scene.wait_turns(1);
    assert!(
        began.elapsed() < Duration::from_secs(9),
        "{:?}",
        began.elapsed()
    );
    scene.co("what happened?");
    scene.wait_turns(2);
    let told = scene.outcome(1, "c1");
    assert!(told.contains("what it changed is dropped"), "{told}");
    assert!(!scene.workspace.exists("m"));
}

#[test]
fn a_trial_that_is_stopped_says_that_it_ran_and_the_calls_after_it_are_shown() {
    let after = |id: &str| (format!("{id}b"), "echo three > b.txt");
    let step = |id: &str, cmd: &str| {
        let (next, command) = after(id);
        Reply::new().and_shell(id, cmd).and_shell(&next, command)
    };
    let mut scene = Scene::scripted([
        step("c1", "echo begun; echo two > a.txt; exec sleep 109"),
        step("c2", "echo ended; echo two > a.txt"),
        Reply::text("I see."),
    ]);
    scene.workspace.write("a.txt", "one\n");
    scene.co("do it");
    scene.wait_ask("1/2");
    scene.answer("T");
    scene.wait_chat("\n    begun");
    scene.co("/stop");
    scene.wait_turns(1);
    let cut_off = "echo three > b.txt  cut off: the turn ended before this call was carried out";
    scene.wait_chat(cut_off);
    scene.co("again");
    scene.nvim.wait_text("+ two");
    scene.co("/stop");
    scene.wait_turns(2);
    let shown = scene.wait_chat("not answered; it ran as a trial only · its changes are dropped");
    assert!(!shown.contains("nothing was run"), "{shown}");
    assert_eq!(shown.matches(cut_off).count(), 2, "{shown}");
    let id = scene.chat_id();
    scene.restart();
    scene.co(&format!("/resume {id}"));
    scene.wait_chat("it ran as a trial only");
    assert_eq!(scene.chat(), shown);
}

#[test]
fn changes_without_lines_are_said_in_words() {
    let scene = Scene::scripted([
        Reply::new()
            .call(
                "c1",
                "write_file",
                &json!({ "path": "new.txt", "text": "" }),
            )
            .call(
                "c2",
                "move_file",
                &json!({ "from": "a.txt", "to": "b.txt" }),
            ),
        Reply::shell("c3", "python3 -c 'import os; os.chmod(\"run.sh\", 0o755)'"),
        Reply::shell("c4", "touch x.txt"),
        Reply::shell("c5", "touch y.txt; rm run.sh; : > run.sh; mkdir out"),
        Reply::text("All through."),
    ]);
    scene.workspace.write("a.txt", "one\n");
    scene.workspace.write("run.sh", "echo\n");
    scene.co("do it");
    scene.nvim.wait_text("write_file new.txt  new, empty");
    scene.answer("y");
    scene.wait_chat("write new.txt  new, empty");
    scene.nvim.wait_text("moved from a.txt");
    scene.answer("y");
    let asks = "vim.iter(require('co.question').pending()):any(function(it)
        return it.command:find('chmod', 1, true) ~= nil
    end)";
    scene.wait_for(asks, "the question about the command");
    scene.answer("T");
    scene.nvim.wait_text("diff mode 644 -> 755");
    scene.answer("y");
    scene.nvim.wait_text("diff new, empty");
    scene.answer("y");
    scene.nvim.wait_text("── y.txt  new, empty");
    assert!(!scene.nvim.screen().concat().contains("+0 -0"));
    assert!(!scene.chat().contains("+0 -0"), "{}", scene.chat());
    scene.end_trial("y");
}

#[test]
fn a_trial_of_which_nothing_is_kept_says_why() {
    let scene = commands(["mkfifo pipe", "echo two > a.txt"]);
    scene.workspace.write("a.txt", "one\n");
    scene.try_command("T");
    scene.nvim.wait_text("nothing of it can be kept");
    scene.answer("y");
    scene.wait_chat("nothing was kept: pipe cannot be kept: it is a FIFO");
    scene.nvim.wait_text("+ two");
    scene.workspace.write("a.txt", "two\n");
    scene.end_trial("y");
    scene.wait_chat("nothing was kept: the workspace has these changes already");
}

#[test]
fn a_resumed_chat_shows_trials_as_they_were() {
    let mut scene = Scene::scripted([
        Reply::shell("c1", "echo kept; echo two > a.txt"),
        Reply::shell("c2", "echo dropped; echo three > a.txt"),
        Reply::shell("c3", "python3 -c 'print(4)'"),
        Reply::text("All through."),
    ]);
    scene.workspace.write("a.txt", "one\n");
    scene.try_command("T");
    scene.answer_text("+ two", "y");
    scene.answer_text("+ three", "n");
    scene.nvim.wait_text("All through.");
    scene.wait_turns(1);
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "two\n");
    let shown = scene.chat();
    assert!(shown.contains("kept: 1 file\n    kept"), "{shown}");
    let id = scene.chat_id();
    scene.restart();
    scene.co(&format!("/resume {id}"));
    scene.wait_chat("All through.");
    assert_eq!(scene.chat(), shown);
}

#[test]
fn answers_that_came_before_a_trial_hold() {
    let scene = Scene::scripted([
        Reply::new()
            .and_shell("c1", "echo one > a.txt")
            .and_shell("c2", "echo two > b.txt")
            .and_shell("c3", "echo three > c.txt"),
        Reply::text("All through."),
    ]);
    scene.co("do it");
    scene.wait_ask("1/3");
    scene.nvim.lua(
        "local queue = require('co.question')
        local asked = queue.pending()
        queue.answer(asked[2].id, 'deny')
        queue.answer(asked[3].id, 'once')",
        json!([]),
    );
    scene.wait_ask("1/1");
    // After this, co tries later calls too, but for those the person has decided.
    scene.answer("T");
    scene.answer_text("+ one", "y");
    scene.wait_turns(1);
    let told = |call| scene.outcome(1, call);
    let kept = told("c1");
    assert!(kept.contains("the person kept what it changed"), "{kept}");
    for call in ["c2", "c3"] {
        assert!(!told(call).contains("trial"), "{}", told(call));
    }
    assert!(!scene.workspace.exists("b.txt"));
    assert_eq!(scene.workspace.read("c.txt").unwrap(), "three\n");
}

#[test]
fn a_review_keeps_the_parts_that_are_accepted() {
    let scene = commands(["python3 -c \"import os; os.makedirs('d/e'); \
        open('d/e/new.txt', 'w').write('new\\\\n'); \
        text = open('a.txt').read().split(); text[0] = 'first'; text[-1] = 'last'; \
        open('a.txt', 'w').write('\\\\n'.join(text) + '\\\\n')\""]);
    let text = |first: &str, last: &str| {
        let middle: String = (1..20).map(|line| format!("{line}\n")).collect();
        format!("{first}\n{middle}{last}\n")
    };
    scene.workspace.write("a.txt", &text("0", "20"));
    scene.try_command("t");
    scene.nvim.wait_text("diff +3 -2");
    scene.answer("d");
    scene.nvim.wait_text("0 of 2 answered");
    // The files stand in the order of their names: the first part of a.txt, its last one, then the new file.
    scene.nvim.type_keys("n");
    scene.nvim.wait_text("1 of 2 answered");
    scene.nvim.type_keys("y");
    scene.nvim.wait_text("file 2 of 2");
    scene.press("y");
    scene.nvim.wait_text("All through.");
    assert_eq!(scene.workspace.read("a.txt").unwrap(), text("0", "last"));
    assert_eq!(scene.workspace.read("d/e/new.txt").unwrap(), "new\n");
}

#[test]
fn what_matters_is_named_before_a_long_difference() {
    let scene = commands([
        "seq 100000 > a.txt; printf x > bytes.png; printf '\\0' >> bytes.png; printf '\\350\\n' > latin.txt; chmod 755 run.sh; \
         rm gone.txt file; ln -s /etc/passwd file; ln -s /etc/passwd zlink; echo 1 > z.txt; \
         mkdir z; echo 'evil()' > z/.nvim.lua; echo evil > z/Makefile",
    ]);
    scene.workspace.write("gone.txt", "gone\n");
    scene.workspace.write("file", "link to /etc/passwd\n");
    scene.workspace.write("run.sh", "echo\n");
    let latin = scene.workspace.path().join("latin.txt");
    std::fs::write(&latin, b"\xe9\n").unwrap();
    scene.try_command("t");
    scene.nvim.wait_text("ran  as a trial: exit 0");
    let question = scene.nvim.lua(
        "for _, buf in ipairs(vim.api.nvim_list_bufs()) do
            if vim.bo[buf].filetype == 'co-approval' then
                return table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), '\\n')
            end
        end",
        json!([]),
    );
    let question = question.as_str().unwrap();
    let outside = "/etc/passwd, outside the workspace";
    let first = [
        "runs z/.nvim.lua: `.nvim.lua`: Vim or Neovim runs it when it starts in the directory"
            .to_owned(),
        "runs z/Makefile: `Makefile`: a task runner runs it or its commands".to_owned(),
        format!("link file: the file becomes a link to {outside}"),
        format!("link zlink: a new link to {outside}"),
        "mode run.sh: mode 644 => 755".to_owned(),
        "byte bytes.png: no text: no file => 2 bytes".to_owned(),
        "byte latin.txt: it has bytes that are not UTF-8, such as \u{fffd}E9".to_owned(),
        "gone gone.txt: deleted".to_owned(),
    ];
    let mut rest = question;
    for fact in first {
        let found = rest.find(&fact);
        rest = &rest[found.unwrap_or_else(|| panic!("no {fact}: {question}"))..];
    }
    assert!(
        rest.contains("── 10 files\n── a.txt  +100000 -0\n"),
        "{question}"
    );
    scene.answer("d");
    scene.nvim.wait_text("file 1 of 10");
    for (name, shown) in [
        ("bytes.png", "! no text: no file => 2 bytes"),
        ("file", "! the file becomes a link to /etc/passwd"),
        ("gone.txt", "! deleted"),
        ("latin.txt", "+ \u{fffd}E8"),
        ("run.sh", "! mode 644 => 755"),
        ("z/.nvim.lua", "+ evil()"),
    ] {
        scene.nvim.type_keys("f");
        scene.nvim.wait_text("Type number");
        let files = [
            "a.txt",
            "bytes.png",
            "file",
            "gone.txt",
            "latin.txt",
            "run.sh",
            "z/.nvim.lua",
        ];
        let at = files.iter().position(|it| *it == name).unwrap() + 1;
        scene.nvim.type_keys(&format!("{at}<CR>"));
        scene.nvim.wait_text(&format!("file {at} of 10"));
        scene.nvim.wait_text(shown);
    }
    scene.nvim.type_keys("n");
    scene.nvim.wait_text("file 8 of 10");
    // The files behind the last answer come first, then those that were passed.
    for next in [9, 10, 1, 2, 3, 4, 5, 6] {
        scene.press("y");
        scene.nvim.wait_text(&format!("file {next} of 10"));
        if next == 1 {
            let whole = "vim.api.nvim_buf_line_count(0) == 100001";
            scene.nvim.wait_for(whole, "all of a.txt");
        }
    }
    scene.press("y");
    scene.nvim.wait_text("All through.");
    assert!(!scene.workspace.exists("z/.nvim.lua"));
    assert!(!scene.workspace.exists("gone.txt"));
    assert_eq!(scene.workspace.read("z/Makefile").unwrap(), "evil\n");
    assert_eq!(std::fs::read(latin).unwrap(), b"\xe8\n");
    let link = std::fs::read_link(scene.workspace.path().join("file")).unwrap();
    assert_eq!(link, std::path::Path::new("/etc/passwd"));
}

#[test]
fn a_commit_is_named_and_a_yes_makes_it() {
    let scene = commands([&format!(
        "echo new > new.txt && git add new.txt && {COMMIT}"
    )]);
    let git = |args: &[&str]| scene.workspace.git(args);
    let state = || {
        (
            git(&["for-each-ref"]),
            git(&["status", "--short", "new.txt"]),
        )
    };
    git(&["init", "-q", "-b", "main"]);
    let before = state();
    scene.try_command("t");
    scene.nvim.wait_text("git  a commit on main: tried, 1 file");
    scene.nvim.wait_text("yes runs it for real");
    assert_eq!(state(), before);
    scene.end_trial("y");
    assert_eq!(git(&["log", "--format=%s"]), "tried\n");
    assert!(scene.workspace.exists("new.txt"));
    assert_eq!(git(&["status", "--short", "new.txt"]), "");
    scene.nvim.command("Co /undo");
    let back = "git update-ref -d HEAD && git reset";
    let told = format!("git's HEAD stays where it is; to move it back: {back}");
    scene.nvim.wait_text("git's HEAD stays where it is");
    scene.answer("y");
    scene.wait_notice(&format!("1 file taken back; :Co /redo undoes that; {told}"));
    assert!(!scene.workspace.exists("new.txt"));
    git(&["update-ref", "-d", "HEAD"]);
    git(&["reset", "-q"]);
    assert_eq!(state(), before);
}

#[test]
fn a_no_leaves_the_repository() {
    let scene = commands([&format!(
        "echo new > new.txt && git add new.txt && {COMMIT}"
    )]);
    scene.workspace.git(&["init", "-q", "-b", "main"]);
    scene.try_command("t");
    scene.nvim.wait_text("a commit on main: tried, 1 file");
    scene.end_trial("n");
    scene.wait_turns(1);
    assert!(!scene.workspace.exists("new.txt"));
    assert_eq!(scene.workspace.git(&["for-each-ref"]), "");
}

#[test]
fn undo_tells_the_way_back_of_a_commit_without_a_change_of_files() {
    let scene = commands([&format!("{COMMIT} --allow-empty")]);
    scene.workspace.git(&["init", "-q", "-b", "main"]);
    let person = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    let commit = ["commit", "-q", "--allow-empty", "-m", "mine"];
    scene.workspace.git(&[&person[..], &commit].concat());
    let first = scene.workspace.git(&["rev-parse", "--short=10", "HEAD"]);
    scene.try_command("y");
    scene.wait_chat("All through.");
    scene.nvim.command("Co /undo");
    let told = format!("to move it back: git reset {}", first.trim());
    scene.wait_notice(&told);
    // The commits of the person on top are not reset.
    scene.workspace.git(&[&person[..], &commit].concat());
    scene.nvim.command("Co /undo");
    scene.wait_notice("HEAD has moved since then");
}

#[test]
fn a_change_of_configuration_cannot_be_kept_so_a_yes_makes_it() {
    let scene = commands([&format!(
        "echo new > new.txt && {COMMIT} --allow-empty && git config a.b c"
    )]);
    scene.workspace.git(&["init", "-q"]);
    scene.try_command("t");
    scene.nvim.wait_text("git  a commit on ");
    scene.nvim.wait_text("; .git/config changed");
    scene.nvim.wait_text("yes runs it for real");
    assert!(
        !scene
            .workspace
            .git(&["log", "--oneline", "--all"])
            .contains("tried")
    );
    scene.end_trial("y");
    let log = scene.workspace.git(&["log", "--oneline", "--all"]);
    assert!(log.contains("tried"));
    assert!(scene.workspace.exists("new.txt"));
    scene.nvim.command("Co /undo");
    scene.nvim.wait_text("/undo  +");
    scene.answer("y");
    scene.nvim.wait_text("1 file taken back");
    assert!(!scene.workspace.exists("new.txt"));
}

#[test]
fn what_trials_leave_is_shown_and_removed() {
    let scene = commands(["echo 1 > a.o", "cat a.o"]);
    scene.workspace.write(".gitignore", "*.o\n");
    scene.try_command("T");
    scene.nvim.wait_text("All through.");
    assert!(!scene.workspace.exists("a.o"));
    scene.co("/sandbox");
    scene.wait_notice("for later ones (/sandbox clean removes it)");
    scene.co("/sandbox clean");
    scene.wait_notice("KiB of ignored files and caches removed");
}

#[test]
fn very_many_files_are_kept_without_a_review() {
    let command = "for i in $(seq 5000); do echo $i > f$i.txt; done; rm old*.txt";
    let scene = commands([command]);
    for old in 0..100 {
        scene.workspace.write(&format!("old{old}.txt"), "old\n");
    }
    scene.try_command("t");
    scene.nvim.wait_text("ran  as a trial: exit 0");
    scene.end_trial("y");
    assert_eq!(scene.workspace.read("f5000.txt").unwrap(), "5000\n");
    assert!(!scene.workspace.exists("old99.txt"));
}

#[test]
fn of_trials_in_two_neovims_none_is_lost_silently() {
    let tried = |who: &str| {
        let line = format!(
            "sed -i 's/^same$/{who}/; s/^of {who}$/by {who}/' a.txt; sed -i 's/^of {who}$/by {who}/' b.txt; echo {who} > {who}"
        );
        Reply::shell("c1", &line)
    };
    let mut scene = Scene::scripted([tried("first"), tried("second")]);
    let text = |first: &str, second: &str| format!("{first} first\n1\n2\n3\n{second} second\n");
    scene.workspace.write("a.txt", "same\n");
    scene.workspace.write("b.txt", &text("of", "of"));
    scene.try_command("t");
    scene.nvim.wait_text("+ first");
    let mut first = scene.begin_another();
    scene.try_command("t");
    scene.nvim.wait_text("+ second");
    scene.replies([Reply::text("All through."), Reply::text("All through.")]);
    std::mem::swap(&mut scene.nvim, &mut first);
    scene.end_trial("y");
    scene.wait_chat("kept: 3 files");
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "first\n");
    std::mem::swap(&mut scene.nvim, &mut first);
    scene.end_trial("y");
    scene.wait_chat("kept: 2 files; not kept: a.txt: it was changed later, in the same place");
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "first\n");
    assert_eq!(scene.workspace.read("b.txt").unwrap(), text("by", "by"));
    for who in ["first", "second"] {
        assert_eq!(scene.workspace.read(who).unwrap(), format!("{who}\n"));
    }
}
