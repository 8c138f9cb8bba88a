//! The rounds of `/review`.

use serde_json::json;

use super::changes::{first_turn, turn};
use super::chat::{Chat, call, done, says, tool};
use super::checkpoints::prepare;
use crate::chat::Msg;
use crate::checkpoint::{ChangeCause, Record};
use crate::protocol::{Answer, BufferText, ChangesReview, PartAnswer, ToEditor};
use co_llm::transcript::Decision;

async fn review(chat: &mut Chat) -> ChangesReview {
    chat.command("review", "");
    chat.until(pick!(ToEditor::Changes(review) => review.clone()))
        .await
}

fn keep(chat: &Chat, review: &ChangesReview, file: usize, answers: &[PartAnswer]) {
    chat.send(Msg::KeepAnswers {
        id: review.id,
        file,
        answers: answers.to_vec(),
    });
}

fn answer(part: usize, accept: Option<bool>, comment: &str) -> PartAnswer {
    PartAnswer {
        part,
        accept,
        lines: None,
        comment: (!comment.is_empty()).then(|| comment.to_owned()),
    }
}

/// Ends a review and returns what co says about it.
async fn end(chat: &mut Chat, review: &ChangesReview) -> String {
    chat.review(review.id, Vec::new());
    chat.noticed().await.1
}

fn texts(review: &ChangesReview) -> Vec<(&str, &str)> {
    let files = review.files.iter();
    files
        .map(|it| (it.path.as_str(), it.text.as_str()))
        .collect()
}

#[tokio::test]
async fn rounds_have_what_is_not_answered_yet() {
    let mut chat = first_turn().await;
    let first = review(&mut chat).await;
    assert!(first.round);
    assert_eq!(first.files[0].calls, ["edit_file a · approved"; 2]);
    keep(&chat, &first, 0, &[answer(1, Some(true), "")]);
    keep(&chat, &first, 1, &[answer(1, Some(false), "")]);
    chat.review(first.id, Vec::new());
    let said = chat.noticed().await.1;
    let taken_back = "parts of 1 file taken back; :Co /redo undoes that";
    assert_eq!(
        said,
        format!("1 change accepted; 1 change still open; {taken_back}")
    );
    assert!(!chat.work.join("dir").exists());
    assert_eq!(chat.read("a"), "1\ntwo\n3\n4\nfive\n6\n7\n8\n");
    // What the person changes is shown, and not asked about.
    chat.write("a", "1\ntwo\nmine\n3\n4\nfive\n6\n7\n8\n");
    turn(&mut chat, "second", 1).await;
    let second = review(&mut chat).await;
    let text = " 1\n two\n~mine\n 3\n 4\n@\n-5\n+five\n 6\n 7\n 8\n@\n+nine\n";
    assert_eq!(texts(&second), [("a", text)]);
    keep(
        &chat,
        &second,
        0,
        &[answer(1, Some(false), ""), answer(2, Some(true), "")],
    );
    end(&mut chat, &second).await;
    assert_eq!(chat.read("a"), "1\ntwo\nmine\n3\n4\n5\n6\n7\n8\nnine\n");
    let nothing = "nothing to review";
    chat.command_works("review", "", nothing).await;
    // What comes back is open again.
    chat.command("redo", "");
    chat.approve().await;
    chat.noticed().await;
    let again = review(&mut chat).await;
    let text = " 1\n two\n mine\n 3\n 4\n@\n-5\n+five\n 6\n 7\n 8\n nine\n";
    assert_eq!(texts(&again), [("a", text)]);
}

#[tokio::test]
async fn a_review_that_is_put_away_keeps_its_answers() {
    let mut chat = first_turn().await;
    let first = review(&mut chat).await;
    let answers = [answer(1, Some(false), ""), answer(2, None, "why `five`?")];
    keep(&chat, &first, 0, &answers);
    chat.answer(first.id, Answer::Deny);
    // The person settles the first part, so that its answer is void. The second one stays.
    chat.write("a", "1\nTWO\n3\n4\nfive\n6\n7\n8\n");
    let again = review(&mut chat).await;
    assert_eq!(again.files[0].answers, [answer(1, None, "why `five`?")]);
    end(&mut chat, &again).await;
    assert_eq!(
        chat.unsent().await,
        "About your changes:\n\na:5: why `five`?\n```diff\n-5\n+five\n```\n"
    );
    assert_eq!(chat.read("a"), "1\nTWO\n3\n4\nfive\n6\n7\n8\n");
    // A comment goes into one prompt. The part stays open.
    let last = review(&mut chat).await;
    assert_eq!(last.files[0].answers, []);
    assert_eq!(last.files[0].parts, 1);
}

