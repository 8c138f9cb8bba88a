//! The limits of confined commands, tried with real programs on this kernel.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "the helpers of tests may stop them")]

mod absent;
mod backend;
mod bombs;
mod exposed;
mod fallbacks;
mod forced;
mod git_dirs;
mod git_writes;
mod gone;
mod harmless;
mod hidden;
mod hostile;
mod leftover_files;
mod levels;
mod machine;
mod moving;
mod path_tools;
mod privacy;
mod programs;
mod quotas;
mod runs_later;
mod scene;
mod setuid;
mod signals;
mod swaps;
mod toolchains;
mod trial;
mod trial_ends;
mod trial_overlay;
mod user_home;
