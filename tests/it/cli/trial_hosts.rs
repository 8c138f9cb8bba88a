//! Confined commands that reach hosts: `co-nvim exec --allow-host` with `--try` or `--backend landlock`.
//!
//! No name is looked up: co gets the test's server as the proxy of the person, and sends it the names.

use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv6Addr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::trial_scene::{Scene, said, text};
use crate::support::runner::Runner;
use crate::support::test_tree;

/// The options of the two levels that can reach hosts.
const TRIAL: &[&str] = &["--try"];
const WORKSPACE: &[&str] = &["--backend", "landlock"];

/// A server of files, also as the proxy of the person. Each request is noted.
pub(crate) struct FileServer {
    pub(crate) port: u16,
    files: Arc<Mutex<HashMap<String, Vec<u8>>>>,
    requests: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
}

impl FileServer {
    fn start() -> Self {
        Self::start_at("127.0.0.1")
    }

    pub(crate) fn start_at(address: &str) -> Self {
        Self::serve(TcpListener::bind((address, 0)).unwrap())
    }

    fn serve(listener: TcpListener) -> Self {
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            files: Arc::default(),
            requests: Arc::default(),
            connections: Arc::default(),
        };
        let (files, requests) = (Arc::clone(&server.files), Arc::clone(&server.requests));
        let connections = Arc::clone(&server.connections);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                connections.fetch_add(1, Ordering::Relaxed);
                let (files, requests) = (Arc::clone(&files), Arc::clone(&requests));
                std::thread::spawn(move || answer(stream, &files, &requests));
            }
        });
        server
    }

    pub(crate) fn add(&self, path: &str, bytes: impl Into<Vec<u8>>) {
        let mut files = self.files.lock().unwrap();
        files.insert(path.to_owned(), bytes.into());
    }

    /// Serves all files below a directory at paths that begin with `at`.
    fn add_tree(&self, at: &str, dir: &Path) {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let at = format!("{at}/{}", entry.file_name().to_str().unwrap());
            match entry.path().is_dir() {
                true => self.add_tree(&at, &entry.path()),
                false => self.add(&at, std::fs::read(entry.path()).unwrap()),
            }
        }
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Serves the npm package `own-pkg` to clients that reach this server at `base`.
    pub(crate) fn add_npm_package(&self, base: &str) {
        let dir = tempfile::tempdir().unwrap();
        let script = "mkdir package; echo '{\"name\":\"own-pkg\",\"version\":\"1.0.0\"}' > package/package.json
             echo 'module.exports = 1' > package/index.js; tar czf own-pkg-1.0.0.tgz package";
        let mut bash = std::process::Command::new("bash");
        let made = bash.args(["-c", script]).current_dir(&dir).status();
        assert!(made.unwrap().success());
        let packed = dir.path().join("own-pkg-1.0.0.tgz");
        self.add("/own-pkg-1.0.0.tgz", std::fs::read(packed).unwrap());
        self.add(
            "/own-pkg",
            format!(
                r#"{{"name":"own-pkg","dist-tags":{{"latest":"1.0.0"}},"versions":{{"1.0.0":{{"name":"own-pkg","version":"1.0.0",
                "dist":{{"tarball":"{base}/own-pkg-1.0.0.tgz"}}}}}}}}"#
            ),
        );
    }

    /// Runs a trial whose proxy of the person is this server.
    fn exec(&self, scene: &Scene, args: &[&str]) -> std::process::Output {
        self.exec_at(scene, TRIAL, args)
    }

    /// Runs a command at a level. Its proxy of the person is this server.
    fn exec_at(&self, scene: &Scene, level: &[&str], args: &[&str]) -> std::process::Output {
        self.command_at(scene, level, args).output().unwrap()
    }

    fn command_at(&self, scene: &Scene, level: &[&str], args: &[&str]) -> std::process::Command {
        let mut command = scene.command_at(level, args);
        let proxy = format!("http://127.0.0.1:{}", self.port);
        command.env("RUSTUP_HOME", rustup_home());
        if let Some(go) = go() {
            let path = std::env::var_os("PATH").unwrap();
            let places = std::env::split_paths(&path);
            let first = go.parent().unwrap().to_owned();
            let path = std::env::join_paths(std::iter::once(first).chain(places));
            command.env("PATH", path.unwrap());
        }
        command.env("HTTP_PROXY", proxy);
        command
    }
}

/// Returns the directory of the toolchains, one of which runs this test.
fn rustup_home() -> &'static Path {
    let cargo = Path::new(env!("CARGO"));
    cargo.ancestors().nth(4).unwrap_or(cargo)
}

/// Returns the program go; none if `CO_TEST_GO=none` leaves its test out.
fn go() -> Option<PathBuf> {
    match std::env::var_os("CO_TEST_GO") {
        Some(named) => (named != "none").then(|| named.into()),
        None => co_exec::find_program("go", &std::env::var_os("PATH").unwrap()),
    }
}