#[tokio::test]
async fn open_changes_are_counted_and_have_signs() {
    let mut chat = first_turn().await;
    let summary = |message: &ToEditor| match message {
        ToEditor::State { open, .. } => open.as_ref().map(|it| (it.changes, it.files)),
        _ => None,
    };
    assert_eq!(chat.until(summary).await, (3, 2));
    let files = chat.until(pick!(ToEditor::OpenChanges { files, .. } => files.clone()));
    let files = files.await;
    let a = files.iter().find(|it| it.file.ends_with("/a")).unwrap();
    let lines: Vec<_> = a.lines.iter().map(|it| (it.first, it.count)).collect();
    assert_eq!(lines, [(2, 1), (5, 1)]);
    let first = review(&mut chat).await;
    keep(&chat, &first, 0, &[answer(1, Some(true), "")]);
    keep(&chat, &first, 1, &[answer(1, Some(true), "")]);
    chat.review(first.id, Vec::new());
    // The quickfix list has what is still open.
    let list = chat.until(
        pick!(ToEditor::Quickfix { title, entries, update: true } => (title.clone(), entries.len())),
    );
    let expected = ("Co /review: 1 change in 1 file".to_owned(), 1);
    assert_eq!(list.await, expected);
    assert_eq!(chat.until(summary).await, (1, 1));
}

#[tokio::test]
async fn the_changes_of_another_chat_are_counted_again_after_its_turn_and_its_review() {
    let write = tool("1", "write_file", json!({ "path": "new", "text": "co\n" }));
    let mut chat = Chat::new([
        vec![write, done()],
        says("Done."),
        vec![call("2", "rm new"), done()],
        says("Done."),
    ]);
    prepare(&chat);
    let count = |message: &ToEditor| match message {
        ToEditor::State { chat: 1, open, .. } => Some(open.as_ref().map_or(0, |it| it.changes)),
        _ => None,
    };
    turn(&mut chat, "first", 1).await;
    chat.until(|it| count(it).filter(|it| *it == 1)).await;
    let other = chat.spawn(2);
    let _first = chat.go_to(other);
    turn(&mut chat, "second", 1).await;
    chat.until(|it| count(it).filter(|it| *it == 0)).await;
    let removal = review(&mut chat).await;
    keep(&chat, &removal, 0, &[answer(1, Some(false), "")]);
    end(&mut chat, &removal).await;
    chat.until(|it| count(it).filter(|it| *it == 1)).await;
}

#[tokio::test]
async fn a_prompt_puts_the_review_away() {
    let mut chat = first_turn().await;
    let first = review(&mut chat).await;
    keep(&chat, &first, 1, &[answer(1, Some(false), "no")]);
    turn(&mut chat, "second", 1).await;
    assert!(chat.work.join("dir/new").exists());
    let again = review(&mut chat).await;
    assert_eq!(again.files[1].answers, [answer(1, Some(false), "no")]);
    end(&mut chat, &again).await;
    assert!(!chat.work.join("dir").exists());
}

#[tokio::test]
async fn only_what_was_shown_is_accepted() {
    let mut chat = first_turn().await;
    let first = review(&mut chat).await;
    keep(
        &chat,
        &first,
        0,
        &[answer(1, Some(true), ""), answer(2, Some(true), "")],
    );
    keep(&chat, &first, 1, &[answer(1, Some(true), "")]);
    // A job of the chat changes the lines of an answer, and others, during the review.
    let root = chat.work.canonicalize().unwrap();
    let workspace = chat
        .services
        .checkpoints
        .workspace(&chat.services.judge(&root));
    let workspace = workspace.unwrap();
    let before = workspace.before_edit(&[root.join("a")]).unwrap();
    chat.write("a", "1\ntwo\n3\n4\nFIVE\n6\n7\nEIGHT\n");
    let by = ChangeCause::Call {
        what: "job".to_owned(),
        decision: Decision::Approved,
        command: true,
    };
    let record = Record {
        changes: workspace.after_edit(before).changes,
        ..Record::new(0, by, &root)
    };
    let id = chat.services.store.list(None).remove(0).id;
    chat.services.checkpoints.append(&id, &record).unwrap();
    let void = "1 answer not carried out, as the lines have changed since";
    let said = end(&mut chat, &first).await;
    assert_eq!(
        said,
        format!("{void}; 2 changes accepted; 2 changes still open")
    );
    let again = review(&mut chat).await;
    let text = " 1\n two\n 3\n 4\n@\n-5\n+FIVE\n 6\n 7\n@\n-8\n+EIGHT\n";
    assert_eq!(texts(&again), [("a", text)]);
}

#[tokio::test]
async fn a_file_that_cannot_be_changed_loses_no_other_answer() {
    let mut chat = first_turn().await;
    let first = review(&mut chat).await;
    let answers = [answer(1, Some(true), ""), answer(2, Some(false), "")];
    keep(&chat, &first, 0, &answers);
    keep(&chat, &first, 1, &[answer(1, Some(false), "")]);
    // The buffer of the file has unsaved text and cannot be changed.
    let text = chat.read("a");
    chat.open = Some(vec![BufferText {
        file: chat.work.join("a").display().to_string(),
        text: text.into_bytes(),
        tick: 1,
        encoding: "utf-8".to_owned(),
        modified: true,
        problem: Some("it cannot be changed".to_owned()),
    }]);
    let said = end(&mut chat, &first).await;
    assert!(said.contains("1 change accepted; "), "{said}");
    assert!(
        said.contains("a stays: its buffer has unsaved changes"),
        "{said}"
    );
    assert!(!chat.work.join("dir").exists());
    chat.open = Some(Vec::new());
    let again = review(&mut chat).await;
    let text = " 1\n two\n 3\n 4\n@\n-5\n+five\n 6\n 7\n 8\n";
    assert_eq!(texts(&again), [("a", text)]);
}
