//! The end of a trial: nothing of it runs or stays mounted, and a model gets no secret that appeared meanwhile.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use co_exec::{Caller, CommandOutcome, CommandSpec, Confinement};

use crate::exec::Bench;
use crate::support::DEADLINE;
use crate::support::proc::{alive, wait_until};

/// An executor with a workspace and a layer.
struct Place {
    bench: Bench,
    ws: PathBuf,
    layer: PathBuf,
}

impl Place {
    fn new() -> Self {
        let bench = Bench::with_launcher(|_| {});
        let top = bench.path().canonicalize().unwrap();
        let [ws, layer] = ["ws", "layer"].map(|name| top.join(name));
        fs::create_dir(&ws).unwrap();
        fs::create_dir(&layer).unwrap();
        fs::write(ws.join(".env"), "KEY=hunter2\n").unwrap();
        Self { bench, ws, layer }
    }

    fn trial(&self, line: &str) -> CommandSpec {
        CommandSpec {
            cwd: self.ws.clone(),
            confinement: Confinement::Trial {
                workspace: self.ws.clone(),
                layer: self.layer.clone(),
                ignored: None,
                caches: None,
                places: co_exec::GrantedPlaces::default(),
            },
            ..self.bench.spec(line)
        }
    }

    /// Waits until nothing of the trial whose launcher was `pid` is left: neither the launcher, nor a process that
    /// sees its mounts, nor the files of the kernel in its layer.
    fn is_over(&self, pid: i32) {
        let path = self.ws.to_str().unwrap();
        wait_until(DEADLINE, "the end of the trial", || {
            let processes = fs::read_dir("/proc").unwrap().flatten();
            let mut mounts = processes.map(|process| process.path().join("mountinfo"));
            let mounted = |mounts| fs::read_to_string(mounts).is_ok_and(|text| text.contains(path));
            let work = self.layer.join("work").exists();
            (!alive(pid) && !mounts.any(mounted) && !work).then_some(())
        });
    }
}

#[tokio::test]
async fn what_it_leaves_running_is_ended() {
    for caller in [Caller::Agent, Caller::Person] {
        let place = Place::new();
        let line = "setsid sleep 300 & (setsid sleep 301 &) ; echo x > new; cat new";
        let spec = CommandSpec {
            caller,
            ..place.trial(line)
        };
        let running = place.bench.start_spec(spec).await;
        let pid = running.pid();
        let outcome = running.outcome().await;
        assert!(
            outcome.ok() && outcome.output.starts_with("x\n"),
            "{outcome:?}"
        );
        assert_eq!(outcome.level, "trial");
        assert!(
            !outcome.background.is_empty() && !outcome.kept,
            "{outcome:?}"
        );
        place.is_over(pid);
        assert!(place.layer.join("upper/new").exists() && !place.ws.join("new").exists());
    }
}

#[tokio::test]
async fn a_time_out_and_a_cancellation_end_it() {
    let place = Place::new();
    let line = "trap '' TERM; echo x > new; echo up; while :; do sleep 0.01; done";
    for cancel in [true, false] {
        let spec = CommandSpec {
            timeout: Duration::from_secs(if cancel { 60 } else { 1 }),
            ..place.trial(line)
        };
        let running = place.bench.start_spec(spec).await;
        let pid = running.pid();
        assert!(running.screen().changed().await);
        if cancel {
            running.cancel();
        }
        let outcome: CommandOutcome = running.outcome().await;
        assert_eq!(
            (outcome.cancelled, outcome.timed_out),
            (cancel, !cancel),
            "{outcome:?}"
        );
        place.is_over(pid);
        assert_eq!(
            fs::read_to_string(place.layer.join("upper/new")).unwrap(),
            "x\n"
        );
    }
}

#[tokio::test]
async fn output_is_withheld_from_a_model_if_a_secret_appeared_beside_a_hidden_one() {
    let line = "echo ready; read -r; cat .env.local; cat .env";
    let exposed = async |place: &Place, caller| {
        let spec = CommandSpec {
            caller,
            ..place.trial(line)
        };
        let running = place.bench.start_open(spec).await;
        running.reading().settled(Duration::ZERO).await;
        fs::write(place.ws.join(".env.local"), "KEY=hunter3\n").unwrap();
        running.input().unwrap().write(b"\n".to_vec()).unwrap();
        let outcome = running.outcome().await;
        assert!(outcome.withheld, "{outcome:?}");
        outcome.output
    };
    // The person sees what it printed. That its files may hold a secret matters to them too.
    let output = exposed(&Place::new(), Caller::Person).await;
    assert!(output.starts_with("ready\nKEY=hunter3\n"), "{output}");
    let place = Place::new();
    let output = exposed(&place, Caller::Agent).await;
    assert!(!output.contains("hunter"), "{output}");
    assert!(output.contains("could read: .env.local]"), "{output}");
    // One that the command made itself is no secret of the workspace.
    let made = place.trial("echo made > .env.made; cat .env.made");
    let outcome = place.bench.run_spec(made).await;
    assert!(outcome.output.starts_with("made\n"), "{outcome:?}");
}

#[tokio::test]
async fn a_trial_does_not_outlive_its_launcher() {
    let place = Place::new();
    let running = place
        .bench
        .start_spec(place.trial("echo up; sleep 300"))
        .await;
    assert!(running.screen().changed().await);
    let launcher = nix::unistd::Pid::from_raw(running.pid());
    nix::sys::signal::kill(launcher, nix::sys::signal::Signal::SIGKILL).unwrap();
    let outcome = running.outcome().await;
    assert_eq!(outcome.signal, Some(9), "{outcome:?}");
    place.is_over(launcher.as_raw());
}
