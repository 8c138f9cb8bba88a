//! The instructions of a workspace: the questions about them, and the requests that have them.

mod revoked;

use std::os::unix::fs::symlink;

use super::chat::{Chat, answered, calls, says};
use crate::chat::trust_questions;
use crate::protocol::{Answer, ToEditor, TrustQuestion};
use co_llm::transcript::Item;

const TABS: &str = "Use tabs.\n";

/// A chat that does not send the `AGENTS.md` of its workspace until the person has answered the question.
async fn asking() -> (Chat, TrustQuestion) {
    let mut chat = Chat::new([]);
    chat.write("AGENTS.md", TABS);
    assert!(!sent(&mut chat, "Use tabs.").await);
    let asked = question(&mut chat).await;
    (chat, asked)
}

/// A chat that sent the trusted `AGENTS.md`.
async fn trusting() -> Chat {
    let (mut chat, asked) = asking().await;
    say(&mut chat, asked.id, Answer::Once).await;
    assert!(sent(&mut chat, "Use tabs.").await);
    chat
}

/// Begins a new chat in the workspace, and returns the system prompt of its request.
async fn system_of_a_new_chat(chat: &mut Chat) -> String {
    chat.again().await;
    assert_eq!(chat.turn_with("a new chat", says("ok")).await, "done");
    chat.last_request().system
}

/// The newest question about a file.
async fn question(chat: &mut Chat) -> TrustQuestion {
    loop {
        let asked = chat
            .seen
            .iter()
            .rev()
            .find_map(pick!(ToEditor::Trust(question) => question.clone()));
        match asked {
            Some(question) => return question,
            None => chat.frame().await,
        }
    }
}

fn answer(chat: &Chat, question: u64, decision: Answer) -> bool {
    trust_questions::answer(&chat.services, &answered(question, decision))
}

/// Answers, and waits until that is on disk.
async fn say(chat: &mut Chat, id: u64, decision: Answer) -> String {
    assert!(answer(chat, id, decision));
    chat.noticed().await.1
}

/// Runs a turn and returns whether its request is the first one that says `text` of the place.
async fn sent(chat: &mut Chat, text: &str) -> bool {
    let before = told(chat).matches(text).count();
    assert_eq!(chat.turn_with("go", says("ok")).await, "done");
    told(chat).matches(text).count() > before
}

/// All that the last request says of the place: the system prompt, and the notes about changes.
fn told(chat: &Chat) -> String {
    let Some(request) = chat.model.requests().pop() else {
        return String::new();
    };
    let notes = request
        .items
        .iter()
        .filter_map(pick!(Item::Note { text, .. } => text.as_str()));
    notes.fold(request.system.clone(), |told, note| told + "\n" + note)
}

const ANEW: &str = "instructions are no longer sent; the model reads the chat from its start";

const NO_LONGER: &str = "The instructions no longer hold.";

fn questions(chat: &Chat) -> usize {
    let seen = chat.seen.iter();
    seen.filter(|message| matches!(message, ToEditor::Trust(_)))
        .count()
}

#[tokio::test]
async fn a_scout_gets_them_as_its_chat_does() {
    let told = async |chat: &mut Chat| {
        let ended = chat.turn_with("/explore where is it?", says("It.")).await;
        assert_eq!(ended, "done");
        chat.last_request().system
    };
    let (mut chat, asked) = asking().await;
    assert!(!told(&mut chat).await.contains(TABS));
    say(&mut chat, asked.id, Answer::Once).await;
    let system = told(&mut chat).await;
    assert!(system.contains("You are a scout"), "{system}");
    assert!(system.ends_with("## AGENTS.md\nUse tabs."), "{system}");
}

#[tokio::test]
async fn they_are_sent_from_the_turn_after_the_yes() {
    let (mut chat, asked) = asking().await;
    assert!(!sent(&mut chat, "Use tabs.").await);
    assert_eq!(questions(&chat), 1, "one question for two prompts");
    chat.again().await;
    assert!(!sent(&mut chat, "Use tabs.").await);
    assert_eq!(questions(&chat), 1, "nor a second one for another chat");
    let path = chat.work.join("AGENTS.md");
    assert_eq!(
        (asked.name.as_str(), asked.path.as_str(), asked.size),
        ("AGENTS.md", path.to_str().unwrap(), TABS.len())
    );
    assert_eq!(asked.text, TABS);
    assert!(asked.notes.is_empty(), "{:?}", asked.notes);
    let told = say(&mut chat, asked.id, Answer::Once).await;
    assert_eq!(
        told,
        "AGENTS.md is sent to the model from the next prompt on"
    );
    assert!(sent(&mut chat, "Use tabs.").await);
    assert!(!sent(&mut chat, "Use tabs.").await, "it is told once");
    let line = "> AGENTS.md is not sent to the model until you trust it";
    assert_eq!(chat.screen().matches(line).count(), 2, "once for each chat");
    let system = system_of_a_new_chat(&mut chat).await;
    assert!(system.contains("Use tabs."), "{system}");
    assert!(!answer(&chat, asked.id, Answer::Deny));
}

