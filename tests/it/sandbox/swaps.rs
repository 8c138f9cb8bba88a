//! Directories of the workspace become links while co reads and writes there: nothing outside is read or written.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Instant;

use co::buffers::OpenBuffers;
use co::checkpoint::{Change, ChangeCause, Checkpoints, Entry, Undo};
use co::tool::edit;
use co::tool::query::FileQuery;
use co::workspace::edits::{SeenTexts, propose};
use co::workspace::files::attached::{self, Attached};
use co::workspace::files::{Deadline, FileScope};
use co::workspace::judge::{Judge, JudgeConfig};
use co_exec::sandbox::ConfinedCommand;
use co_llm::transcript::{Call, Decision};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::hostile::python;
use super::scene::{SOMEBODY, Scene, am_root};
use crate::support::runner::OLDER;
use crate::support::test_tree::{self, Tree};
use crate::support::{cases, output_of};

const SWAPS: &str = include_str!("swaps.py");
/// The most rounds of edits by the command line until one is made.
const MOST_ROUNDS: usize = 100;

/// The text of all files outside.
const OUTSIDE: &str = "OUTSIDE";

/// A workspace in which a job at the workspace level exchanges directories with links to others outside.
struct Swaps {
    scene: Scene,
    outside: Tree,
    job: Child,
    _confined: ConfinedCommand,
}

impl Swaps {
    fn new(user: Option<u32>) -> Self {
        let scene = Scene::new(user);
        for (top, text) in [(&scene.ws, "inside"), (&scene.out, OUTSIDE)] {
            for name in ["d/f", "d/sub/f", "e/f"] {
                let path = top.join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, format!("{text}\n")).unwrap();
            }
        }
        for name in ["d", "e"] {
            let link = scene.ws.join(format!("{name}-link"));
            std::os::unix::fs::symlink(scene.out.join(name), link).unwrap();
        }
        for name in ["target", "d/OUTSIDE"] {
            fs::write(scene.out.join(name), OUTSIDE).unwrap();
        }
        scene.hand_over();
        let outside = test_tree::read(&scene.out);
        let argv = [python(), "-c", SWAPS, scene.out.to_str().unwrap()];
        let (mut command, confined) = scene.confined(&scene.workspace(), &argv);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut job = piped.spawn().unwrap();
        let mut told = String::new();
        let mut output = BufReader::new(job.stdout.take().unwrap());
        output.read_line(&mut told).unwrap();
        assert_eq!(told, "begun\n");
        Self {
            scene,
            outside,
            job,
            _confined: confined,
        }
    }

    /// Ends the job, and checks that nothing has changed outside.
    #[track_caller]
    fn end(mut self) {
        drop(self.job.stdin.take());
        self.job.wait().unwrap();
        assert_eq!(test_tree::read(&self.scene.out), self.outside);
    }

    fn judge(&self) -> Arc<Judge> {
        let (judge, _problems) = Judge::new(JudgeConfig {
            workspace: self.scene.ws.clone(),
            home: self.scene.home.clone(),
            path: self.scene.path.clone(),
            settings: Default::default(),
            saved: Default::default(),
            own: Vec::new(),
        });
        Arc::new(judge)
    }
}

/// Returns requests for edits, which may find any state of the files.
fn requests(round: usize) -> [Value; 6] {
    let edit = |path: &str, old: &str, new: String| json!({ "path": path, "edits": [{ "old": old, "new": new }] });
    let call = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    [
        edit("d/f", "inside", format!("inside {round}")),
        json!({ "path": "d/sub/f", "text": format!("inside {round}\n") }),
        json!({ "path": format!("d/new{round}/deep/f"), "text": "inside\n" }),
        json!({ "path": format!("e/{round}"), "text": "inside\n" }),
        call(
            "move_file",
            json!({ "from": format!("e/{round}"), "to": format!("d/{round}") }),
        ),
        call("delete_file", json!({ "path": format!("d/{round}") })),
    ]
}

#[test]
fn edits_lead_nowhere() {
    let swaps = Swaps::new(None);
    let (judge, cwd) = (swaps.judge(), swaps.scene.ws.clone());
    let change = |request: &Value| {
        let request = edit::from_json(&request.to_string()).unwrap();
        let places = judge.edit_places(&request, &cwd).ok()?;
        let (open, seen) = (OpenBuffers::new(), SeenTexts::default());
        let proposal = propose(&request, &places, &open, &seen).ok()?;
        assert!(!proposal.diff.contains(OUTSIDE), "{}", proposal.diff);
        proposal.apply_to_disk().ok()
    };
    let mut made = 0;
    for round in 0..cases(300) {
        made += requests(round).iter().filter_map(change).count();
    }
    assert!(made > 0);
    swaps.end();
}

