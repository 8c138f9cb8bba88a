//! Tests of policy: tables of commands against real throwaway workspaces.

#![allow(clippy::unwrap_used)] // Helpers outside `#[test]` fail a test as well.

mod cli;
mod looks;
mod repositories;
mod rules;
mod tables;
mod turn;
mod verdicts;
mod world;
