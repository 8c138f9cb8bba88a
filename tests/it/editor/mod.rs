//! co as a person has it: a real Neovim driven by keys, its screen read.

mod api;
mod approve;
mod backend;
mod chat;
mod commit;
mod contexts;
mod drill;
mod edits;
mod examples;
mod idle;
mod jobs;
mod killed_edits;
mod large;
mod model;
mod model_jobs;
mod providers;
mod quit;
mod random_keys;
mod rename;
mod resumed;
mod run_options;
mod sandbox;
mod screens;
mod secrets;
mod settings;
mod shell;
mod slash;
mod streams;
mod strict;
mod surroundings;
mod trials;
mod trust;
mod turns;
mod undo;

use crate::support::scene;