fn answer(
    stream: TcpStream,
    files: &Mutex<HashMap<String, Vec<u8>>>,
    requests: &Mutex<Vec<String>>,
) {
    let mut input = BufReader::new(&stream);
    let mut lines = (&mut input).lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    let _head: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
    requests.lock().unwrap().push(first.clone());
    let target = first.split(' ').nth(1).unwrap_or_default();
    let path = match target.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => target,
    };
    let path = path.split('?').next().unwrap_or_default();
    let found = files.lock().unwrap().get(path).cloned();
    let (status, body) = match found {
        Some(body) => ("200 OK", body),
        None => ("404 Not Found", Vec::new()),
    };
    let kind = if path.starts_with("/simple") {
        "text/html"
    } else {
        "application/octet-stream"
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let mut output = &stream;
    // A client may leave early.
    let _ = output
        .write_all(head.as_bytes())
        .and_then(|()| output.write_all(&body));
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let _ = input.read(&mut [0; 1]);
}

/// Runs a line as a trial with `files.test` allowed, and as one without. The first must succeed, the second fail without a
/// request.
#[track_caller]
fn check(scene: &Scene, server: &FileServer, line: &str) {
    let done = server.exec(scene, &["--drop", "--allow-host", "*.other.test", line]);
    let refused = "co-nvim: files.test:80 is not allowed: no --allow-host allows it".to_owned();
    assert!(!done.status.success(), "{line}: {done:?}");
    assert_eq!(said(&done)[0], refused, "{line}: {done:?}");
    assert_eq!(server.requests(), [""; 0], "{line}");
    let done = server.exec(scene, &["--keep", "--allow-host", "files.test", line]);
    assert!(done.status.success(), "{line}: {done:?}");
    let told = said(&done);
    assert!(
        told[0].starts_with("[it reached files.test:80 ("),
        "{told:?}"
    );
    assert_eq!(told[1..], ["[kept]"], "{line}");
}

#[test]
fn curl_fetches_from_an_allowed_host_only() {
    let (scene, server) = (Scene::new("echo 1 > a"), FileServer::start());
    server.add("/f", "fetched\n");
    check(&scene, &server, "curl -sSf http://files.test/f -o new");
    scene.bash("grep -q fetched new");
}

#[test]
fn git_clones_from_an_allowed_host_only() {
    let (scene, server) = (Scene::new("echo 1 > a"), FileServer::start());
    scene.bash(
        "cd \"$HOME\"; git init -qb main r; cd r; git config user.name a; git config user.email a@b; echo x > f; git add .
         git commit -qm m; git update-server-info",
    );
    server.add_tree("/r", &scene.home.join("r/.git"));
    // A trial keeps no `.git`.
    let line = "git clone -q http://files.test/r $TMPDIR/r && cp $TMPDIR/r/f new";
    check(&scene, &server, line);
    scene.bash("grep -q x new");
}

#[test]
fn pip_installs_from_an_allowed_host_only() {
    let (scene, server) = (Scene::new("echo 1 > a"), FileServer::start());
    scene.bash(
        "cd \"$HOME\"; python3 -c '\nimport zipfile\nwith zipfile.ZipFile(\"own_pkg-1.0-py3-none-any.whl\", \"w\") as z:\n    \
         z.writestr(\"own_pkg.py\", \"x = 1\\n\")\n    d = \"own_pkg-1.0.dist-info/\"\n    \
         z.writestr(d + \"METADATA\", \"Metadata-Version: 2.1\\nName: own-pkg\\nVersion: 1.0\\n\")\n    \
         z.writestr(d + \"WHEEL\", \"Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n\")\n    \
         z.writestr(d + \"RECORD\", \"\")\n'",
    );
    let wheel = "own_pkg-1.0-py3-none-any.whl";
    server.add(
        &format!("/w/{wheel}"),
        std::fs::read(scene.home.join(wheel)).unwrap(),
    );
    server.add(
        "/simple/own-pkg/",
        format!("<a href=\"/w/{wheel}\">{wheel}</a>"),
    );
    // Not by a shim of pyenv, which writes.
    let line = "$(python3 -c 'import sys; print(sys.executable)') -m pip install -q --disable-pip-version-check --retries 0 --no-deps --trusted-host files.test \
                --index-url http://files.test/simple --target lib own-pkg";
    check(&scene, &server, line);
    scene.bash("grep -q 'x = 1' lib/own_pkg.py");
}

#[test]
fn npm_installs_from_an_allowed_host_only() {
    let script = "echo '{\"name\":\"w\",\"version\":\"1.0.0\"}' > package.json";
    let (scene, server) = (Scene::new(script), FileServer::start());
    server.add_npm_package("http://files.test");
    let line = "npm install --silent --no-audit --no-fund --fetch-retries 0 --registry http://files.test/ own-pkg";
    check(&scene, &server, line);
    scene.bash("grep -q 'exports = 1' node_modules/own-pkg/index.js; grep -q own-pkg package.json");
}