#[tokio::test]
async fn a_changed_text_asks_again_and_is_not_sent() {
    let (mut chat, first) = asking().await;
    chat.write("AGENTS.md", "Use spaces.\n");
    assert!(!sent(&mut chat, "Use").await);
    let second = question(&mut chat).await;
    assert_eq!(second.text, "Use spaces.\n");
    assert!(chat.was_withdrawn(first.id), "its text is gone");
    say(&mut chat, second.id, Answer::Once).await;
    assert!(sent(&mut chat, "Use spaces.").await);
    chat.write("AGENTS.md", TABS);
    assert!(sent(&mut chat, NO_LONGER).await);
    assert!(!told(&chat).contains("tabs"));
    assert!(!told(&chat).contains("spaces"), "{}", told(&chat));
    let third = question(&mut chat).await;
    assert_eq!(third.notes, ["its text changed since your last answer"]);
    std::fs::remove_file(chat.work.join("AGENTS.md")).unwrap();
    assert!(!sent(&mut chat, "Use").await);
    assert!(chat.was_withdrawn(third.id), "the file is gone");
}

#[tokio::test]
async fn a_no_is_kept_and_rules_take_an_answer_back() {
    let mut chat = Chat::new([]);
    chat.write("CO.md", "Use spaces.\n");
    chat.write("AGENTS.md", TABS);
    assert!(!sent(&mut chat, "Use").await);
    let asked = question(&mut chat).await;
    assert_eq!(asked.name, "CO.md");
    let told = say(&mut chat, asked.id, Answer::Deny).await;
    assert!(told.contains("not sent to the model"), "{told}");
    // The other file is next.
    assert!(!sent(&mut chat, "Use").await);
    let asked = question(&mut chat).await;
    assert_eq!(asked.name, "AGENTS.md");
    say(&mut chat, asked.id, Answer::Once).await;
    assert!(sent(&mut chat, "Use tabs.").await);
    assert_eq!(questions(&chat), 2);

    let choices = chat.command_offers("rules").await;
    let work = chat.work.display();
    let labels: Vec<_> = choices.iter().map(|choice| choice.label.as_str()).collect();
    assert_eq!(
        labels,
        [
            format!("refuse {work}/CO.md (saved)"),
            format!("trust {work}/AGENTS.md (saved)"),
        ]
    );
    for choice in choices {
        chat.command_works("rules", &choice.value, "").await;
    }
    assert!(!sent(&mut chat, "Use").await);
    assert_eq!(question(&mut chat).await.name, "CO.md");
    chat.assert_shown("> CO.md is not sent to the model until");
}

/// Answers yes to the question about a file.
async fn trust(chat: &mut Chat, name: &str) {
    let asked = chat
        .seen
        .iter()
        .find_map(pick!(ToEditor::Trust(question) if question.name == name => question.id));
    let id = asked.unwrap_or_else(|| panic!("no question about {name}"));
    say(chat, id, Answer::Once).await;
}

/// Writes instructions in the directory of the person's configuration, and returns the path.
fn write_own(chat: &Chat, name: &str) -> String {
    let config = &chat.services.places.config;
    std::fs::create_dir_all(config).unwrap();
    let path = config.join(name);
    std::fs::write(&path, "Mine.\n").unwrap();
    path.display().to_string()
}

#[tokio::test]
async fn those_of_nearer_directories_come_first_and_those_of_the_person_last() {
    let mut chat = Chat::new([]);
    chat.write("CLAUDE.md", "At the top.\n");
    chat.write("a/CLAUDE.md", "Between.\n");
    chat.write("a/b/CO.md", "Nearest.\n");
    chat.write("other/CO.md", "Elsewhere.\n");
    let own = write_own(&chat, "AGENTS.md");
    chat.command("cd", "a/b");
    assert!(!sent(&mut chat, "# Instructions").await);
    assert_eq!(questions(&chat), 4);
    for name in ["CLAUDE.md", "a/CLAUDE.md", "a/b/CO.md", &own] {
        trust(&mut chat, name).await;
    }
    // They come in a note: the requests begin as before.
    let system = chat.last_request().system;
    assert!(sent(&mut chat, "Nearest.").await);
    assert_eq!(chat.last_request().system, system);
    chat.again().await;
    chat.command("cd", "a/b");
    assert_eq!(chat.turn_with("a new chat", says("ok")).await, "done");
    let system = chat.last_request().system;
    let expected = format!(
        "## a/b/CO.md\nNearest.\n\n## a/CLAUDE.md\nBetween.\n\n## CLAUDE.md\nAt the top.\n\n## {own}\nMine."
    );
    assert!(system.ends_with(&expected), "{system}");
    let choices = chat.command_offers("rules").await;
    assert_eq!(choices.len(), 4, "all can be taken back");
}

