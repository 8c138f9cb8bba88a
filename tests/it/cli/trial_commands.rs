//! Commands that agents run on projects: as a trial that is kept, each does what it does without a trial; as one that is
//! dropped, it does nothing.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::trial_scene::Scene;
use crate::support::test_tree::Tree;

/// A small project in several languages.
const PROJECT: &str = r#"
umask 022
mkdir -p src/parse include tests data bin docs 'with space' empty deep/a/b/c/d
printf '#include "util.h"\n#include <stdio.h>\nint main(void) {\n\tprintf("%%d\\n", twice(21));\n\treturn 0;\n}\n' > src/main.c
printf '#include "util.h"\nint twice(int x) {\nreturn 2*x;\n}\n' > src/util.c
printf 'int twice(int x);\n' > include/util.h
printf 'fn  main( ){println!("{}",add(1,2));}\nfn add(a:i32,b:i32)->i32{a+b}\n#[test]\nfn adds(){assert_eq!(add(1,2),3)}\n' > src/main.rs
printf '[package]\nname = "small"\nversion = "0.1.0"\nedition = "2021"\n' > Cargo.toml
printf 'CFLAGS = -I include\nbuild/app: src/main.c src/util.c\n\tmkdir -p build\n\t$(CC) $(CFLAGS) -o $@ $^\n' > Makefile
printf 'gen: src/table.h\nsrc/table.h: data/table.csv\n\tsed "s/\\(.*\\),\\(.*\\)/#define \\1 \\2/" $< > $@\nclean:\n\trm -rf build src/table.h\n' >> Makefile
printf 'ONE,1\nTWO,2\n' > data/table.csv
printf '{"b": 1, "a": [1, 2, 3], "version": "1.0.0"}' > data/config.json
seq 200 > data/numbers
head -c 3000 /dev/zero | tr '\0' '\377' > data/binary
printf 'one\r\ntwo\r\nthree\r\n' > docs/dos.txt
printf '\351t\351\n' > docs/latin1.txt
printf 'no line break at the end' > docs/last
printf '# Title\n\nOld text about the old name.\n' > README.md
printf 'def twice(x):\n    return 2*x\n' > src/lib.py
printf 'import sys\nsys.path.insert(0, "src")\nfrom lib import twice\nimport unittest\nclass T(unittest.TestCase):\n    def test_it(self): self.assertEqual(twice(2), 4)\nunittest.main()\n' > tests/test_lib.py
printf '#!/bin/sh\necho run\n' > bin/run.sh; chmod 755 bin/run.sh
printf 'x\n' > 'with space/a file'; ln -s ../README.md docs/link; ln -s nowhere docs/broken
printf 'read only\n' > docs/closed; chmod 444 docs/closed
for dir in deep/a deep/a/b deep/a/b/c; do echo $dir > $dir/file; done
touch src/parse/empty.c
printf 'build/\n*.o\n__pycache__/\ntarget/\n*.log\n' > .gitignore
touch old.log
git init -q; git config user.name a; git config user.email a@b; git config commit.gpgsign false
git add -A; GIT_COMMITTER_DATE=2001-01-01T00:00:00Z GIT_AUTHOR_DATE=2001-01-01T00:00:00Z git commit -qm first
"#;

/// Returns a copy of a project.
fn copy(project: &Scene) -> Scene {
    Scene::new(&format!("cp -a '{}/.' .", project.workspace.display()))
}

/// Returns whether trials keep a path.
fn is_kept(path: &Path) -> bool {
    let ignored = |part: &std::ffi::OsStr| {
        ["build", "__pycache__", "target", ".git"]
            .iter()
            .any(|it| part == *it)
    };
    let extension = path.extension().is_some_and(|it| it == "o" || it == "log");
    !extension && !path.iter().any(ignored)
}

fn kept_files(scene: &Scene) -> Tree {
    let mut files = scene.files();
    files.retain(|path, _| is_kept(path));
    files
}

/// Runs a command. Returns its exit status, its output and what became of its changes.
pub(super) fn run(scene: &Scene, args: &[&str], command: &str) -> (Value, Value, Value) {
    let mut exec = scene.command(crate::support::BACKEND);
    // Rust's own programs, not those that choose a version by the home directory.
    if let Some(bin) = std::env::var_os("CARGO")
        .as_deref()
        .and_then(|it| Path::new(it).parent())
    {
        let path = std::env::var_os("PATH").unwrap();
        let all = [bin.to_owned()]
            .into_iter()
            .chain(std::env::split_paths(&path));
        exec.env("PATH", std::env::join_paths(all).unwrap());
    }
    let done = exec
        .arg("exec")
        .args(args)
        .args(["--json", command])
        .output()
        .unwrap();
    let value: Value = serde_json::from_slice(&done.stdout)
        .unwrap_or_else(|error| panic!("{command}: {error}: {done:?}"));
    (
        value["exit"].clone(),
        value["output"].clone(),
        value["trial"].clone(),
    )
}

