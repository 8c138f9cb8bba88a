//! Chats, contexts and runs as they are on the screen, with a real backend.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::support::http::{Gate, Reply};
use crate::support::workspace::Workspace;

use super::scene::Scene;

/// The start of an image.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0IEND";

#[test]
fn chats_share_a_window_and_a_session_file_brings_one_back() {
    let mut scene = Scene::scripted([Reply::text("First."), Reply::text("Second.")]);
    scene.co("make one");
    scene.wait_text("First.");
    scene.wait_turns(1);
    scene.co("/new");
    scene.wait_no_text("First.");
    scene.co("make two");
    scene.wait_text("Second.");
    scene.wait_text("ready · make two");
    scene.wait_turns(2);
    scene.co("/chats");
    scene.wait_text("ready · make two");
    let list = scene.wait_text("ready · make one");
    let line = list.iter().find(|line| line.contains("ready · make one"));
    let number = line.unwrap().split(':').next().unwrap().trim();
    scene.press(&format!("{number}<CR>"));
    scene.wait_text("ready · make one");
    let screen = scene.wait_text("First.").join("\n");
    assert!(!screen.contains("Second."), "{screen}");
    scene.type_keys("<C-w>kq");
    scene.wait_no_text("First.");
    scene.co("");
    scene.wait_text("First.");

    scene.command("set sessionoptions+=globals | mksession s.vim");
    scene.type_keys(":qa!<CR>");
    scene.wait_exit();
    scene.restart();
    scene.command("source s.vim");
    scene.wait_text("First.");
    scene.wait_text("ready · make one");
    scene.co("/resume");
    let list = scene.wait_text("make two");
    let line = list.iter().find(|line| line.contains("make two"));
    let number = line.unwrap().split(':').next().unwrap().trim();
    scene.press(&format!("{number}<CR>"));
    scene.wait_text("Second.");
    scene.wait_no_text("First.");
}

#[test]
fn a_narrow_winbar_keeps_what_matters_most() {
    let scene = Scene::scripted([Reply::text("Aye.")]);
    scene.co("hi");
    scene.wait_text(" ready · hi · 10 in 5 out");
    scene.resize(44, 40);
    scene.wait_screen(
        |lines| {
            lines
                .iter()
                .any(|line| line.trim_end().ends_with(" ready · hi"))
        },
        "no tokens",
    );
}

#[test]
fn keys_go_from_message_to_message_of_a_long_chat() {
    let answer = format!("# Inside\n\n{}end", "a line\n\n".repeat(60));
    let scene = Scene::scripted([Reply::text(&answer), Reply::text("Short.")]);
    scene.co("tell me");
    scene.wait_turns(1);
    scene.co("and now?");
    scene.wait_text("Short.");
    scene.type_keys(":Co<CR><C-w>k");
    scene.wait_for("vim.bo.filetype == 'co-chat'", "the text of the chat");
    scene.type_keys("gg");
    for (keys, top) in [("]]zt", "─ co ─"), ("]]zt", "─ You ─"), ("[[zt", "─ co ─")] {
        scene.type_keys(keys);
        // Below the winbar.
        scene.wait_screen(|lines| lines[1].contains(top), top);
    }
    scene.wait_text("# Inside");
}

#[test]
fn a_prompt_names_its_contexts_and_the_images_that_the_model_does_not_take() {
    let workspace = Workspace::new();
    workspace.write("notes.txt", "a needle\n");
    workspace.git(&["add", "."]);
    workspace.git(&["commit", "--quiet", "--message", "Begin"]);
    workspace.write("notes.txt", "a needle\nand more\n");
    std::fs::write(workspace.path().join("shot.png"), PNG).unwrap();
    let scene = Scene::in_workspace(workspace, json!({}), &[]);
    scene.server.reply(Reply::text("Aye."));
    scene.run("echo out");
    scene.wait_text("exit 0");
    scene.command("edit notes.txt | call setline(1, 'unsaved')");
    scene.type_keys(":Co see @diff @unsaved @git:HEAD @output @search:more @file:shot.png<CR>");
    for text in [
        "with @diff, ",
        "with @unsaved",
        "with @git:HEAD",
        "with @output",
        "with @search:more",
        "with @file:shot.png, an image",
        "left out: @file:shot.png",
        "Aye.",
    ] {
        scene.wait_text(text);
    }
}

