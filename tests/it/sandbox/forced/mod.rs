//! Hostile commands at the read-only level, whatever policy thinks of them: none does harm, on any kernel.
//!
//! Each runs as an ordinary user, as `co-nvim exec --read-only` runs it. If the tests run as root, that user has no
//! files but those of the test, and the fixtures of policy run too: some would remove all files of a user.

mod commands;
mod place;

use std::time::{Duration, Instant};

use fastrand::Rng;

use self::place::{Place, Ran};
use super::scene::{am_root, support};
use crate::support::cases;

/// The commands that all kernels together run, unless more are wanted.
const SAMPLE: usize = 150;
const KERNELS: usize = 5;

/// After so many harmful commands, others would tell nothing new.
const MAX_HARMFUL_COMMANDS: usize = 20;

/// Makes a place for the user with this number, one that no other process of the machine should have.
fn place(number: u32) -> Place {
    let user = 55_000 + std::process::id() % 1000 * 8 + number;
    Place::new(am_root().then_some(user))
}

/// Returns a sample of all commands.
fn sample(seed: u32, count: usize) -> Vec<String> {
    let mut chance = Rng::with_seed(seed.into());
    let mut all = commands::made(&mut chance);
    if am_root() {
        all.extend(commands::fixtures());
    }
    chance.shuffle(&mut all);
    all.truncate(count);
    all
}

/// Runs a sample on a kernel that seems `older`, as the user with this number.
#[track_caller]
fn check(older: &[&str], number: u32) {
    assert!(
        support().check().is_ok(),
        "no sandbox here: {}",
        support().words()
    );
    let mut place = place(number);
    let inside = place.run_confined(older, "readlink /proc/self/ns/user");
    let outside = std::fs::read_link("/proc/self/ns/user").unwrap();
    let other = inside.output.trim() != outside.to_str().unwrap();
    let expected = support().namespaces && !older.contains(&"--no-namespaces");
    assert_eq!(other, expected, "{inside:?}");

    let mut wrong = Vec::new();
    for command in sample(number, cases(SAMPLE).div_ceil(KERNELS)) {
        let ran = place.run_confined(older, &command);
        assert_eq!(ran.refused, None, "{command} did not start on {older:?}");
        if let Some(harm) = place.harm(&ran) {
            wrong.push(format!("{command}: {harm}\n{}", ran.start()));
            place = place.renewed();
        }
        if wrong.len() >= MAX_HARMFUL_COMMANDS {
            break;
        }
    }
    assert!(wrong.is_empty(), "on {older:?}: {}", wrong.join("\n"));
}

#[test]
fn none_does_harm_on_this_kernel() {
    check(&["0"], 0);
}

#[test]
fn none_does_harm_without_namespaces() {
    check(&["--no-namespaces", "0"], 1);
}

#[test]
fn none_does_harm_with_the_first_landlock() {
    check(&["1"], 2);
}

#[test]
fn none_does_harm_with_the_first_landlock_and_without_namespaces() {
    check(&["--no-namespaces", "1"], 3);
}

#[test]
fn none_does_harm_with_the_fourth_landlock_and_without_namespaces() {
    check(&["--no-namespaces", "4"], 4);
}

/// If this fails, the other tests prove nothing.
#[test]
fn each_deed_does_harm_where_nothing_confines_it() {
    let mut place = place(6);
    let mut idle = Vec::new();
    for command in commands::deeds() {
        let ran = place.run_free(&command);
        match harm_in_time(&place, &ran) {
            Some(_) if ran.has_secret() => {}
            Some(_) => place = place.renewed(),
            None => idle.push(format!("{command}: {}", ran.start())),
        }
    }
    assert!(idle.is_empty(), "these do nothing: {}", idle.join("\n"));
}

/// The same as [`Place::harm`], but a signal may take a moment.
fn harm_in_time(place: &Place, ran: &Ran) -> Option<String> {
    let end = Instant::now() + Duration::from_secs(2);
    loop {
        let harm = place.harm(ran);
        if harm.is_some() || Instant::now() > end {
            return harm;
        }
    }
}
