//! Clients that try to reach more than they may, in commands that may reach a few hosts: each as those who run the tests and as
//! an ordinary user.
//!
//! No name is looked up: co gets the test's server as the proxy of the person, and sends it the names.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use super::trial_scene::{Scene, text};
use crate::support::runner::{Runner, python};
use crate::support::{DEADLINE, proc};

const TRIAL: &[&str] = &["--try"];
const WORKSPACE: &[&str] = &["--backend", "landlock"];

/// The script of the client.
const CLIENT: &str = include_str!("hostile_clients.py");

/// The most bytes that co and the kernel may take for a reader that does not read.
const MOST_BUFFERED: usize = 64 << 20;

/// The target of a CONNECT, and the bytes that came then.
type Tunnel = (String, Vec<u8>);

/// A proxy of the person that answers every request by itself, and keeps what comes.
#[derive(Clone, Default)]
struct PersonProxy {
    requests: Arc<Mutex<Vec<String>>>,
    tunnels: Arc<Mutex<Vec<Tunnel>>>,
    /// A client did not read what the server of `flood.test` sends.
    is_stopped: Arc<AtomicBool>,
}

impl PersonProxy {
    /// Returns the port.
    fn start(&self) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = self.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = server.clone();
                // A client may leave early.
                std::thread::spawn(move || server.answer(stream).ok());
            }
        });
        port
    }

    fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let head = read_head(&mut stream)?;
        let mut words = head.split(' ');
        let (method, target) = (words.next(), words.next().unwrap_or_default().to_owned());
        if method != Some("CONNECT") {
            self.requests.lock().unwrap().push(head);
            let is_stopped = self.is_stopped.load(Ordering::Relaxed);
            let answer = if is_stopped { "yes" } else { "no" };
            let length = answer.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{answer}"
            );
            stream.write_all(answer.as_bytes())?;
            stream.shutdown(Shutdown::Write)?;
            return std::io::copy(&mut stream, &mut std::io::sink()).map(|_| ());
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
        if target == "flood.test:7" {
            return self.flood(&stream);
        }
        let mut bytes = Vec::new();
        let read = stream.read_to_end(&mut bytes);
        self.tunnels.lock().unwrap().push((target, bytes));
        read?;
        stream.write_all(b"rest")
    }

    /// Sends until the client does not read any more.
    fn flood(&self, mut stream: &TcpStream) -> std::io::Result<()> {
        stream.set_write_timeout(Some(Duration::from_millis(500)))?;
        let chunk = vec![b'a'; 64 << 10];
        let mut sent = 0;
        while let Ok(written) = stream.write(&chunk) {
            sent += written;
            if sent > MOST_BUFFERED {
                return Ok(());
            }
        }
        self.is_stopped.store(true, Ordering::Relaxed);
        // The client ends it.
        stream.set_read_timeout(None)?;
        stream.read(&mut [0; 1]).map(|_| ())
    }
}

/// Reads the head of a request.
fn read_head(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte)? > 0 {
        head.push(byte[0]);
    }
    Ok(text(&head))
}

/// Returns co's command at a level, which may reach a few hosts behind a proxy of the person.
fn command(scene: &Scene, port: u16, level: &[&str], args: &[&str]) -> std::process::Command {
    let hosts = ["files.test", "half.test:7", "flood.test:7"];
    let hosts = hosts.iter().flat_map(|host| ["--allow-host", host]);
    let args: Vec<_> = hosts.chain(args.iter().copied()).collect();
    let mut command = scene.command_at(level, &args);
    let proxy = format!("http://127.0.0.1:{port}");
    command.env("HTTP_PROXY", &proxy).env("HTTPS_PROXY", &proxy);
    command
}

fn check(runner: Runner, level: &[&str]) {
    // A kernel that seems older takes long for each. Both levels have the same proxy, so one of them gets very many.
    let connections = match (runner.is_old(), level == TRIAL) {
        (true, _) => 100,
        (false, true) => 10_000,
        (false, false) => 1_000,
    };
    let scene = Scene::of(runner, "echo 1 > a");
    let server = PersonProxy::default();
    let port = server.start();
    let [connections, own] = [connections, usize::from(port)].map(|it| it.to_string());
    let args = ["--json", "--", python(), "-c", CLIENT, &connections, &own];
    let done = command(&scene, port, level, &args).output().unwrap();
    let told: Value = serde_json::from_slice(&done.stdout).unwrap();
    let output = told["output"].as_str().unwrap();
    assert!(output.starts_with("done\n"), "{level:?} {output} {done:?}");
    for head in server.requests.lock().unwrap().iter() {
        let lines: BTreeSet<_> = head.to_lowercase().lines().map(str::to_owned).collect();
        assert!(lines.contains("host: files.test"), "{head}");
        assert!(
            !head.contains("bad.test") && !head.contains("h2c"),
            "{head}"
        );
    }
    for (target, bytes) in server.tunnels.lock().unwrap().iter() {
        match target.as_str() {
            // The client's messages with the right name, and nothing of the others.
            "files.test:443" => assert!(
                bytes.is_empty()
                    || String::from_utf8_lossy(bytes)
                        .to_lowercase()
                        .contains("files.test"),
                "{bytes:?}"
            ),
            "half.test:7" => assert_eq!(bytes, b"all"),
            _ => panic!("{target}"),
        }
    }
}

