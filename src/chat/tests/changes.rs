//! The review of `/review`.

use serde_json::json;

use super::chat::{Chat, call, done, says, tool};
use super::checkpoints::prepare;
use crate::protocol::{Answer, ChangesReview, HunkAnswer, ToEditor};
use co_llm::transcript::Item;

const TEXT: &str = "1\n2\n3\n4\n5\n6\n7\n8\n";

/// A chat whose first turn changed two places of `a` and made `dir/new`. Its second turn adds a line to `a` by a command.
pub(super) async fn first_turn() -> Chat {
    let edits = json!([{ "old": "2", "new": "two" }, { "old": "5", "new": "five" }]);
    let mut chat = Chat::new([
        vec![
            tool("1", "edit_file", json!({ "path": "a", "edits": edits })),
            tool(
                "2",
                "write_file",
                json!({ "path": "dir/new", "text": "co\n" }),
            ),
            done(),
        ],
        says("Done."),
        vec![call("3", "echo nine >> a"), done()],
        says("Done."),
    ]);
    chat.write("a", TEXT);
    prepare(&chat);
    turn(&mut chat, "first", 2).await;
    chat
}

/// Takes a turn in which this number of calls is approved.
pub(super) async fn turn(chat: &mut Chat, prompt: &str, calls: usize) {
    chat.say(prompt);
    for _ in 0..calls {
        chat.approve().await;
    }
    assert_eq!(chat.ended().await, "done");
}

/// The same chat after its second turn.
async fn two_turns() -> Chat {
    let mut chat = first_turn().await;
    turn(&mut chat, "second", 1).await;
    chat
}

async fn review(chat: &mut Chat) -> ChangesReview {
    chat.command("changes", "");
    chat.until(pick!(ToEditor::Changes(review) => review.clone()))
        .await
}

fn answers(accept: impl IntoIterator<Item = bool>) -> Vec<HunkAnswer> {
    let answer = |accept| HunkAnswer {
        accept,
        lines: None,
        comment: None,
    };
    accept.into_iter().map(answer).collect()
}

async fn noticed(chat: &mut Chat) -> String {
    chat.noticed().await.1
}

#[tokio::test]
async fn a_review_names_the_call_and_the_approval_of_each_part() {
    let mut chat = two_turns().await;
    let review = review(&mut chat).await;
    let [a, new] = &review.files[..] else {
        panic!("{review:?}");
    };
    assert_eq!((a.path.as_str(), new.path.as_str()), ("a", "dir/new"));
    let edit = "edit_file a · approved";
    assert_eq!(a.calls, [edit, edit, "echo nine >> a · approved"]);
    let expected = " 1\n@\n-2\n+two\n 3\n 4\n@\n-5\n+five\n 6\n 7\n 8\n@\n+nine\n";
    assert_eq!(a.text.as_str(), expected);
    assert_eq!(new.text.as_str(), "@\n+co\n");
    assert_eq!(new.calls, ["write_file dir/new · approved"]);
}

#[tokio::test]
async fn parts_are_taken_back_and_brought_back() {
    let mut chat = two_turns().await;
    let id = review(&mut chat).await.id;
    // The person types during the review.
    chat.write("a", "mine\n1\ntwo\n3\n4\nfive\n6\n7\n8\nnine\n");
    chat.review(id, answers([false, true, true, false]));
    let said = noticed(&mut chat).await;
    assert_eq!(said, "parts of 2 files taken back; :Co /redo undoes that");
    assert_eq!(chat.read("a"), "mine\n1\n2\n3\n4\nfive\n6\n7\n8\nnine\n");
    assert!(!chat.work.join("dir").exists());
    let left = review(&mut chat).await;
    assert_eq!(left.files.len(), 1, "{left:?}");
    assert_eq!(left.files[0].parts, 2);
    chat.answer(left.id, Answer::Deny);
    chat.command("redo", "");
    let ask = chat.asked().await;
    assert_eq!(ask.reasons[0], "of the turn “first”");
    chat.answer(ask.id, Answer::Once);
    assert_eq!(noticed(&mut chat).await, "2 files brought back");
    assert_eq!(chat.read("a"), "mine\n1\ntwo\n3\n4\nfive\n6\n7\n8\nnine\n");
    assert_eq!(chat.read("dir/new"), "co\n");
    let all = review(&mut chat).await;
    assert_eq!(all.files[0].parts, 3, "{all:?}");
    chat.answer(all.id, Answer::Deny);
    assert_eq!(chat.turn_with("go on", says("I see.")).await, "done");
    let told = |item: &Item| matches!(item, Item::Note { text, .. } if text.contains("took parts of your changes back"));
    let items = chat.last_request().items;
    assert_eq!(items.iter().filter(|it| told(it)).count(), 1);
}

