use crate::bash;
use crate::programs::Sort;
use crate::wrappers;

/// Returns the worst sort in a text, and the sentences about commands that require approval.
fn sorted(text: &str) -> (Sort, Vec<String>) {
    let commands = wrappers::commands(bash::parse(text));
    let sorted = |found| super::sort(found, &commands.script.functions);
    let runs = commands
        .found
        .iter()
        .filter(|it| it.role == wrappers::Role::Runs);
    let all: Vec<super::SortedCommand> = runs.map(sorted).collect();
    let worst = all.iter().map(|it| it.sort).max().unwrap_or_default();
    let does = all
        .into_iter()
        .map(|it| it.does)
        .filter(|it| !it.is_empty());
    (worst, does.collect())
}

fn check(sort: Sort, texts: &[&str]) {
    for text in texts {
        assert_eq!(sorted(text).0, sort, "{text}: {:?}", sorted(text).1);
    }
}

#[test]
fn what_asks() {
    check(
        Sort::Changes,
        &[
            "mkdir build",
            "rm -rf build",
            "ls > out",
            "ls; rm x",
            "find . -delete",
            "fd -x rm",
            "sort -o f",
            "sort -uo f",
            "sed -i s/a/b/ f",
            "sed -ni.bak s/a/b/ f",
            "git commit -m x",
            "git branch -D x",
            "git branch x",
            "git tag v1",
            "git config a.b c",
            "tee x",
            "tar xf a",
            "gzip a",
            "xargs rm",
            "bash -c 'rm x'",
            "env A=b rm x",
            "uniq a b",
            "f() { rm x; }; f",
            "dd if=a of=b",
            "git stash",
            "git -C src commit",
            "ls >> out",
            "ls &> out",
            "cat <<X > out\nx\nX",
        ],
    );
    check(
        Sort::RunsCode,
        &[
            "python3 s.py",
            "python3 -c x",
            "make",
            "./ls",
            "src/x",
            "cargo test",
            "npm run build",
            "bash x.sh",
            "echo ls | sh",
            "rg --pre ./p x",
            "node -e x",
            ". ./x",
            "go test ./...",
        ],
    );
    check(
        Sort::ReachesOut,
        &[
            "git push origin main",
            "curl http://x",
            "npm install",
            "docker run x",
            "kill 1",
            "sudo ls",
            "ps aux",
        ],
    );
    check(
        Sort::Unknown,
        &[
            "caterpillar",
            "env",
            "printenv",
            "$x y",
            "\"$(a)\" b",
            "eval ls",
            "exec ls",
            "trap 'ls' EXIT",
            "set -m",
            "git frobnicate",
            "xargs $x",
            "bash -c \"$x\"",
            "ulimit -n 1",
            "tail -f x",
        ],
    );
}

#[test]
fn a_question_says_what_the_command_would_do() {
    let table = "\
mkdir build | creates the directory build
rm -rf ~/x | deletes ~/x, outside the workspace, for good
rm -rf build | deletes build, for good
rm a b c d e | deletes a, b, c and 2 more, for good
mv a b | moves a to b
sed -i s/a/b/ f | edits f in place, for good
tee x | writes to x
git commit -m x | makes a commit
git push | sends commits to origin
git push --force | overwrites branches on origin, for good
git reset --hard | throws away all changes that are not committed, for good
git clean -fd | deletes files that git does not track, for good
npm install | downloads packages and runs their scripts
npm run build | runs the script build of this project
pip install x | downloads and installs x
pip install -r x.txt | downloads and installs the packages that x.txt lists
perl -pi -e 's/a/b/' f | edits files in place by code from the command, for good
cargo test | builds this project and runs its tests
make | runs build steps of this project
make -j4 clean | runs build steps of this project: clean
git push origin :x | deletes branches on origin, for good
git push origin +x | overwrites branches on origin, for good
git checkout -- a | throws away changes in files: a, for good
find . -exec rm {} + | deletes each file, for good
xargs rm | deletes what its input names, for good
xargs git | does something with git that co does not know
ssh host ls | runs a command on host
systemctl stop x | stops the service x
kubectl delete pod x | deletes pod and x in a cluster, for good
python3 x.py | runs code of this project
python3 -c 'x' | runs Python code from the command
curl https://x.org | sends a request to https://x.org
docker run -v a:b x sh | makes a container of the image x, which runs a command
kill 7 | ends or signals the process 7
sudo ls | runs a command as another user, usually root
foo x | co does not know what `foo` does
git foo | does something with git that co does not know
ls > out.txt | writes to out.txt
ls > ../x | writes to ../x, outside the workspace
cd .. && touch x | creates x, or sets its time, outside the workspace";
    for line in table.lines() {
        let (text, does) = line.rsplit_once(" | ").unwrap();
        assert_eq!(sorted(text).1, [does], "{text}");
    }
}

#[test]
fn knows_what_may_only_look() {
    let check = |text: &str, expected: Option<bool>| {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        assert_eq!(super::may_look(&words), expected, "{text}");
    };
    for text in [
        "ls",
        "git",
        "git log",
        "git branch",
        "git config",
        "git stash",
        "sed",
        "cargo",
        "cargo tree",
        "npm",
        "env",
        "find .",
        "pip list",
        "cd",
    ] {
        check(text, Some(true));
    }
    for text in [
        "rm",
        "make",
        "make test",
        "git push",
        "git branch -D",
        "sed -i",
        "cargo test",
        "npm run build",
        "curl",
        "docker ps",
    ] {
        check(text, Some(false));
    }
    check("mytool", None);
}