#[test]
fn a_hostile_client_reaches_nothing_more_from_a_trial() {
    Runner::check_all(|runner| check(runner, TRIAL));
}

#[test]
fn a_hostile_client_reaches_nothing_more_from_an_approved_command() {
    Runner::check_all(|runner| check(runner, WORKSPACE));
}

/// Asks the proxy three times for a name, and then for another one that has the same addresses. Prints what comes.
const CHANGING: &str = "import os, socket, sys
for host in ['name.test', 'name.test', 'name.test', 'other.test']:
    for request in ['CONNECT HOST HTTP/1.1\\r\\n\\r\\n', 'GET http://HOST/ HTTP/1.1\\r\\nHost: HOST\\r\\n\\r\\n']:
        s = socket.create_connection(('127.0.0.1', int(os.environ['HTTP_PROXY'].rsplit(':', 1)[1])), 60)
        s.sendall(request.replace('HOST', host + ':' + sys.argv[1]).encode())
        s.shutdown(socket.SHUT_WR)
        told = b''
        while part := s.recv(1 << 16): told += part
        print(told.split(b' ')[1].decode(), 'private' if b'not to the internet' in told else '')
";

#[test]
fn a_name_that_changes_its_address_leads_nowhere_else() {
    for runner in Runner::all() {
        for level in [TRIAL, WORKSPACE] {
            let scene = Scene::of(runner, "echo 1 > a");
            let hosts = scene.home.join("hosts");
            let name = |address: &str| {
                let text = format!("{address} name.test\n127.0.0.3 other.test\n");
                std::fs::write(&hosts, text).unwrap();
            };
            // The person allowed the name, and one address of this machine.
            let allowed = TcpListener::bind("127.0.0.2:0").unwrap();
            let port = allowed.local_addr().unwrap().port();
            let others = ["127.0.0.1", "127.0.0.3", "[::1]"];
            let others = others.map(|host| TcpListener::bind(format!("{host}:{port}")).unwrap());
            let [own, of_name, of_other] =
                ["127.0.0.2", "name.test", "other.test"].map(|host| format!("{host}:{port}"));
            let allow = [
                "--allow-host",
                &own,
                "--allow-host",
                &of_name,
                "--allow-host",
                &of_other,
            ];
            let port = port.to_string();
            let run = [python(), "-c", CHANGING, &port];
            let args: Vec<_> = allow.into_iter().chain(["--"]).chain(run).collect();
            let mut command = scene.command_with_hosts(&hosts, level, &args);
            name("127.0.0.2");
            let child = command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let (tunnelled, _) = allowed.accept().unwrap();
            tunnelled.shutdown(Shutdown::Both).unwrap();
            let (mut plain, _) = allowed.accept().unwrap();
            read_head(&mut plain).unwrap();
            name("127.0.0.3 name.test\n::1 name.test\n127.0.0.1 name.test\n169.254.169.254");
            plain
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                .unwrap();
            let done = child.wait_with_output().unwrap();
            let expected = "200 \n200 \n".to_owned() + &"403 private\n".repeat(6);
            assert_eq!(
                text(&done.stdout),
                expected,
                "{runner:?} {level:?} {done:?}"
            );
            for listener in others {
                listener.set_nonblocking(true).unwrap();
                assert!(
                    listener.accept().is_err(),
                    "{runner:?} {level:?} {listener:?}"
                );
            }
        }
    }
}

#[test]
fn a_process_that_outlives_its_command_reaches_nothing() {
    let get = "import socket, sys\n\
        s = socket.create_connection(('127.0.0.1', int(sys.argv[1])), 60)\n\
        s.sendall(b'GET http://files.test/ HTTP/1.1\\r\\nHost: files.test\\r\\n\\r\\n'); print(s.recv(99))";
    // A session of its own, and a parent that is gone.
    let line = "(setsid sh -c 'while ! test -e go; do sleep 0.05; done; python3 get.py ${HTTP_PROXY##*:} > got 2>&1; echo > late' \
        > /dev/null 2>&1 < /dev/null &); echo begun";
    for runner in Runner::all() {
        for level in [TRIAL, WORKSPACE, &["--backend", "landlock", "--keep"]] {
            let scene = Scene::of(runner, "echo 1 > a");
            scene.bash(&format!("cat > get.py <<'END'\n{get}\nEND"));
            let server = PersonProxy::default();
            let port = server.start();
            let done = command(&scene, port, level, &[line]).output().unwrap();
            assert!(text(&done.stdout).starts_with("begun"), "{done:?}");
            scene.bash("echo > go");
            // Only what is kept lives on, without a way.
            if level.contains(&"--keep") {
                let late = || scene.workspace.join("late").exists().then_some(());
                proc::wait_until(DEADLINE, "the kept process", late);
                scene.bash("grep -q ConnectionRefused got");
            }
            assert_eq!(server.requests.lock().unwrap().as_slice(), [""; 0]);
        }
    }
}
