use std::time::Duration;

use super::*;
use crate::protocol::TokenUse;

fn append(text: &str) -> ToEditor {
    ToEditor::Append {
        chat: 1,
        text: text.to_owned(),
    }
}

fn state(chat: u64, state: ChatState) -> ToEditor {
    ToEditor::State {
        chat,
        state,
        detail: String::new(),
        model: String::new(),
        cwd: String::new(),
        confinement: String::new(),
        used: TokenUse::default(),
        turn: Box::default(),
        window_used: None,
        queued: 0,
        steering: 0,
        taken_prompts: 0,
        transcript: None,
        title: String::new(),
        commands: Vec::new(),
        chosen: false,
        unusual: Vec::new(),
        open: None,
        plan: None,
        mode: None,
    }
}

fn started() -> ToEditor {
    ToEditor::RunStarted {
        run: 1,
        command: "true".to_owned(),
        cwd: "/".to_owned(),
        owner: None,
        detail: None,
    }
}

#[test]
fn text_joins_text() {
    let (editor, outbox) = Editor::new();
    editor.tell(append("a"));
    editor.tell(append("b"));
    assert_eq!(outbox.take_frame(), [append("ab")]);
    assert_eq!(outbox.take_frame(), []);
}

/// Takes all frames and checks that none is large.
fn frames(outbox: &Outbox) -> Vec<Vec<ToEditor>> {
    let frames = std::iter::repeat_with(|| outbox.take_frame());
    frames.take_while(|frame| !frame.is_empty()).collect()
}

#[test]
fn a_long_text_comes_in_several_frames() {
    let (editor, outbox) = Editor::new();
    let text = "é".repeat(100_000);
    editor.tell(append("x"));
    editor.tell(append(&text));
    editor.tell(state(1, ChatState::Idle));
    let frames = frames(&outbox);
    assert_eq!(frames.len(), 4);
    let mut whole = String::new();
    for message in frames.iter().flatten() {
        match message {
            ToEditor::Append { text, .. } => {
                assert!(text.len() <= FRAME_BYTES);
                whole += text;
            }
            other => assert_eq!(other, &state(1, ChatState::Idle)),
        }
    }
    assert!(whole == format!("x{text}"), "the text differs");
    assert_eq!(frames[3].last(), Some(&state(1, ChatState::Idle)));
}

#[test]
fn a_text_of_many_lines_comes_in_several_frames() {
    let (editor, outbox) = Editor::new();
    editor.tell(append(&"\n".repeat(100_000)));
    let most = FRAME_BYTES / LINE_BYTES;
    let frames = frames(&outbox);
    assert_eq!(frames.len(), 100_000_usize.div_ceil(most));
    assert_eq!(frames[0], [append(&"\n".repeat(most))]);
}

#[test]
fn the_pieces_of_a_thought_are_joined_and_come_in_several_frames() {
    let (editor, outbox) = Editor::new();
    let piece = |from: usize, lines: &[&str], done| ToEditor::Block {
        chat: 1,
        block: 2,
        patch: Some(ScreenPatch {
            from,
            lines: lines.iter().map(|&line| line.to_owned()).collect(),
            ..ScreenPatch::default()
        }),
        done,
    };
    editor.tell(piece(3, &["a", "b"], false));
    editor.tell(piece(4, &["bc", "d"], false));
    editor.tell(piece(6, &["e"], true));
    assert_eq!(frames(&outbox), [[piece(3, &["a", "bc", "d", "e"], true)]]);
    let long = "x".repeat(30_000);
    let lines = [&long[..]; 5];
    editor.tell(piece(0, &lines, true));
    let expected = [
        [piece(0, &lines[..2], false)],
        [piece(2, &lines[..2], false)],
        [piece(4, &lines[..1], true)],
    ];
    assert!(frames(&outbox) == expected, "the lines differ");
}

