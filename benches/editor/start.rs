//! What the plugin costs before it is used, and how soon its backend answers.

use std::time::Duration;

use serde_json::json;

use super::client::Nvim;
use super::{least, median, report, spawn};

const STARTS: usize = 11;
/// Before each start.
const REST: Duration = Duration::from_millis(50);

pub(super) fn run() {
    let (mut file, mut ready) = (Vec::new(), Vec::new());
    let (mut shells, mut others) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let mut nvim = Nvim::start(&json!({}));
        let plugin = nvim.lua("return bench.plugin()", vec![]);
        file.push(plugin.as_f64().expect("a time"));
        nvim.idle(REST);
        nvim.lua("bench.greet()", vec![]);
        let took = greeted(&mut nvim);
        ready.push(took);
        nvim.idle(REST);
        nvim.lua("bench.start_least(...)", vec![least::argv()]);
        others.push(greeted(&mut nvim));
        nvim.idle(REST);
        shells.push(took / spawn::posix());
    }
    report("plugin file", median(&mut file), "ms", 0.1);
    report(
        "backend started and answering",
        median(&mut ready),
        "ms",
        3.0,
    );
    println!(
        "  {:.1} x a shell by posix_spawn after the same rest; the least backend takes {:.2} ms",
        median(&mut shells),
        median(&mut others)
    );
}

/// How long it took from `jobstart` to the greeting, in milliseconds.
fn greeted(nvim: &mut Nvim) -> f64 {
    let nanos = nvim.wait("ready").args[0].as_f64();
    nanos.expect("a time") / 1e6
}
