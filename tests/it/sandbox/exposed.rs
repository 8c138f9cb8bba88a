//! Output is withheld from a model if a secret appeared where its command could read.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use co_exec::RunningCommand;

use crate::exec::Bench;

/// A workspace with a secret near the root and none in `src`, and an executor.
struct Place {
    bench: Bench,
    ws: PathBuf,
}

impl Place {
    fn new() -> Self {
        let bench = Bench::with_launcher(|_| {});
        let ws = bench.path().canonicalize().unwrap();
        fs::create_dir_all(ws.join("src/deep")).unwrap();
        fs::write(ws.join(".env"), "KEY=hunter2\n").unwrap();
        fs::write(ws.join("src/main.rs"), "fn main() {}\n").unwrap();
        Self { bench, ws }
    }

    /// Starts a command that prints `ready`, waits for the file `go`, and then runs `line`. Waits until it is ready.
    async fn start(&self, line: &str) -> RunningCommand {
        let text = format!("echo ready; until test -e go; do :; done; {line}");
        let running = self.bench.start_spec(self.bench.read_only(&text)).await;
        running.reading().settled(Duration::ZERO).await;
        assert_eq!(running.reading().from_line(0).unwrap().text, "ready\n");
        running
    }

    fn go(&self) {
        fs::write(self.ws.join("go"), "").unwrap();
    }
}

#[tokio::test]
async fn output_is_withheld_if_a_secret_appeared_where_the_command_could_read() {
    let place = Place::new();
    // The exit status and the name of what it leaves could tell a secret too.
    let line = "cat src/deep/.env src/main.rs; (exec -a hunter3 sleep 60) & exit 7";
    let running = place.start(line).await;
    fs::write(place.ws.join("src/deep/.env"), "KEY=hunter3\n").unwrap();
    place.go();
    let outcome = running.outcome().await;
    assert!(outcome.withheld);
    let told = "[output withheld: a secret appeared where the command could read: src/deep/.env]\n";
    assert_eq!((&*outcome.output, outcome.printed), (told, 0));
    assert_eq!(outcome.spill, None);
    assert_eq!((outcome.exit, outcome.told_ok()), (Some(7), true));
    let status = outcome.told_status();
    assert_eq!(status, "its output and exit status are withheld");
}

#[tokio::test]
async fn output_of_a_running_command_is_withheld_too() {
    let place = Place::new();
    let running = place.start("cat src/.env; exec sleep 60").await;
    fs::write(place.ws.join("src/.env"), "KEY=hunter3\n").unwrap();
    place.go();
    let reading = running.reading();
    reading.settled(Duration::ZERO).await;
    let new = reading.next().unwrap();
    assert!(new.notes[0].starts_with("output withheld: "), "{new:?}");
    assert_eq!(reading.amount(), "its output is withheld");
    // The output may still contain the secret after the file is gone.
    fs::remove_file(place.ws.join("src/.env")).unwrap();
    let new = reading.from_line(0).unwrap();
    assert!(
        new.text.is_empty() && new.notes[0].starts_with("output withheld: "),
        "{new:?}"
    );
    running.cancel();
    assert!(running.outcome().await.withheld);
}

#[tokio::test]
async fn output_is_told_if_a_secret_appeared_beside_one() {
    let place = Place::new();
    let running = place.start("cat .env .env.local src/main.rs 2>&1").await;
    fs::write(place.ws.join(".env.local"), "KEY=hunter3\n").unwrap();
    // As editors save.
    fs::rename(place.ws.join(".env"), place.ws.join(".env~")).unwrap();
    fs::write(place.ws.join("new"), "KEY=hunter3\n").unwrap();
    fs::rename(place.ws.join("new"), place.ws.join(".env")).unwrap();
    place.go();
    let outcome = running.outcome().await;
    assert!(!outcome.withheld);
    assert!(outcome.output.contains("fn main"), "{}", outcome.output);
    assert!(!outcome.output.contains("hunter"), "{}", outcome.output);
}