#[test]
fn cargo_fetches_from_an_allowed_host_only() {
    for home in homes(".cargo/registry") {
        check_cargo(&home);
    }
}

fn check_cargo(home: &str) {
    let script = "mkdir src; echo 'fn main() {}' > src/main.rs; mkdir .cargo
         printf '[package]\\nname = \"w\"\\nversion = \"0.1.0\"\\nedition = \"2021\"\\n[dependencies]\\nown-pkg = \"1\"\\n' > Cargo.toml
         printf '[source.crates-io]\\nreplace-with = \"t\"\\n[source.t]\\nregistry = \"sparse+http://files.test/index/\"\\n[net]\\nretry = 0\\n' \
         > .cargo/config.toml";
    let script = format!("{home}; {script}");
    let (scene, server) = (Scene::new(&script), FileServer::start());
    scene.bash(
        "cd \"$HOME\"; mkdir -p own-pkg-1.0.0/src; touch own-pkg-1.0.0/src/lib.rs
         printf '[package]\\nname = \"own-pkg\"\\nversion = \"1.0.0\"\\nedition = \"2021\"\\n' > own-pkg-1.0.0/Cargo.toml
         tar czf own-pkg-1.0.0.crate own-pkg-1.0.0; sha256sum own-pkg-1.0.0.crate | cut -d' ' -f1 > sum",
    );
    let sum = std::fs::read_to_string(scene.home.join("sum")).unwrap();
    server.add("/index/config.json", r#"{"dl":"http://files.test/dl"}"#);
    server.add(
        "/index/ow/n-/own-pkg",
        format!(r#"{{"name":"own-pkg","vers":"1.0.0","deps":[],"cksum":"{}","features":{{}},"yanked":false}}"#, sum.trim()),
    );
    server.add(
        "/dl/own-pkg/1.0.0/download",
        std::fs::read(scene.home.join("own-pkg-1.0.0.crate")).unwrap(),
    );
    let cargo = env!("CARGO");
    let (line, offline) = (
        format!("{cargo} -q fetch"),
        format!("{cargo} -q fetch --offline"),
    );
    check_packages(&scene, &server, &line, &offline);
    scene.bash("grep -q own-pkg Cargo.lock");
}

/// The homes of a person who has a place of packages, only the directory above it, and neither.
fn homes(place: &str) -> [String; 3] {
    let above = Path::new(place).parent().unwrap().display();
    [place, &above.to_string(), ".local/state"]
        .map(|dir| format!("mkdir -p \"$HOME/.local/state\" \"$HOME/{dir}\""))
}

/// Returns the files in the home directory, without those of co.
fn in_home(scene: &Scene) -> Vec<PathBuf> {
    let all = test_tree::read(&scene.home).into_keys();
    all.filter(|path| !path.starts_with(".local/state"))
        .collect()
}

/// Checks that packages which a kept trial fetches with a line go to a layer, and that the line `offline` finds them in a later
/// trial and nowhere else.
#[track_caller]
fn check_packages(scene: &Scene, server: &FileServer, line: &str, offline: &str) {
    let before = in_home(scene);
    assert!(!server.exec(scene, &["--drop", offline]).status.success());
    check(scene, server, line);
    assert_eq!(in_home(scene), before);
    let done = server.exec(scene, &["--drop", offline]);
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn go_fetches_from_an_allowed_host_only() {
    if go().is_none() {
        let left_out = std::env::var_os("CO_TEST_GO").is_some();
        assert!(
            left_out,
            "no go is on PATH: CO_TEST_GO=none leaves this test out"
        );
        return;
    }
    for home in homes("go/pkg") {
        check_go(&home);
    }
}

fn check_go(home: &str) {
    let script = format!("{home}; echo 'package w' > w.go");
    let (scene, server) = (Scene::new(&script), FileServer::start());
    scene.bash(
        "printf 'module w.test\\ngo 1.19\\n' > go.mod; cd \"$HOME\"; python3 -c '\nimport zipfile\nwith zipfile.ZipFile(\"v1.0.0.zip\", \"w\") as z:\n    \
         z.writestr(\"own.test/pkg@v1.0.0/go.mod\", \"module own.test/pkg\\n\")\n    \
         z.writestr(\"own.test/pkg@v1.0.0/pkg.go\", \"package pkg\\n\")\n'",
    );
    let at = "/mod/own.test/pkg/@v";
    server.add(&format!("{at}/list"), "v1.0.0\n");
    server.add(
        &format!("{at}/v1.0.0.info"),
        r#"{"Version":"v1.0.0","Time":"2024-01-01T00:00:00Z"}"#,
    );
    server.add(&format!("{at}/v1.0.0.mod"), "module own.test/pkg\n");
    let packed = std::fs::read(scene.home.join("v1.0.0.zip")).unwrap();
    server.add(&format!("{at}/v1.0.0.zip"), packed);
    let local = "GOSUMDB=off GOTOOLCHAIN=local GOFLAGS=-mod=mod";
    let line = format!("{local} GOPROXY=http://files.test/mod go get own.test/pkg@v1.0.0");
    let offline = format!("{local} GOPROXY=off go get own.test/pkg@v1.0.0");
    check_packages(&scene, &server, &line, &offline);
    scene.bash("grep -q 'own.test/pkg v1.0.0' go.mod");
}

/// The directory of each toolchain's packages, in a shell's words: the place below the home directory, and how the toolchain
/// finds it.
const PLACES: [(&str, &str); 9] = [
    (".cargo/git", "${CARGO_HOME:-$HOME/.cargo}/git"),
    ("go/pkg", "${GOPATH:-$HOME/go}/pkg"),
    (
        ".m2/repository",
        "$(set -- $MAVEN_OPTS; r=; for o; do case $o in -Dmaven.repo.local=*) r=${o#*=};; esac; done; echo ${r:-$HOME/.m2/repository})",
    ),
    (".gradle/.tmp", "${GRADLE_USER_HOME:-$HOME/.gradle}/.tmp"),
    (
        ".gradle/caches",
        "${GRADLE_USER_HOME:-$HOME/.gradle}/caches",
    ),
    (
        ".nuget/packages",
        "${NUGET_PACKAGES:-$HOME/.nuget/packages}",
    ),
    (
        ".local/share/pnpm/store",
        "${PNPM_HOME:-$HOME/.local/share/pnpm}/store",
    ),
    (
        ".yarn/berry/cache",
        "${YARN_GLOBAL_FOLDER:-$HOME/.yarn/berry}/cache",
    ),
    (
        ".bun/install/cache",
        "${BUN_INSTALL_CACHE_DIR:-$HOME/.bun/install/cache}",
    ),
];

#[test]
fn what_a_toolchain_fetches_goes_to_a_layer_over_its_own_directory() {
    for runner in Runner::all() {
        for state in 0..3 {
            let homes = PLACES.map(|(place, _)| homes(place)[state].clone());
            let scene = Scene::of(runner, &format!("echo 1 > a; {}", homes.join("; ")));
            let before = in_home(&scene);
            let each = |script: &str| {
                PLACES
                    .map(|(_, found)| script.replace("PLACE", &format!("\"{found}/own\"")))
                    .join(" && ")
            };
            let write = each("mkdir -p PLACE && echo jar > PLACE/p.jar") + " && echo 2 > a";
            let read = each("cat PLACE/p.jar");
            let run = |args: &[&str]| {
                let done = scene.exec(args);
                assert_eq!(in_home(&scene), before, "{homes:?} {runner:?}");
                done
            };
            let dropped = run(&["--drop", &write]);
            assert!(dropped.status.success(), "{homes:?} {runner:?} {dropped:?}");
            let unseen = run(&["--drop", &read]);
            assert!(!unseen.status.success(), "{homes:?} {runner:?} {unseen:?}");
            let kept = run(&["--keep", &write]);
            assert!(kept.status.success(), "{homes:?} {runner:?} {kept:?}");
            let later = run(&["--drop", &read]);
            let expected = "jar\n".repeat(PLACES.len());
            assert_eq!(
                text(&later.stdout),
                expected,
                "{homes:?} {runner:?} {later:?}"
            );
        }
    }
}

#[test]
fn an_overlay_over_the_home_of_a_toolchain_opens_nothing_else_in_it() {
    for runner in Runner::all() {
        let home = "mkdir -p ~/.cargo/bin ~/.cargo/registry/src; cd ~/.cargo; echo token > credentials.toml; echo own > bin/tool";
        let scene = Scene::of(
            runner,
            &format!("echo 1 > a; {home}; echo crate > registry/src/c"),
        );
        let line = "exec 2> /dev/null; cd ~/.cargo; cat bin/tool registry/src/c; mkdir -p git/db && echo x > registry/src/c && cat registry/src/c
             cat credentials.toml || echo closed; echo y > bin/tool || echo closed; touch new || echo closed";
        let done = scene.exec(&["--drop", line]);
        assert_eq!(
            text(&done.stdout),
            "own\ncrate\nx\nclosed\nclosed\nclosed\n",
            "{runner:?} {done:?}"
        );
        scene
            .bash("cd ~/.cargo; grep -q crate registry/src/c; grep -q own bin/tool; test ! -e git");
    }
}

#[test]
fn a_place_of_packages_that_is_a_link_has_its_own_layer() {
    let home = "mkdir -p ~/.cargo ~/elsewhere; ln -s ~/elsewhere ~/.cargo/registry";
    let scene = Scene::new(&format!("echo 1 > a; {home}"));
    let kept = scene.keep("echo x > ~/.cargo/registry/c && mkdir ~/.cargo/git/db && echo 2 > a");
    assert!(kept.status.success(), "{kept:?}");
    scene.bash("test -z \"$(ls ~/elsewhere)\"; test ! -e ~/.cargo/git");
    let later = scene.exec(&["--drop", "cat ~/.cargo/registry/c; ls ~/.cargo/git"]);
    assert_eq!(text(&later.stdout), "x\ndb\n", "{later:?}");
}

#[test]
fn a_host_is_named_with_its_bytes_in_json() {
    let (scene, server) = (Scene::new("echo 1 > a"), FileServer::start());
    server.add("/f", "fetched\n");
    let line = "curl -s http://files.test/f; curl -s http://bad.test/f";
    let done = server.exec(&scene, &["--json", "--allow-host", "files.test", line]);
    let told: Value = serde_json::from_slice(&done.stdout).unwrap();
    let hosts = told["hosts"].as_array().unwrap();
    assert_eq!(
        (&hosts[0]["host"], &hosts[0]["port"]),
        (&"files.test".into(), &80.into())
    );
    assert!(hosts[0]["sent"].as_u64() > Some(20) && hosts[0]["received"].as_u64() > Some(8));
    assert_eq!(
        hosts[1]["refused"],
        "bad.test:80 is not allowed: no --allow-host allows it"
    );
    assert!(
        told["output"]
            .as_str()
            .unwrap()
            .starts_with("fetched\nco: bad.test:80 is not"),
        "{told}"
    );
    assert_eq!(server.requests().len(), 1);
}

/// Tries to reach the ports in `sys.argv` at all addresses of the machine and some others: of a server, a server at all
/// addresses, and datagrams at all addresses. Prints what is open.
const OTHER_WAYS: &str = "import os, socket, sys
local, everywhere, datagrams = map(int, sys.argv[1:4])
def attempt(family, address, kind=socket.SOCK_STREAM):
    try:
        s = socket.socket(family, kind); s.settimeout(2); s.connect(address); s.send(b'x')
        print('OPEN', family, address)
    except OSError: pass
def datagram(family, host, *options):
    try:
        s = socket.socket(family, socket.SOCK_DGRAM)
        for option in options: s.setsockopt(*option)
        s.sendto(b'x', (host, datagrams))
    except OSError: pass
for host in sys.argv[4:] + [socket.gethostname(), '192.0.2.1', '10.0.0.1', '::ffff:127.0.0.1']:
    family = socket.AF_INET6 if ':' in host else socket.AF_INET
    for port in local, everywhere: attempt(family, (host, port))
    datagram(family, host)
datagram(socket.AF_INET, '255.255.255.255', (socket.SOL_SOCKET, socket.SO_BROADCAST, 1))
datagram(socket.AF_INET, '224.0.0.1')
datagram(socket.AF_INET6, 'ff02::1')
attempt(socket.AF_UNIX, '\\0abstract')
attempt(socket.AF_UNIX, '/run/docker.sock')
attempt(socket.AF_INET, ('127.0.0.1', 0), socket.SOCK_RAW)
attempt(17, ('lo', 0), socket.SOCK_RAW)
attempt(16, (0, 0), socket.SOCK_RAW)
for fd in range(3, 64):
    try: os.fstat(fd); print('OPEN', fd, os.readlink('/proc/self/fd/%d' % fd))
    except OSError: pass
p = int(os.environ['HTTP_PROXY'].rsplit(':', 1)[1])
hosts = ['[%s]' % host if ':' in host else host for host in sys.argv[4:]]
hosts += ['[::ffff:7f00:1]', 'localhost', '0.0.0.0', '[::]']
for target in ['%s:%d' % (host, port) for host in hosts for port in (local, everywhere)] + ['files.test:25', 'bad.test:80']:
    s = socket.create_connection(('127.0.0.1', p)); s.sendall(b'CONNECT %s HTTP/1.1\\r\\n\\r\\n' % target.encode())
    a = s.recv(100)
    if not a.startswith(b'HTTP/1.1 403'): print('OPEN', target, a)
print('done')
";

/// Returns all addresses of this machine.
fn own_addresses() -> Vec<String> {
    let table = std::fs::read_to_string("/proc/net/fib_trie").unwrap();
    let mut lines = table.lines().map(str::trim).peekable();
    let mut found = BTreeSet::from(["127.0.0.2".to_owned(), "::1".to_owned()]);
    while let Some(line) = lines.next() {
        if lines.peek() == Some(&"/32 host LOCAL") {
            found.insert(line.trim_start_matches("|-- ").to_owned());
        }
    }
    let table = std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
    let digits = table.lines().filter_map(|line| line.get(..32));
    let address = |digits| Ipv6Addr::from(u128::from_str_radix(digits, 16).unwrap());
    found.extend(digits.map(|digits| address(digits).to_string()));
    found.into_iter().collect()
}

/// Checks that a command with these options and settings has no way to a server or a socket of the machine. With `files.test`,
/// which some may reach, that is the way there.
fn check_no_other_way(runner: Runner, options: &[&str], settings: &[(&str, &str)]) {
    let scene = Scene::of(runner, "echo 1 > a");
    let server = FileServer::start();
    let all = FileServer::start_at("0.0.0.0");
    // On a machine without IPv6 there is none.
    let all_v6 = TcpListener::bind(("::", 0)).map(FileServer::serve).ok();
    let datagrams = UdpSocket::bind("[::]:0")
        .or_else(|_| UdpSocket::bind("0.0.0.0:0"))
        .unwrap();
    datagrams.set_nonblocking(true).unwrap();
    let everywhere = all_v6.as_ref().unwrap_or(&all).port;
    let numbers = [
        server.port,
        everywhere,
        datagrams.local_addr().unwrap().port(),
    ];
    let numbers = numbers.map(|it| it.to_string());
    let addresses = own_addresses();
    let words = numbers.iter().chain(&addresses).map(String::as_str);
    let args: Vec<_> = ["--json", "--", "python3", "-c", OTHER_WAYS]
        .into_iter()
        .chain(words)
        .collect();
    let mut command = server.command_at(&scene, options, &args);
    let done = command.envs(settings.iter().copied()).output().unwrap();
    let told: Value = serde_json::from_slice(&done.stdout).unwrap();
    let output = told["output"].as_str().unwrap();
    assert!(
        output.starts_with("done\n"),
        "{options:?} {settings:?} {told}"
    );
    let servers = [Some(&server), Some(&all), all_v6.as_ref()]
        .into_iter()
        .flatten();
    assert!(
        servers.into_iter().all(|it| it.connections() == 0),
        "{options:?} {settings:?}"
    );
    assert!(datagrams.recv(&mut [0; 9]).is_err(), "a datagram came");
}

#[test]
fn an_allowed_host_opens_no_other_way() {
    Runner::check_all(|runner| {
        for level in [TRIAL, WORKSPACE] {
            let allowing = [level, &["--allow-host", "files.test"]].concat();
            check_no_other_way(runner, &allowing, &[]);
            check_no_other_way(runner, level, &[("CO_CLI_SANDBOX_NETWORK", "ask")]);
        }
    });
}

#[test]
fn a_port_of_this_machine_is_reached_if_it_is_allowed() {
    let (scene, server) = (Scene::new("echo 1 > a"), FileServer::start());
    server.add("/f", "local\n");
    let url = format!("http://localhost:{}/f", server.port);
    let line = format!(
        "curl -sS {url} || curl -sS {}",
        url.replace("localhost", "127.0.0.1")
    );
    let done = scene.exec(&["--allow-host", "files.test", &line]);
    assert!(!done.status.success(), "{done:?}");
    let host = format!("localhost:{}", server.port);
    let done = scene.exec(&["--allow-host", &host, &line]);
    assert_eq!(text(&done.stdout), "local\n", "{done:?}");
    assert!(said(&done)[0].starts_with(&format!("[it reached 127.0.0.1:{} (", server.port)));
    // The command may serve at other ports of its own.
    let own = "python3 -m http.server 8000 > /dev/null 2>&1 & for i in $(seq 200); do curl -sf http://127.0.0.1:8000/a && break; sleep 0.05; done";
    assert_eq!(
        text(&scene.exec(&["--allow-host", &host, own]).stdout),
        "1\n"
    );
}

#[test]
fn a_permission_is_that_of_one_command() {
    let (scene, server) = (Scene::new("echo 1 > a"), FileServer::start());
    server.add("/f", "fetched\n");
    let (scene, server) = (&scene, &server);
    for level in [TRIAL, WORKSPACE] {
        std::thread::scope(|scope| {
            let run = |host| {
                let args = ["--allow-host", host, "curl -sS http://files.test/f"];
                server.exec_at(scene, level, &args)
            };
            let allowed = scope.spawn(move || run("files.test"));
            let other = run("other.test");
            assert!(text(&other.stdout).contains("is not allowed"), "{other:?}");
            assert_eq!(text(&allowed.join().unwrap().stdout), "fetched\n");
        });
    }
}

/// Runs a line at the workspace level, with variables of the person.
fn confined(
    scene: &Scene,
    variables: &[(&str, &str)],
    args: &[&str],
) -> (Option<i32>, String, Vec<String>) {
    let mut command = scene.command_at(WORKSPACE, args);
    command.envs(variables.iter().copied());
    let done = command.output().unwrap();
    (done.status.code(), text(&done.stdout), said(&done))
}

#[test]
fn an_approved_command_reaches_the_hosts_that_are_allowed_only() {
    let (scene, server) = (Scene::new("echo 1 > a"), FileServer::start());
    server.add("/f", "fetched\n");
    let line = "curl -sSf http://files.test/f > got; echo $? > exit";
    let done = server.exec_at(&scene, WORKSPACE, &["--allow-host", "other.test", line]);
    assert_eq!(
        said(&done),
        ["co-nvim: files.test:80 is not allowed: no --allow-host allows it"]
    );
    scene.bash("grep -q 22 exit");
    assert_eq!(server.requests(), [""; 0]);
    let done = server.exec_at(&scene, WORKSPACE, &["--allow-host", "files.test", line]);
    assert!(
        said(&done)[0].starts_with("[it reached files.test:80 ("),
        "{done:?}"
    );
    scene.bash("grep -q fetched got");
}

#[test]
fn the_settings_and_the_workspace_say_which_hosts_an_approved_command_reaches() {
    let (scene, server) = (
        Scene::new("echo 1 > a; mkdir .co"),
        FileServer::start_at("127.0.0.2"),
    );
    server.add("/f", "fetched\n");
    let host = format!("127.0.0.2:{}", server.port);
    let line = format!("curl -sSf http://{host}/f");
    let ask = ("CO_CLI_SANDBOX_NETWORK", "ask");
    let (code, _, told) = confined(&scene, &[ask], &[&line]);
    assert_eq!(code, Some(22));
    assert_eq!(
        told,
        [format!(
            "co-nvim: {host} is not allowed: no --allow-host allows it"
        )]
    );
    let allow = ("CO_CLI_ALLOW_HOSTS", host.as_str());
    assert_eq!(confined(&scene, &[ask, allow], &[&line]).1, "fetched\n");
    // So does a trial.
    let mut trial = scene.try_command(&["--drop", &line]);
    trial.envs([ask, allow]);
    assert_eq!(text(&trial.output().unwrap().stdout), "fetched\n");
    // Only `ask` makes the settings count.
    assert_eq!(confined(&scene, &[allow], &[&line]).0, Some(7));
    // Whoever denies it wins.
    let deny = ("CO_CLI_DENY_HOSTS", "127.0.0.2");
    let (code, _, told) = confined(&scene, &[deny], &["--allow-host", &host, &line]);
    assert_eq!(
        (code, &*told[0]),
        (
            Some(22),
            &*format!("co-nvim: {host} is not allowed: the rule `127.0.0.2` denies it")
        )
    );
    scene.bash("echo 'deny_hosts = [\"127.0.0.2\"]' > .co/policy.toml");
    assert_eq!(confined(&scene, &[ask, allow], &[&line]).0, Some(22));
    scene.bash("echo 'deny_hosts = 1' > .co/policy.toml");
    let (code, _, told) = confined(&scene, &[], &["--allow-host", &host, &line]);
    assert_eq!(code, Some(125));
    assert!(
        told[0].contains("policy.toml cannot be read, so no host is allowed"),
        "{told:?}"
    );
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn more_ports_of_this_machine_than_a_command_can_have_are_refused() {
    let scene = Scene::new("echo 1 > a");
    let hosts = (1..=25).flat_map(|port| ["--allow-host".to_owned(), format!("localhost:{port}")]);
    let args: Vec<_> = hosts.chain(["true".to_owned()]).collect();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let (code, _, told) = confined(&scene, &[], &args);
    assert_eq!(code, Some(125));
    assert!(
        told[0].contains("name more than 48 addresses of this machine"),
        "{told:?}"
    );
}

#[test]
fn without_namespaces_an_approved_command_has_no_network() {
    let (scene, server) = (Scene::new("echo 1 > a"), FileServer::start());
    let none = ("CO_CLI_SANDBOX_NAMESPACES", "false");
    let line = format!("curl -sS http://localhost:{}/f", server.port);
    let host = format!("localhost:{}", server.port);
    let (code, _, told) = confined(&scene, &[none], &["--allow-host", &host, &line]);
    let refused =
        "co-nvim: commands cannot have a network of their own here: sandbox_namespaces is off";
    assert_eq!((code, &*told[0]), (Some(125), refused));
    let settings = [
        none,
        ("CO_CLI_SANDBOX_NETWORK", "ask"),
        ("CO_CLI_ALLOW_HOSTS", &host),
    ];
    assert_eq!(confined(&scene, &settings, &[&line]).0, Some(7));
    assert_eq!(server.requests(), [""; 0]);
}

#[test]
fn the_doctor_tries_each_way_to_a_host() {
    let said = |scene: &Scene, variable: (&str, &str)| {
        let mut doctor = scene.co();
        let done = doctor.arg("doctor").env(variable.0, variable.1).output();
        let lines = text(&done.unwrap().stdout);
        let row = lines.lines().find(|line| line.contains(" hosts: "));
        row.unwrap_or_else(|| panic!("{lines}")).to_owned()
    };
    for runner in Runner::all() {
        let scene = Scene::of(runner, "echo 1 > a");
        // A proxy of the person has no part in it.
        let row = said(&scene, ("HTTP_PROXY", "http://127.0.0.1:1"));
        let expected = "ok    hosts: through co's proxy, a command reaches an allowed host, and no other; past the proxy, it reaches none";
        assert_eq!(row, expected);
        let row = said(&scene, ("CO_CLI_SANDBOX_NAMESPACES", "false"));
        let expected = "warn  hosts: no network by host: commands cannot have a network of their own here: sandbox_namespaces is off";
        assert_eq!(row, expected);
    }
}

#[test]
fn the_proxy_of_a_clients_own_settings_does_not_win() {
    // Nobody listens there.
    let dead = "http://127.0.0.1:9";
    let script = format!(
        "mkdir -p src .cargo; echo 'fn main() {{}}' > src/main.rs
         printf '[package]\\nname = \"w\"\\nversion = \"0.1.0\"\\nedition = \"2021\"\\n[dependencies]\\nown-pkg = \"1\"\\n' > Cargo.toml
         printf '[http]\\nproxy = \"{dead}\"\\n[source.crates-io]\\nreplace-with = \"t\"\\n[source.t]\\n' > .cargo/config.toml
         printf 'registry = \"sparse+http://files.test/index/\"\\n[net]\\nretry = 0\\n' >> .cargo/config.toml
         printf 'proxy={dead}\\nhttps-proxy={dead}\\n' > .npmrc; echo '{{}}' > package.json
         printf '[global]\\nproxy = {dead}\\n' > pip.conf
         git config --global http.proxy {dead}"
    );
    let (scene, server) = (Scene::new(&script), FileServer::start());
    let lines = [
        format!("CARGO_HOME=$TMPDIR/cargo {} -q fetch", env!("CARGO")),
        "npm install --silent --no-audit --no-fund --fetch-retries 0 --registry http://files.test/ own-pkg".to_owned(),
        "PIP_CONFIG_FILE=$PWD/pip.conf $(python3 -c 'import sys; print(sys.executable)') -m pip install -q --disable-pip-version-check \
         --retries 0 --no-deps --trusted-host files.test --index-url http://files.test/simple --target lib own-pkg"
            .to_owned(),
        "git ls-remote http://files.test/r".to_owned(),
    ];
    for (number, line) in lines.iter().enumerate() {
        // The server has nothing, but is asked.
        let done = server.exec(&scene, &["--drop", "--allow-host", "files.test", line]);
        let told = said(&done);
        assert!(
            told[0].starts_with("[it reached files.test:80 ("),
            "{line}: {done:?}"
        );
        assert!(server.requests().len() > number, "{line}: {done:?}");
    }
}

#[test]
fn the_certificates_of_the_person_are_readable() {
    let (scene, server) = (Scene::new("echo 1 > a"), FileServer::start());
    scene.bash(
        "mkdir \"$HOME/own\"; cd \"$HOME/own\"; printf -- '-----BEGIN CERTIFICATE-----\\nx\\n' > ca.crt; cp ca.crt key.crt
         printf -- '-----BEGIN PRIVATE KEY-----\\n' >> key.crt; echo secret > other",
    );
    let own = scene.home.join("own");
    let line = "grep -c BEGIN \"$SSL_CERT_FILE\"; cat \"$REQUESTS_CA_BUNDLE\" || cat \"${SSL_CERT_FILE%/*}/other\" || echo closed";
    for level in [TRIAL, WORKSPACE] {
        let mut command = scene.command_at(level, &["--allow-host", "files.test", line]);
        command.env("SSL_CERT_FILE", own.join("ca.crt"));
        command.env("REQUESTS_CA_BUNDLE", own.join("key.crt"));
        let done = command.output().unwrap();
        let output = text(&done.stdout);
        assert!(
            output.starts_with("1\n") && output.contains("\nclosed\n"),
            "{done:?}"
        );
        assert!(!output.contains("secret"), "{done:?}");
    }
    assert_eq!(server.requests(), [""; 0]);
}

#[test]
fn localhost_and_its_two_addresses_are_three_permissions() {
    let (scene, server) = (Scene::new("echo 1 > a"), FileServer::start());
    let port = server.port;
    server.add("/f", "v4\n");
    // Two servers at one port.
    let Ok(other) = TcpListener::bind(("::1", port)) else {
        return;
    };
    let other = FileServer::serve(other);
    other.add("/f", "v6\n");
    let line = format!(
        "for h in 127.0.0.1 '[::1]' localhost; do curl -sS --max-time 5 http://$h:{port}/f 2>&1 | sed 's/curl: (7).*/refused/'; done"
    );
    let check = |hosts: &[&str], expected: &str| {
        let hosts = hosts
            .iter()
            .flat_map(|host| ["--allow-host".to_owned(), format!("{host}:{port}")]);
        let args: Vec<_> = hosts.chain([line.clone()]).collect();
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        let done = scene.exec(&args);
        let output = text(&done.stdout);
        let two: Vec<_> = output.lines().take(2).collect();
        assert_eq!(two.join(" "), expected, "{args:?}: {done:?}");
    };
    check(&["127.0.0.1"], "v4 refused");
    check(&["[::1]"], "refused v6");
    check(&["localhost"], "v4 v6");
}