#[test]
fn a_model_that_takes_images_gets_a_file_and_the_clipboard() {
    let workspace = Workspace::new();
    std::fs::write(workspace.path().join("shot.png"), PNG).unwrap();
    let program = workspace.write("bin/xclip", "#!/bin/sh\ncat shot.png\n");
    std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let path = format!(
        "{}:{}",
        program.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let scene = Scene::in_workspace(
        workspace,
        json!({ "images": true }),
        &[("PATH", &path), ("DISPLAY", ":0")],
    );
    scene.server.reply(Reply::text("Aye."));
    scene.co("see @file:shot.png and @clipboard");
    scene.wait_text("with @file:shot.png, an image");
    scene.wait_text("with @clipboard, an image");
    let screen = scene.wait_text("Aye.").join("\n");
    assert!(!screen.contains("left out"), "{screen}");
    let body = scene.server.requests()[0].body.to_string();
    assert_eq!(body.matches("data:image/png;base64,").count(), 2, "{body}");
}

#[test]
fn a_name_is_completed_and_sent_with_what_the_language_server_knows() {
    let workspace = Workspace::new();
    workspace.write("shape.py", "def area(x):\n    return x\n");
    workspace.write("main.py", "from shape import area\nprint(area(2))\n");
    let scene = Scene::in_workspace(workspace, json!({}), &[]);
    scene.server.reply(Reply::text("The side."));
    scene.command("edit main.py");
    scene.attach_server(&[("shape.py", 0)], &[("main.py", 1)]);
    scene.type_keys(":Co<CR>iwhat is @lsp:ar<C-x><C-o>");
    scene.wait_text("what is @lsp:area");
    scene.type_keys(" for? @lsp:none<C-s>");
    scene.wait_text("with @lsp:area");
    scene.wait_text("left out: @lsp:none");
    scene.wait_text("The side.");
    let sent = scene.server.requests()[0].last("user").unwrap();
    for line in ["def area(x):", "main.py", "print(area(2))"] {
        assert!(sent.contains(line), "{sent}");
    }
}

#[test]
fn a_prompt_waits_until_it_is_sent_into_the_turn() {
    let held = Gate::default();
    let looks = Reply::text("I look.").hold(&held).and_shell("c1", "ls");
    let scene = Scene::scripted([looks, Reply::text("All."), Reply::text("Then.")]);
    scene.co("work");
    scene.wait_text("I look.");
    scene.type_keys(":Co<CR>ialso this<C-s>");
    scene.wait_text("(1 queued)");
    scene.type_keys("<C-s>");
    scene.wait_text("(1 steering)");
    scene.type_keys("<Esc>");
    scene.co("/steer and that");
    scene.wait_text("(2 steering)");
    scene.co("later");
    scene.wait_text("(2 steering, 1 queued)");
    held.open();
    for text in ["also this", "and that", "All.", "Then."] {
        scene.wait_text(text);
    }
    let body = scene.server.requests()[1].body.to_string();
    assert!(
        body.contains("also this") && body.contains("and that"),
        "{body}"
    );
    assert!(!body.contains("later"), "{body}");
}

#[test]
fn a_rule_is_removed_after_a_yes() {
    let scene = Scene::scripted([
        Reply::shell("c1", "git commit --allow-empty -m one"),
        Reply::text("Made."),
    ]);
    scene.co("make it");
    scene.wait_ask("1/1");
    scene.co("/always prefix_saved");
    scene.wait_text("Made.");
    // The first answer is a no.
    for answer in ["1", "2"] {
        scene.co("/rules");
        scene.wait_text("1: allow git commit (saved)");
        scene.press("1<CR>");
        scene.wait_text("Remove `allow git commit");
        scene.type_keys(&format!("{answer}<CR>"));
        scene.wait_no_text("Remove `");
    }
    scene.wait_text("no longer saved: git commit");
}

#[test]
fn the_model_writes_a_commit_message_above_the_text_of_git() {
    let workspace = Workspace::new();
    workspace.write("notes.txt", "one\n");
    workspace.git(&["add", "."]);
    workspace.write(".git/COMMIT_EDITMSG", "\n# Please enter the message\n");
    let scene = Scene::in_workspace(workspace, json!({}), &[]);
    scene
        .server
        .reply(Reply::text("Add notes\n\nThey were missing."));
    scene.command("edit .git/COMMIT_EDITMSG | set filetype=gitcommit");
    scene.co("/commit");
    scene.wait_screen(
        |lines| lines[0].contains("Add notes") && lines[4].contains("# Please enter"),
        "the message above the text",
    );
}

#[test]
fn a_run_leads_to_its_errors_and_runs_again_on_save() {
    let workspace = Workspace::new();
    let lines: String = (1..100).map(|line| format!("code {line}\n")).collect();
    workspace.write("src/app.py", &lines);
    workspace.write("errors", "src/app.py:70: bad\nsee src/app.py#L90\n");
    let scene = Scene::in_workspace(workspace, json!({ "run_diagnostics": true }), &[]);
    scene.command("lua vim.diagnostic.config({ virtual_text = { source = true } })");
    scene.run("cat errors");
    scene.wait_text("src/app.py#L90");
    scene.co("/errors");
    scene.wait_text("Co! cat errors ('errorformat')");
    scene.type_keys("<CR>");
    scene.wait_screen(
        |lines| {
            let line = lines.iter().find(|line| line.contains("code 70"));
            line.is_some_and(|line| line.contains("'errorformat': bad"))
        },
        "the error beside its line",
    );
    scene.type_keys(":cclose<CR>");
    scene.lua(
        "vim.fn.win_gotoid(vim.fn.bufwinid('^co://shell$'))",
        json!([]),
    );
    scene.type_keys("gg/L90<CR>gf");
    scene.wait_text("code 90");
    scene.run("++watch tail -n 1 src/app.py");
    scene.wait_text("again on save");
    scene.type_keys("Gccthe new end<Esc>:write<CR>");
    scene.wait_shell("the new end\nexit 0");
    scene.co("/history");
    scene.wait_text("2: cat errors");
    scene.press("2<CR>");
    scene.wait_text(":Co! cat errors");
    scene.type_keys("<Esc>:Co! +<Up>");
    scene.wait_text(":Co! ++watch tail -n 1 src/app.py");
}

#[test]
fn prompt_files_are_commands_with_arguments_and_asked_about_once() {
    let workspace = Workspace::new();
    let header = "description: Fix an issue\nargument-hint: {number}";
    let file = workspace.write(
        ".co/prompts/fix.md",
        &format!("---\n{header}\n---\nFix issue $1 with care.\n"),
    );
    let mut scene = Scene::in_workspace(workspace, json!({}), &[]);
    let own = scene.home.path().join("config/co-nvim/prompts");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("fine.md"), "Is it fine: $ARGUMENTS?\n").unwrap();
    scene.replies(["Fixed.", "It is.", "Again."].map(Reply::text));
    scene.command("set completeopt=menuone,popup");
    scene.type_keys(":Co<CR>i/fi<C-x><C-o><C-n>");
    for text in [
        "/fine",
        "{number} · Fix an issue",
        "Fix issue $1 with care.",
    ] {
        scene.wait_text(text);
    }
    scene.type_keys("<Esc>cc/fix 12<C-s><Esc>");
    scene.wait_ask("1/1");
    scene.wait_text("Send the text of .co/prompts/fix.md to the model with each /fix?");
    scene.answer("y");
    scene.wait_text("Fix issue 12 with care.");
    scene.wait_text("Fixed.");
    // The person's own needs no answer.
    scene.co("/fine this and that");
    scene.wait_text("Is it fine: this and that?");
    scene.wait_text("It is.");
    scene.restart();
    scene.co("/fix 13");
    scene.wait_text("Again.");
    std::fs::write(file, "Fix issue $1 at once.\n").unwrap();
    scene.co("/fix 14");
    scene.wait_text("its text changed since your last answer");
}

