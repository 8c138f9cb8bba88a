//! The screen of a run.

use std::sync::Arc;

use co_exec::{Screen, ScreenPatch};

use super::Bench;

/// Applies a patch as an editor does.
#[derive(Debug, Default)]
struct Shown {
    skipped: u64,
    lines: Vec<String>,
}

impl Shown {
    fn apply(&mut self, patch: &ScreenPatch) {
        assert!(
            patch.from <= self.lines.len(),
            "a hole before {}",
            patch.from
        );
        self.skipped = patch.skipped;
        self.lines.truncate(patch.from);
        self.lines.extend(patch.lines.iter().cloned());
    }
}

async fn watch(screen: Arc<Screen>) -> (Shown, Vec<ScreenPatch>) {
    let mut shown = Shown::default();
    let mut patches = Vec::new();
    while screen.changed().await {
        if let Some(patch) = screen.take() {
            shown.apply(&patch);
            patches.push(patch);
        }
    }
    assert_eq!(screen.take(), None);
    (shown, patches)
}

async fn run(command: &str) -> (Shown, Vec<ScreenPatch>) {
    let bench = Bench::new();
    let running = bench.start(command).await;
    let watcher = tokio::spawn(watch(running.screen()));
    running.outcome().await;
    watcher.await.expect("the watcher ends")
}

#[tokio::test]
async fn lines_come_as_they_are_printed() {
    let (shown, patches) =
        run("echo one; sleep 0.2; printf tw; sleep 0.2; echo o; printf end").await;
    assert_eq!(shown.lines, ["one", "two", "end"]);
    assert_eq!(shown.skipped, 0);
    assert!(patches.len() >= 3, "{patches:?}");
    let (shown, _) = run("true").await;
    assert!(shown.lines.is_empty());
}

#[tokio::test]
async fn a_progress_bar_is_one_line() {
    let (shown, _) = run(
        "for i in 1 2 3; do printf \"\\r$i of 3\"; sleep 0.1; done; printf '\\r\\033[K'; echo done",
    )
    .await;
    assert_eq!(shown.lines, ["done"]);
    let (shown, _) = run("printf 'gone soon'; sleep 0.2; printf '\\r\\033[K'").await;
    assert!(shown.lines.is_empty(), "{shown:?}");
}

#[tokio::test]
async fn colours_are_kept() {
    let (_, patches) = run("printf 'a\\033[1;31mred\\033[0m\\n'").await;
    let style = &patches[0].styles[0];
    assert_eq!(
        (style.line, style.start, style.end, style.sgr.as_str()),
        (0, 1, 4, "1;31")
    );
    assert_eq!(patches[0].lines, ["ared"]);
}

#[tokio::test]
async fn so_many_styles_are_sent_as_an_editor_shows_at_once() {
    let (shown, patches) =
        run("for i in $(seq 1 4000); do printf '\\033[31mx\\033[32my'; done").await;
    assert_eq!(shown.lines, ["xy".repeat(4000)]);
    let most = patches.iter().map(|patch| patch.styles.len()).max();
    assert_eq!(most, Some(5000));
}

#[tokio::test]
async fn a_flood_shows_a_screenful_and_then_the_kept_tail() {
    let (shown, patches) = run("seq 1 300000; sleep 0.3; echo last").await;
    assert_eq!(shown.lines.len(), 10_000);
    assert_eq!(shown.skipped, 290_001);
    let expected = (290_002..=300_000)
        .map(|n| n.to_string())
        .chain(["last".to_owned()]);
    assert!(shown.lines.iter().cloned().eq(expected));
    let full = patches
        .iter()
        .rposition(|patch| patch.from == 0)
        .expect("the tail");
    assert!(full > 0, "only at the end");
    for patch in &patches[..full] {
        assert!(patch.lines.len() <= 2_001, "{}", patch.lines.len());
        let size: usize = patch.lines.iter().map(|line| line.len() + 1).sum();
        assert!(size <= 256 << 10);
        // What is skipped is exact: the line itself says its number.
        if patch.lines[0] != "last" && patch.lines[0].len() < 7 {
            let number: u64 = patch.lines[0].parse().expect("a number");
            let at = patch.skipped + patch.from as u64;
            assert!(number == at + 1 || patch.from > 0, "{number} at {at}");
        }
    }
}