#[tokio::test]
async fn a_file_that_is_trusted_later_changes_no_start_of_a_request() {
    let mut chat = trusting().await;
    let system = system_of_a_new_chat(&mut chat).await;
    let own = write_own(&chat, "CO.md");
    assert!(!sent(&mut chat, "Mine.").await);
    trust(&mut chat, &own).await;
    assert!(sent(&mut chat, "Mine.").await);
    assert_eq!(chat.last_request().system, system);
    assert!(!chat.screen().contains(ANEW));
}

#[tokio::test]
async fn of_files_that_are_long_together_the_last_is_left_out() {
    let mut chat = Chat::new([]);
    let names = ["CO.md", "a/CO.md", "a/b/CO.md"];
    for name in names {
        chat.write(name, format!("{name} {}", "x".repeat(40 << 10)));
    }
    chat.command("cd", "a/b");
    assert!(!sent(&mut chat, "# Instructions").await);
    for name in names {
        trust(&mut chat, name).await;
    }
    assert!(sent(&mut chat, "a/CO.md x").await);
    assert!(told(&chat).contains("a/b/CO.md x"));
    assert!(!told(&chat).contains("## CO.md"));
    let message = "CO.md is left out: all instructions may have 64 KiB";
    let said =
        |it: &&ToEditor| matches!(it, ToEditor::Notice { message: told, .. } if told == message);
    assert!(!sent(&mut chat, "## CO.md").await);
    assert_eq!(chat.seen.iter().filter(said).count(), 1, "said once");
}

#[tokio::test]
async fn a_trusted_file_that_goes_is_no_longer_sent() {
    let mut chat = trusting().await;
    chat.command("cd", chat.services.places.home.to_str().unwrap());
    assert!(sent(&mut chat, NO_LONGER).await);
}

#[tokio::test]
async fn an_answer_that_cannot_be_saved_holds_for_this_neovim() {
    let (mut chat, asked) = asking().await;
    std::fs::create_dir_all(chat.services.places.trust.join("lock")).unwrap();
    let told = say(&mut chat, asked.id, Answer::Once).await;
    assert!(
        told.starts_with("the answer about AGENTS.md could not be saved, so it ends with Neovim: "),
        "{told}"
    );
    assert!(sent(&mut chat, "Use tabs.").await);
}

#[tokio::test]
async fn what_is_no_text_file_is_left_out_and_hidden_characters_are_shown() {
    for (make, why) in [
        (
            &(|path: &std::path::Path| std::fs::create_dir(path).unwrap())
                as &dyn Fn(&std::path::Path),
            "it is not a regular file",
        ),
        (
            &|path| nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap(),
            "it is not a regular file",
        ),
        (
            &|path| symlink("/dev/zero", path).unwrap(),
            "it is not a regular file",
        ),
        (
            &|path| std::fs::write(path, "x".repeat((1 << 20) + 1)).unwrap(),
            "it is larger than 1 MiB",
        ),
    ] {
        let mut chat = Chat::new([]);
        make(&chat.work.join("AGENTS.md"));
        assert!(!sent(&mut chat, "# Instructions").await);
        assert!(!sent(&mut chat, "# Instructions").await);
        let notices = chat
            .seen
            .iter()
            .filter_map(pick!(ToEditor::Notice { message, .. } => message.clone()));
        assert_eq!(
            notices.collect::<Vec<_>>(),
            [format!("AGENTS.md is left out: {why}")],
            "said once"
        );
    }
    let mut chat = Chat::new([]);
    chat.write("AGENTS.md", " \n");
    assert!(!sent(&mut chat, "# Instructions").await);
    assert_eq!(questions(&chat), 0, "nothing is in it");
    chat.write("AGENTS.md", b"one\r\ntwo\xff\x1b[8m\xe2\x80\x8b".as_slice());
    assert!(!sent(&mut chat, "# Instructions").await);
    let asked = question(&mut chat).await;
    assert_eq!(asked.text, "one\ntwo\u{fffd}\\u{1b}[8m\\u{200b}");
    assert_eq!(
        asked.notes,
        ["it is not valid UTF-8: \u{fffd} replaces wrong bytes"]
    );
    chat.write("AGENTS.md", "long\n".repeat(8000));
    assert!(!sent(&mut chat, "# Instructions").await);
    assert_eq!(
        question(&mut chat).await.notes,
        ["only its first 32 KiB are sent"]
    );
}

#[tokio::test]
async fn a_turn_that_runs_goes_on_without_them() {
    let mut chat = Chat::new([calls(&[("1", "touch a")]), says("ok")]);
    chat.write("AGENTS.md", TABS);
    chat.say("go");
    let asked = question(&mut chat).await;
    let command = chat.asked().await;
    say(&mut chat, asked.id, Answer::Once).await;
    chat.answer(command.id, Answer::Once);
    assert_eq!(chat.ended().await, "done");
    let requests = chat.model.requests();
    assert_eq!(requests[0].system, requests[1].system);
    chat.model.push(says("ok"));
    assert_eq!(chat.command_ends("retry").await, "done");
    assert!(told(&chat).contains("Use tabs."));
}
