//! Tests of policy: tables of commands against real throwaway workspaces.

#![allow(clippy::unwrap_used)] // Helpers outside `#[test]` fail a test as well.

mod cli;
mod differential;
mod elsewhere;
mod forced;
mod listed;
mod prober;
mod repositories;
mod rewritten;
mod rules;
mod second_opinion;
mod secrets;
mod stubs;
mod tables;
mod tracked;
mod turn;
mod verdicts;
mod world;
