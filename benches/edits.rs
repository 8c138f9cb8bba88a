//! Measures edits of a file of 50,000 lines: `CO_TEST_NVIM=… cargo bench --bench edits`. Ends with 1 if a limit is passed.
//!
//! The review is timed in a real Neovim, in `benches/review.lua`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement prints, and stops where it cannot"
)]

use std::fs;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use co::buffers::OpenBuffers;
use co::workspace::edits::{EditPlace, EditRequest, SeenTexts, propose};
use co_edit::Edit;

const LINES: usize = 50_000;
const EDITS: usize = 1_000;
const HUNKS: usize = 200;
const ROUNDS: usize = 11;
/// The longest time for one of the edits.
const EDIT_LIMIT: Duration = Duration::from_millis(1);
/// The longest time from the key until the review is on the screen.
const REVIEW_LIMIT: Duration = Duration::from_millis(50);

fn main() -> ExitCode {
    let top = tempfile::tempdir().unwrap();
    let root = top.path().canonicalize().unwrap();
    let file = root.join("long.txt");
    let text: String = (0..LINES).map(line).collect();
    fs::write(&file, text).unwrap();
    let place = EditPlace {
        shown: "long.txt".to_owned(),
        root,
        real: file,
        is_link: false,
        obeyed: None,
    };
    let propose = |edits| {
        let request = EditRequest::Edit {
            path: "long.txt".to_owned(),
            edits: edits_of(edits),
            hash: None,
        };
        let (open, seen) = (OpenBuffers::new(), SeenTexts::default());
        propose(&request, std::slice::from_ref(&place), &open, &seen).unwrap()
    };
    let one = median(|| time(|| drop(propose(1))));
    let many = median(|| time(|| drop(propose(EDITS))));
    let each = many / u32::try_from(EDITS).unwrap();
    println!(
        "a proposal of one edit: {one:?}; of {EDITS}: {many:?}, {each:?} each, target {EDIT_LIMIT:?}"
    );
    let proposal = propose(HUNKS);
    assert_eq!(proposal.for_review().parts, HUNKS);
    let shown = median(review_in_neovim);
    println!("the review of {HUNKS} hunks on the screen: {shown:?}, target {REVIEW_LIMIT:?}");
    ExitCode::from(u8::from(each > EDIT_LIMIT || shown > REVIEW_LIMIT))
}

fn line(number: usize) -> String {
    format!("let value_{number} = compute({number});\n")
}

/// Returns edits of lines that lie apart.
fn edits_of(count: usize) -> Vec<Edit> {
    let edit = |number| Edit {
        old: line(number),
        new: format!("let changed_{number} = 1;\n"),
        all: false,
    };
    (0..count).map(|it| edit(it * (LINES / count))).collect()
}

/// Opens a review in a Neovim of its own. Returns the time until it is drawn.
fn review_in_neovim() -> Duration {
    let nvim = std::env::var("CO_TEST_NVIM").unwrap_or_else(|_| "nvim".to_owned());
    let root = env!("CARGO_MANIFEST_DIR");
    let output = Command::new(nvim)
        .args(["--headless", "--clean", "-u", "NONE"])
        .args([
            "--cmd",
            &format!("set runtimepath^={root} columns=120 lines=40"),
        ])
        .args(["-c", &format!("luafile {root}/benches/review.lua")])
        .args(["-c", "qa!"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let nanoseconds = said.trim().parse();
    Duration::from_nanos(nanoseconds.unwrap_or_else(|_| panic!("Neovim said {said}")))
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(measure: impl FnMut() -> Duration) -> Duration {
    let mut times: Vec<_> = std::iter::repeat_with(measure).take(ROUNDS).collect();
    times.sort_unstable();
    times[times.len() / 2]
}