/// Returns what a trial of a command does otherwise than the command; none if it does the same.
fn problem(project: &Scene, command: &str) -> Option<String> {
    let (real, tried) = (copy(project), copy(project));
    let before = tried.files();
    let expected = run(&real, &["--backend", "subprocess"], command);
    // A command that fails proves nothing.
    if expected.0 != 0 {
        return Some(format!("fails without a trial: {}", expected.1));
    }
    let dropped = run(&tried, &["--try"], command);
    if tried.files() != before || dropped.2["kept"] != false {
        return Some(format!("was not dropped: {}", dropped.2));
    }
    let kept = run(&tried, &["--try", "--keep"], command);
    if (&kept.0, &kept.1) != (&expected.0, &expected.1) {
        return Some(format!("{} instead of {}", kept.1, expected.1));
    }
    if kept.2["kept"] != true || kept.2["not_kept"] != Value::Array(Vec::new()) {
        return Some(format!("is not kept: {}", kept.2));
    }
    let (real, tried) = (kept_files(&real), kept_files(&tried));
    let differ = |path: &&PathBuf| real.get(*path) != tried.get(*path);
    let different: Vec<_> = real.keys().chain(tried.keys()).filter(differ).collect();
    (!different.is_empty()).then(|| format!("differs in {different:?}"))
}

#[track_caller]
fn check(commands: &[&str]) {
    check_in(&Scene::new(PROJECT), commands);
}