#[test]
fn texts_of_two_chats_are_not_joined() {
    let told = [
        append("a"),
        ToEditor::Append {
            chat: 2,
            text: "b".to_owned(),
        },
        state(1, ChatState::Streaming),
        state(2, ChatState::Idle),
    ];
    let (editor, outbox) = Editor::new();
    told.iter().cloned().for_each(|it| editor.tell(it));
    // A newer one of the same chat takes its place.
    editor.tell(state(2, ChatState::Streaming));
    let [a, b, first, _] = told;
    assert_eq!(
        outbox.take_frame(),
        [a, b, first, state(2, ChatState::Streaming)]
    );
}

#[tokio::test]
async fn the_start_of_a_run_waits_for_a_frame_of_something_else() {
    let (editor, outbox) = Editor::new();
    editor.tell(started());
    let early = tokio::time::timeout(Duration::from_millis(20), outbox.filled());
    assert!(early.await.is_err());
    editor.tell(append("a"));
    outbox.filled().await;
    assert_eq!(outbox.take_frame(), [started(), append("a")]);
}

#[tokio::test]
async fn what_was_taken_wakes_nobody_again() {
    let (editor, outbox) = Editor::new();
    editor.tell(append("a"));
    outbox.filled().await;
    assert_eq!(outbox.take_frame(), [append("a")]);
    editor.tell(started());
    let early = tokio::time::timeout(Duration::from_millis(20), outbox.filled());
    assert!(early.await.is_err());
}

#[tokio::test]
async fn the_end_of_an_answer_waits_for_no_frame() {
    let (editor, outbox) = Editor::new();
    editor.tell(append("the last words"));
    editor.tell(state(1, ChatState::Streaming));
    let early = tokio::time::timeout(Duration::from_millis(20), outbox.urgent());
    assert!(early.await.is_err());
    editor.tell(state(1, ChatState::Idle));
    outbox.urgent().await;
    let frame = outbox.take_frame();
    assert_eq!(frame, [append("the last words"), state(1, ChatState::Idle)]);
}

#[tokio::test]
async fn an_end_that_did_not_fit_is_urgent_again() {
    let (editor, outbox) = Editor::new();
    let screen = long_output().await;
    let ended = append("the end");
    editor.show(Target::Run(1), screen).finish(ended.clone());
    let mut frames = Vec::new();
    while frames.last().and_then(|frame: &Vec<_>| frame.last()) != Some(&ended) {
        outbox.urgent().await;
        frames.push(outbox.take_frame());
    }
    assert!(frames.len() > 1, "{}", frames.len());
}

#[tokio::test]
async fn an_output_that_fills_frames_keeps_no_other_from_its_turn() {
    let (editor, outbox) = Editor::new();
    let mut showing = Vec::new();
    for run in 1..=3 {
        showing.push(editor.show(Target::Run(run), long_output().await));
    }
    let runs = || -> Vec<u64> {
        let frame = outbox.take_frame().into_iter();
        let run = frame.map(|it| match it {
            ToEditor::RunOutput { run, .. } => run,
            _ => 0,
        });
        run.collect()
    };
    // A piece fills a frame.
    assert_eq!([runs(), runs(), runs()], [[1], [2], [3]]);
}

/// Of more than a frame takes.
async fn long_output() -> Arc<Screen> {
    let bench = tempfile::tempdir().unwrap();
    let settings = co_exec::ExecSettings::new(bench.path().join("spill"));
    let executor = co_exec::Executor::new(co_exec::ExecutorSetup::new(settings)).unwrap();
    let job = executor.start(seq(bench.path())).await.unwrap();
    let screen = job.screen();
    job.outcome().await;
    screen
}

fn seq(dir: &std::path::Path) -> co_exec::CommandSpec {
    co_exec::CommandSpec {
        program: co_exec::Program::Shell("seq -w 100000000 100030000".to_owned()),
        cwd: dir.to_owned(),
        caller: co_exec::Caller::Person,
        stdin: None,
        timeout: Duration::from_secs(60),
        confinement: co_exec::Confinement::Plain,
        environment: co_exec::Environment::default(),
        extra_env: Vec::new(),
    }
}