#[test]
fn reads_lead_nowhere() {
    let swaps = Swaps::new(None);
    let (judge, cwd) = (swaps.judge(), swaps.scene.ws.clone());
    let look = |name: &str, arguments: Value| {
        let call = Call::new("1", name, arguments);
        let query = FileQuery::parse(&call).unwrap();
        let scope = FileScope {
            path: query.place(&judge, &cwd, Instant::now()).ok()?,
            open: OpenBuffers::new(),
            editor: None,
            allowed: judge.readable(),
            bytes: 30_000,
            end: Deadline::new(CancellationToken::new()),
        };
        let found = query.run(&scope).ok()?;
        assert!(!found.text.contains(OUTSIDE), "{call:?}: {}", found.text);
        found.text.contains("inside").then_some(())
    };
    let mut read = 0;
    for _ in 0..cases(200) {
        let found = [
            look("read_file", json!({ "path": "d/f" })),
            look("read_file", json!({ "path": "d/sub/f" })),
            look("search", json!({ "pattern": "inside|OUTSIDE" })),
            look(
                "search",
                json!({ "pattern": "inside|OUTSIDE", "path": "d" }),
            ),
            look("list_files", json!({ "path": "d" })),
        ];
        read += found.iter().flatten().count();
        let attached = attached::read(&cwd.join("d/sub/f"), 100);
        if let Ok((real, Attached::Text { text, .. })) = attached {
            assert_eq!(real.starts_with(&cwd), !text.contains(OUTSIDE));
        }
    }
    assert!(read > 0);
    swaps.end();
}

#[test]
fn what_is_kept_and_taken_back_leads_nowhere() {
    let swaps = Swaps::new(None);
    let root = &swaps.scene.ws;
    let checkpoints = Checkpoints::new(swaps.scene.home.join("checkpoints"));
    let store = checkpoints.store().unwrap();
    let file = |text: &str| {
        let blob = Some(store.put(text.as_bytes()).unwrap());
        Some(Entry::File { mode: 0o644, blob })
    };
    let change = |path: String, before: Option<Entry>, after: Option<Entry>| Change {
        path: PathBuf::from(path),
        before,
        after,
    };
    let mut made = 0;
    for round in 0..cases(300) {
        let directory = Some(Entry::Dir { mode: 0o755 });
        let link = Some(Entry::Link {
            target: PathBuf::from("f"),
        });
        let changes = [
            change("d/f".to_owned(), file("inside\n"), file("changed\n")),
            change("d/sub/f".to_owned(), file("inside\n"), None),
            change(format!("e/{round}"), None, file("inside\n")),
            change(format!("e/{round}-link"), None, link),
            change(format!("e/{round}-new"), None, directory),
            change(format!("e/{round}-new/f"), None, file("inside\n")),
        ];
        let open = OpenBuffers::new();
        let keep = Undo::making(&changes, root, &store, &open);
        let by = ChangeCause::Call {
            what: "make".to_owned(),
            decision: Decision::Approved,
            command: false,
        };
        let kept = checkpoints.make(keep, root, by).unwrap();
        made += kept.changes.len();
        // Taken back, made again, and taken back.
        let mut last = kept.changes;
        for _ in 0..3 {
            let undo = Undo::of(last.iter(), root, &store, &open);
            for taken in undo.all() {
                assert!(!taken.diff(&store).contains(OUTSIDE));
            }
            last = checkpoints
                .make(undo, root, ChangeCause::Undo)
                .unwrap()
                .changes;
        }
    }
    assert!(made > 0);
    swaps.end();
}

/// Runs `co-nvim` as a person, with these arguments in front of the program.
#[track_caller]
fn check_as(user: Option<u32>, before: &[&str]) {
    let swaps = Swaps::new(user);
    let exe = swaps.scene.exe();
    let co = |arguments: &[&str], input: &str| {
        let argv = [before, &[exe.to_str().unwrap()], arguments].concat();
        output_of(&mut swaps.scene.free(&argv), input.as_bytes())
    };
    let mut made = 0;
    // Each edit may meet a link, and is refused then.
    for round in 0.. {
        for request in requests(round) {
            let done = co(&["edit"], &request.to_string());
            made += usize::from(done.status.success());
        }
        if made > 0 && round + 1 >= cases(3) {
            break;
        }
        assert!(round < MOST_ROUNDS, "no edit is ever made");
    }
    for round in 0..cases(1) {
        let line =
            format!("mkdir -p e; echo inside > e/{round}; echo inside > d/kept; rm -f d/sub/f");
        co(&["exec", "--try", "--keep", &line], "");
    }
    swaps.end();
}

#[test]
fn nothing_leads_elsewhere_on_any_kernel() {
    let users = if am_root() {
        &[None, Some(SOMEBODY)][..]
    } else {
        &[None]
    };
    for user in users {
        check_as(*user, &[]);
        check_as(*user, &[python(), "-c", OLDER, "--no-openat2", "0"]);
    }
}