#[track_caller]
fn check_in(project: &Scene, commands: &[&str]) {
    let problems = commands
        .iter()
        .filter_map(|it| Some(format!("{it}\n  {}", problem(project, it)?)));
    let problems: Vec<_> = problems.collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn of_text_tools() {
    check(&[
        "sed -i 's/old/new/g' README.md src/*.c",
        "sed -i '1d;$d' data/numbers",
        "sed -i.bak 's/two/2/' docs/dos.txt",
        "sed -i 's/read/write/' docs/closed",
        "perl -pi -e 's/twice/double_it/g' src/*.c include/*.h",
        "perl -i.orig -ne 'print if $. % 2' data/numbers",
        "awk '{ print $1 * 2 }' data/numbers > data/doubled && mv data/doubled data/numbers",
        "sort -r -n -o data/numbers data/numbers",
        "printf 'more\\n' >> docs/last; echo x | tee -a README.md docs/dos.txt",
        "cat <<'E' > src/new.c\nint new(void) { return 1; }\nE",
        "tr a-z A-Z < README.md > up && mv -f up README.md",
        "iconv -f latin1 -t utf-8 docs/latin1.txt > t && mv t docs/latin1.txt",
        "truncate -s 100 data/binary; dd if=/dev/zero of=data/binary bs=1 seek=50 count=5 conv=notrunc status=none",
        "head -n 5 data/numbers > data/first; split -l 50 data/numbers data/part-",
        "grep -rl old . --include=*.md | xargs sed -i 's/old/newer/'",
        "find . -name '*.c' -not -path './.git/*' -exec sed -i 's/\\t/    /' {} +",
    ]);
}

#[test]
fn of_files_and_directories() {
    check(&[
        "mkdir -p src/a/b/c && touch src/a/b/c/mod.rs",
        "mv src/main.c src/app.c && mv README.md docs/",
        "mv src lib",
        "mv deep/a/b other && mv other deep/again",
        "cp -a src src2 && cp -r docs/. copied",
        "cp docs/closed docs/open && chmod 644 docs/open && echo x > docs/open",
        "rm -rf deep && mkdir deep && echo new > deep/file",
        "rm -r src/parse && echo file > src/parse",
        "rm Makefile && mkdir Makefile && touch Makefile/a",
        "rmdir empty && ln -s deep empty",
        "find . -name '*.md' -delete",
        "find deep -type f -delete && find deep -type d -empty -delete",
        "chmod -R go-rwx src && chmod 755 README.md && chmod a-w data/numbers",
        "chmod u+w docs/closed && echo more >> docs/closed && chmod 400 docs/closed",
        "ln -s src/main.c link && ln -sfn ../data docs/link && ln -sf real docs/broken",
        "rm docs/link && cp README.md docs/link",
        "install -m 750 -D bin/run.sh usr/local/bin/run && install -d -m 700 private",
        "mv 'with space/a file' $'new\\nline' && touch -- -dash '*' '~' 'a\\b'",
        "touch -d 2001-01-01 README.md && touch new",
        "mkdir sub && (cd sub && touch a b && mv a c) && mv sub/b .",
        "t=$(mktemp -p . new.XXXX) && echo 1 > $t && mv $t README.md && chmod 644 README.md",
        "f=$(mktemp) && sed s/old/x/ README.md > $f && cat $f > README.md && rm $f",
    ]);
}

#[test]
fn of_archives_and_patches() {
    check(&[
        "tar cf - src | (mkdir out && tar xf - -C out)",
        "tar czf /dev/null . && tar cf src.tar --mtime=@0 --sort=name src && tar xf src.tar --strip-components=1 -C data",
        "gzip -n -k data/numbers && gzip -n data/table.csv && gunzip -k data/numbers.gz -c > data/again",
        "printf -- '--- a/README.md\\n+++ b/README.md\\n@@ -1,3 +1,3 @@\\n # Title\\n \\n-Old text about the old name.\\n+New.\\n' | patch -p1",
        "printf -- '--- a/README.md\\n+++ b/README.md\\n@@ -1,3 +1,3 @@\\n # Title\\n \\n-Old text about the old name.\\n+New.\\n' | git apply",
        "diff -u --label a --label b README.md docs/last > change.patch; patch -b README.md < change.patch",
        "python3 -m zipfile -c t.zip data/numbers && python3 -m zipfile -e t.zip out && rm t.zip",
    ]);
}

#[test]
fn of_scripts_and_builds() {
    check(&[
        "python3 -c 'import pathlib; p = pathlib.Path(\"README.md\"); p.write_text(p.read_text().upper())'",
        "python3 -c 'import json; d = json.load(open(\"data/config.json\")); d[\"b\"] = 2; json.dump(d, open(\"data/config.json\", \"w\"), indent=2)'",
        "python3 -c 'import os, shutil; shutil.copytree(\"src\", \"copy\", symlinks=True); shutil.rmtree(\"docs\"); os.rename(\"data/numbers\", \"n\"); os.replace(\"n\", \"README.md\")'",
        "python3 -c 'import shutil; shutil.move(\"src\", \"lib\")'",
        "python3 -c 'import os\nfor at, dirs, files in os.walk(\"deep\", topdown=False):\n for f in files: os.rename(os.path.join(at, f), os.path.join(at, f + \".txt\"))'",
        "python3 tests/test_lib.py 2> /dev/null",
        "python3 -m compileall -q src",
        "python3 -c 'import mmap; f = open(\"data/binary\", \"r+b\"); m = mmap.mmap(f.fileno(), 0); m[10:15] = b\"hello\"; m.close()'",
        "python3 -c 'import sqlite3; d = sqlite3.connect(\"data/t.db\"); d.execute(\"create table t (a)\"); d.execute(\"insert into t values (1)\"); d.commit()'",
        "make build/app && build/app > data/answer",
        "make -s gen && cat src/table.h",
        "make -s gen && make -s clean",
        "cc -c -I include src/util.c -o util.o && ar -D -c -r data/lib.a util.o",
        "./bin/run.sh > out.txt 2>&1; bash -c 'echo $((6*7))' >> out.txt",
        "rustfmt --edition 2021 src/main.rs",
        "cargo fmt",
        "cargo build --offline -q && target/debug/small > data/answer",
        "cargo test --offline -q > /dev/null",
    ]);
}

#[test]
fn of_git_in_the_files_of_the_workspace() {
    check(&[
        "echo x >> README.md && git checkout -q -- README.md && echo y >> README.md",
        "git status --short && git diff --stat && git log --oneline | wc -l && echo z >> README.md",
        "git ls-files | grep '\\.c$' | xargs wc -l > lines.txt",
        "git archive --format=tar HEAD src | tar xf - -C empty",
        "git clean -fdq && touch new",
    ]);
}

/// A directory of the workspace cannot be renamed in an overlay. Programs that do not copy it then fail.
#[test]
fn a_rename_of_a_directory_that_fails_changes_nothing() {
    let scene = Scene::new(PROJECT);
    let before = scene.files();
    let (exit, output, trial) = run(&scene, &["--try", "--keep"], "git mv src lib");
    assert_ne!(exit, 0);
    assert!(
        output.as_str().unwrap().contains("cross-device"),
        "{output}"
    );
    assert_eq!(trial["changes"], Value::Array(Vec::new()));
    assert_eq!(scene.files(), before);
}
