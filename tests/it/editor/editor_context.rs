//! The tool `editor_context` with a real Neovim.

use serde_json::json;

use crate::support::http::Reply;

use super::scene::Scene;

#[test]
fn the_model_learns_what_the_person_looks_at() {
    let ask = |what: &str| json!({ "what": what, "path": "notes.txt" });
    let scene = Scene::scripted([
        Reply::new().call("c1", "editor_context", &ask("state")),
        Reply::new().call("c2", "editor_context", &ask("diagnostics")),
        Reply::new().call("c3", "editor_context", &ask("symbols")),
        Reply::text("All through."),
    ]);
    scene.workspace.write("notes.txt", "one\ntwo\n");
    scene.nvim.command("edit notes.txt");
    scene.nvim.command("normal! G");
    scene.nvim.command(
        "lua vim.diagnostic.set(vim.api.nvim_create_namespace('test'), 0, {{ lnum = 1, col = 0, message = 'bad' }})",
    );
    scene.nvim.command("badd /etc/hostname");
    scene.co("look");
    let text = scene.wait_chat("All through.");
    assert!(
        text.contains("`editor_context diagnostics notes.txt`"),
        "{text}"
    );
    let requests = scene.server.requests();
    let [state, diagnostics, symbols] = [1, 2, 3].map(|at| requests[at].last("tool").unwrap());
    assert!(
        state.contains(
            "notes.txt: the person's current file, cursor at 2:1, lines 1 to 2 visible\n"
        ),
        "{state}"
    );
    assert!(
        state.ends_with("[1 entry; 1 left out, outside the workspace or secret]"),
        "{state}"
    );
    assert!(
        diagnostics.contains("notes.txt:2:1: error: bad\n"),
        "{diagnostics}"
    );
    assert_eq!(
        symbols,
        "[Cannot ask about notes.txt: no language server is attached to it.]"
    );
}
