//! A backend that has nothing to do does nothing.

use std::time::{Duration, Instant};

use crate::support::http::Reply;
use crate::support::{DEADLINE, proc};

use super::scene::Scene;

/// Long enough for anything that goes by itself every few seconds.
const WINDOW: Duration = Duration::from_secs(4);

#[test]
fn an_idle_backend_does_nothing_and_holds_no_connection() {
    let scene = Scene::scripted([Reply::shell("c1", "echo out"), Reply::text("It says out.")]);
    scene.co("say out");
    scene.wait_turns(1);
    scene.run("echo typed");
    scene.wait_shell("typed\n");
    let backend = scene.backend();
    let mut since = Instant::now();
    let mut last = proc::switches(backend);
    // Threads that served the turn end after some seconds: from then on, all stands still.
    proc::wait_until(DEADLINE, "a backend that stands still", || {
        let now = proc::switches(backend);
        if now != last {
            (since, last) = (Instant::now(), now);
        }
        (since.elapsed() > WINDOW).then_some(())
    });
    assert_eq!(proc::connections(backend), 0);
    scene.server.reply(Reply::text("Here."));
    scene.co("still there?");
    scene.wait_chat("Here.");
    scene.wait_turns(2);
    assert_ne!(proc::switches(backend), last, "the measure sees work");
}