#[tokio::test]
async fn an_undo_takes_back_the_rest_of_a_turn() {
    let mut chat = two_turns().await;
    let id = review(&mut chat).await.id;
    chat.review(id, answers([false, true, true, true]));
    noticed(&mut chat).await;
    for expected in ["1\n2\n3\n4\nfive\n6\n7\n8\n", TEXT] {
        chat.command("undo", "");
        chat.approve().await;
        noticed(&mut chat).await;
        assert_eq!(chat.read("a"), expected);
    }
    assert!(!chat.work.join("dir").exists());
    for expected in [
        "1\n2\n3\n4\nfive\n6\n7\n8\n",
        "1\n2\n3\n4\nfive\n6\n7\n8\nnine\n",
        "1\ntwo\n3\n4\nfive\n6\n7\n8\nnine\n",
    ] {
        chat.command("redo", "");
        chat.approve().await;
        noticed(&mut chat).await;
        assert_eq!(chat.read("a"), expected);
    }
}

#[tokio::test]
async fn what_the_person_changed_later_is_not_in_the_review() {
    let mut chat = two_turns().await;
    chat.write("a", "1\nmine\n3\n4\nfive\n6\n7\n8\nnine\n");
    let review = review(&mut chat).await;
    assert_eq!(review.files[0].parts, 2, "{review:?}");
    chat.review(review.id, answers([false, false, true]));
    noticed(&mut chat).await;
    assert_eq!(chat.read("a"), "1\nmine\n3\n4\n5\n6\n7\n8\n");
}

#[tokio::test]
async fn a_part_that_changes_during_the_review_stays() {
    let mut chat = two_turns().await;
    let id = review(&mut chat).await.id;
    chat.write("a", "1\nmine\n3\n4\nfive\n6\n7\n8\nnine\n");
    chat.review(id, answers([false, true, true, true]));
    let said = noticed(&mut chat).await;
    assert_eq!(
        said,
        "nothing was changed: a stays: it was changed later, in the same place"
    );
}

#[tokio::test]
async fn a_part_gets_the_text_of_the_person() {
    let mut chat = two_turns().await;
    let id = review(&mut chat).await.id;
    let mut hunks = answers([true, true, true, true]);
    hunks[1].lines = Some(vec!["V".to_owned(), "v".to_owned()]);
    chat.review(id, hunks);
    noticed(&mut chat).await;
    assert_eq!(chat.read("a"), "1\ntwo\n3\n4\nV\nv\n6\n7\n8\nnine\n");
}

#[tokio::test]
async fn comments_become_the_next_prompt() {
    let mut chat = two_turns().await;
    let id = review(&mut chat).await.id;
    let mut hunks = answers([true, false, true, true]);
    hunks[1].comment = Some("five is wrong".to_owned());
    hunks[3].comment = Some("needs a test".to_owned());
    chat.review(id, hunks);
    let prompt = chat.unsent().await;
    assert_eq!(
        prompt,
        "About your changes:\n- a, line 5, which I took back: five is wrong\n- dir/new, line 1: needs a test"
    );
}

#[tokio::test]
async fn a_prompt_ends_the_review() {
    let mut chat = two_turns().await;
    let id = review(&mut chat).await.id;
    assert_eq!(chat.turn_with("hello", says("Hello.")).await, "done");
    let settled = |it: &&ToEditor| matches!(it, ToEditor::Settled { id: gone, .. } if *gone == id);
    assert_eq!(chat.seen.iter().filter(settled).count(), 1);
    chat.review(id, answers([false, false, false, false]));
    let again = review(&mut chat).await;
    assert_eq!(again.files.len(), 2);
}
