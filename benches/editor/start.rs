//! The cost of the plugin before its first use, and the time until its backend answers.

use std::time::Duration;

use serde_json::json;

use super::client::Client;
use super::{least, median, report, spawn};

const STARTS: usize = 11;
/// The 3 ms that are wanted were set where a backend of 0.8 MB that does nothing else answers after 0.75 to 1 ms: times
/// of one start move with the machine, what it takes beside another start does not.
const WANTED: f64 = 3.0;
/// The longest time of the first command of a Neovim, in milliseconds.
const FIRST_WANTED: f64 = 8.0;
/// Before each start.
const REST: Duration = Duration::from_millis(50);

pub(super) fn run() {
    let (mut file, mut ready) = (Vec::new(), Vec::new());
    let (mut times, mut others, mut shells) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let nvim = Client::start(&json!({}));
        let plugin = nvim.lua("return bench.plugin()", json!([]));
        file.push(plugin.as_f64().expect("a time"));
        std::thread::sleep(REST);
        nvim.lua("bench.greet()", json!([]));
        let took = greeted(&nvim);
        std::thread::sleep(REST);
        nvim.lua("bench.start_least(...)", json!([least::argv()]));
        let other = greeted(&nvim);
        ready.push(took / other);
        times.push(took);
        others.push(other);
        std::thread::sleep(REST);
        shells.push(took / spawn::posix(&nvim.environment()));
    }
    let mut first: Vec<f64> = (0..STARTS)
        .map(|_| {
            let nvim = Client::start(&json!({}));
            std::thread::sleep(REST);
            spawn::ended(&nvim, "bench.co(...)", "true".into())
        })
        .collect();
    let what = "the first `:Co! true` of a Neovim to exit known";
    report(what, median(&mut first), "ms", FIRST_WANTED);
    report("plugin file", median(&mut file), "ms", 0.1);
    report(
        "backend started and answering, to the least backend",
        median(&mut ready),
        "x",
        WANTED,
    );
    println!(
        "  {:.2} ms to {:.2} ms; {:.1} x a shell by posix_spawn after the same rest",
        median(&mut times),
        median(&mut others),
        median(&mut shells)
    );
}

/// Returns the milliseconds from `jobstart` to the greeting.
fn greeted(nvim: &Client) -> f64 {
    let nanos = nvim.wait("ready").args[0].as_f64();
    nanos.expect("a time") / 1e6
}