#[tokio::test]
async fn many_short_lines_between_two_looks_are_a_flood_too() {
    let bench = Bench::new();
    let running = bench.start("seq 5000; exec sleep 300").await;
    let reading = running.reading();
    super::eventually("all are printed", || {
        reading.next();
        reading.amount() == "5000 lines"
    })
    .await;
    let patch = running.screen().take().expect("a patch");
    assert_eq!((patch.skipped, patch.lines.len()), (4_900, 100));
    running.cancel();
    running.outcome().await;
}

#[tokio::test]
async fn long_lines_are_bounded_in_bytes() {
    let (shown, patches) =
        run("for i in {1..40}; do head -c 200000 /dev/zero | tr '\\0' x; echo; done").await;
    assert!(
        shown.lines.len() > 10 && shown.lines.len() <= 40,
        "{}",
        shown.lines.len()
    );
    assert_eq!(shown.skipped + shown.lines.len() as u64, 40);
    for patch in patches {
        let size: usize = patch.lines.iter().map(|line| line.len() + 1).sum();
        assert!(size <= 256 << 10, "{size}");
    }
}

#[tokio::test]
async fn what_is_not_shown_of_a_line_is_said() {
    let (shown, _) = run("echo; head -c 10000000 /dev/zero | tr '\\0' x").await;
    assert_eq!(shown.lines.len(), 1);
    assert!(
        shown.lines[0].starts_with("… x"),
        "{}",
        &shown.lines[0][..9]
    );
    let (shown, _) = run("seq -f 'a line of some length: %g' 300000").await;
    assert!(
        shown.lines[0].starts_with("a line of"),
        "{}",
        shown.lines[0]
    );
}

#[tokio::test]
async fn binary_output_is_named() {
    let (shown, _) = run("head -c 100000 /dev/zero").await;
    assert_eq!(shown.lines, ["binary output, 100000 bytes"]);
    let (shown, _) = run("head -c 2000 /dev/zero; sleep 0.2; head -c 98000 /dev/zero").await;
    assert_eq!(shown.lines, ["binary output, 100000 bytes"]);
    let program = std::env::current_exe().unwrap();
    let (shown, _) = run(&format!("head -c 30000 '{}'", program.display())).await;
    assert_eq!(shown.lines, ["binary output, 30000 bytes"]);
}

#[tokio::test]
async fn nul_bytes_are_shown_within_text() {
    let (shown, _) = run("echo t.c:1: error; printf 'a\\0b\\n'; echo after").await;
    assert_eq!(shown.lines, ["t.c:1: error", "a\0b", "after"]);
    let (shown, _) = run("echo t.c:1: error; sleep 0.2; printf '\\0\\0\\n'").await;
    assert_eq!(shown.lines, ["t.c:1: error", "\0\0"]);
    let (shown, _) = run("printf '%s\\0' a b c").await;
    assert_eq!(shown.lines, ["a\0b\0c\0"]);
}

#[tokio::test]
async fn binary_data_leaves_the_text_before_it() {
    for pause in ["", "sleep 0.2;"] {
        let (shown, _) = run(&format!(
            "echo t.c:1: error; {pause} head -c 3000 /dev/zero"
        ))
        .await;
        assert_eq!(shown.lines, ["t.c:1: error".to_owned(), "\0".repeat(3000)]);
    }
    let text = "head -c 9 /dev/zero; sleep 0.2; echo; seq 1 100";
    let (shown, _) = run(text).await;
    assert_eq!(shown.lines.len(), 101);
    assert_eq!(shown.lines[..2], ["\0".repeat(9).as_str(), "1"]);
}

#[tokio::test]
async fn nobody_has_to_look() {
    let bench = Bench::new();
    let running = bench.start("seq 1 50000").await;
    let screen = running.screen();
    running.outcome().await;
    let (shown, patches) = watch(screen).await;
    assert_eq!((shown.skipped, shown.lines.len()), (40_000, 10_000));
    assert_eq!(patches.len(), 1);
}
