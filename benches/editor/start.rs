//! What the plugin costs before it is used, and how soon its backend answers.

use std::time::Duration;

use serde_json::json;

use super::client::Nvim;
use super::{median, report, spawn};

const STARTS: usize = 11;
const SHELLS: usize = 25;
/// 3 ms where they were set as the aim: there a shell by posix_spawn took 0.278 ms.
const WANTED: f64 = 10.8;

pub(super) fn run() {
    let (mut file, mut ready, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let mut nvim = Nvim::start(&json!({}));
        let plugin = nvim.lua("return bench.plugin()", vec![]);
        file.push(plugin.as_f64().expect("a time"));
        nvim.idle(Duration::from_millis(50));
        nvim.lua("bench.greet()", vec![]);
        let nanos = nvim.wait("ready").args[0].as_f64();
        let took = nanos.expect("a time") / 1e6;
        let mut shells: Vec<f64> = (0..SHELLS).map(|_| spawn::posix()).collect();
        ready.push(took);
        ratios.push(took / median(&mut shells));
    }
    report("plugin file", median(&mut file), "ms", 0.1);
    report(
        "backend started and answering, to posix_spawn of a shell",
        median(&mut ratios),
        "x",
        WANTED,
    );
    println!("  {:.2} ms", median(&mut ready));
}
