//! co removes all files that a command leaves in its private TMPDIR, without blocking.

use co_exec::{CommandSpec, Program};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

use super::hostile::python;
use super::scene::am_root;
use super::user_home::UserHome;
use crate::exec::Bench;
use crate::support::DEADLINE;

/// A user that is neither the tests' own nor that of another test.
const SOMEBODY: u32 = 54_324;

/// Makes nested directories that cannot be listed, and prints their depth. Their path is too long to use, and there
/// are more of them than the limit of open files.
const DEEP: &str = "
import os
os.chdir(os.environ['TMPDIR'])
for depth in range(5000):
    os.mkdir('d' * 8, 0o300)
    if depth % 100 == 0:
        os.mkdir('beside', 0)
        open('file', 'w').close()
    os.chdir('d' * 8)
print(depth + 1)
";

/// Makes so many files that their removal takes a while, and prints their directory.
const MANY: &str = "
import os
os.chdir(os.environ['TMPDIR'])
for number in range(30_000):
    os.close(os.open(str(number), os.O_CREAT | os.O_WRONLY))
print(os.environ['TMPDIR'])
";

/// Returns a directory in memory if there is one, because disks are slow.
fn in_memory() -> TempDir {
    let named = || {
        let mut name = tempfile::Builder::new();
        name.prefix("co-deep-");
        name
    };
    let dir = named().tempdir_in("/dev/shm");
    dir.or_else(|_| named().tempdir()).unwrap()
}

#[test]
fn a_deep_closed_tree_is_removed() {
    let home = UserHome::new(am_root().then_some(SOMEBODY));
    let memory = in_memory();
    let tmp = memory.path();
    home.give(tmp);
    let mut command = home.exec();
    command.args(["--backend", "landlock", "--", python(), "-c", DEEP]);
    let done = command.env("TMPDIR", tmp).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&done.stdout), "5000\n", "{done:?}");
    let left: Vec<_> = fs::read_dir(tmp).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Returns the output of a command at the workspace level.
async fn run(bench: &Bench, argv: &[&str]) -> String {
    let [_, confinement] = bench.levels();
    let spec = CommandSpec {
        program: Program::Argv(argv.iter().map(|word| (*word).to_owned()).collect()),
        confinement,
        ..bench.spec("")
    };
    bench.run_spec(spec).await.output
}

#[tokio::test]
async fn nobody_waits_while_many_files_are_removed_but_the_end_does() {
    let bench = Bench::with_launcher(|_| {});
    let output = run(&bench, &[python(), "-c", MANY]).await;
    let tmp = PathBuf::from(output.trim_end());
    assert!(tmp.is_absolute(), "{output}");
    assert!(
        tmp.exists(),
        "the end of the command waited for the removal"
    );
    assert_eq!(run(&bench, &["echo", "on"]).await, "on\n");
    bench.executor.shutdown().await;
    bench.executor.finish_removals(DEADLINE).await;
    assert!(!Path::new(&tmp).exists());
}
