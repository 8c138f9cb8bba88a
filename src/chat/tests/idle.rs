//! Nothing goes on while nobody does anything.

use std::time::Duration;

use tokio::runtime::Handle;

use super::chat::{Chat, call, done, eventually, says, text};

const HOURS: Duration = Duration::from_secs(3 * 3600);

/// Returns how often the runtime went to sleep in three hours: once for each time something woke it.
async fn sleeps() -> u64 {
    let metrics = Handle::current().metrics();
    let before = metrics.worker_park_count(0);
    tokio::time::sleep(HOURS).await;
    metrics.worker_park_count(0) - before
}

/// Its executor, its model and the writer's queue are those of a backend at rest too.
#[tokio::test]
async fn a_chat_at_rest_wakes_nobody() {
    let mut chat = Chat::new([
        vec![text("I look."), call("1", "echo out"), done()],
        says("It says out."),
    ]);
    assert_eq!(chat.turn("say out").await, "done");
    eventually("the command is audited", || {
        chat.audit().contains("echo out")
    })
    .await;
    tokio::time::pause();
    // What ends with the turn may end a little later.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let at_rest = sleeps().await;
    chat.close().await;
    drop(chat);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let nothing_there = sleeps().await;
    // The runtime's own clock turns once more or less, by where in its round the test begins.
    assert!(
        at_rest <= nothing_there + 1,
        "{at_rest} for {nothing_there}"
    );
}

/// The measure itself: a timer that goes every half hour is seen.
#[tokio::test(start_paused = true)]
async fn a_timer_would_be_seen() {
    let bare = sleeps().await;
    let timer = tokio::spawn(async {
        loop {
            tokio::time::sleep(HOURS / 6).await;
        }
    });
    let ticking = sleeps().await;
    timer.abort();
    assert!(ticking >= bare + 5, "{ticking} after {bare}");
}