#[test]
fn rules_files_are_asked_about_and_sent_the_nearest_first() {
    let workspace = Workspace::new();
    workspace.write("AGENTS.md", "Use tabs.\n");
    workspace.write("lib/CO.md", "Use few words.\n");
    let scene = Scene::in_workspace(workspace, json!({}), &[]);
    let own = scene.home.path().join("config/co-nvim");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("CLAUDE.md"), "Use my name.\n").unwrap();
    scene.replies(["One.", "Two.", "Three."].map(Reply::text));
    scene.command("cd lib");
    scene.co("hi");
    scene.wait_text("One.");
    for (position, file, text) in [
        ("1/3", "lib/CO.md", "Use few words."),
        ("1/2", "AGENTS.md", "Use tabs."),
        ("1/1", "CLAUDE.md", "Use my name."),
    ] {
        let question = scene.wait_ask(position).join("\n");
        assert!(
            question.contains(file) && question.contains(text),
            "{question}"
        );
        scene.answer("y");
        scene.wait_notice(&format!("{file} is sent to the model"));
    }
    scene.co("/new");
    scene.co("hello");
    scene.wait_text("Two.");
    let sent = scene.server.requests()[1].body.to_string();
    let places = ["Use few words.", "Use tabs.", "Use my name."].map(|text| sent.find(text));
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "{sent}"
    );
    scene.workspace.write("AGENTS.md", "Use blanks.\n");
    scene.co("and now");
    scene.wait_text("its text changed since your last answer");
    let changed = scene.server.wait_requests(3)[2].body.to_string();
    assert!(!changed.contains("Use blanks."), "{changed}");
}
