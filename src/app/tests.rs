use std::fs;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use nix::sys::stat::Mode;
use serde_json::json;

use super::*;
use crate::paths::Paths;

/// A program in the place of co-nvim, whose probe of the sandbox ends when somebody writes to `fifo`.
fn program(dir: &Path) -> PathBuf {
    nix::unistd::mkfifo(&dir.join("fifo"), Mode::S_IRWXU).unwrap();
    let exe = dir.join("exe");
    let script = "#!/bin/sh\nexec cat < \"${0%/*}/fifo\"\n";
    fs::write(&exe, script).unwrap();
    fs::set_permissions(&exe, fs::Permissions::from_mode(0o755)).unwrap();
    exe
}

fn places(root: &Path) -> Paths {
    let root = root.to_str().unwrap();
    let place = |name: &str| {
        let kind = name.strip_prefix("XDG_")?.strip_suffix("_HOME")?;
        Some(format!("{root}/{}", kind.to_lowercase()))
    };
    Paths::discover(&place).unwrap()
}

#[tokio::test]
async fn the_sandbox_is_probed_when_its_result_is_needed_and_not_before() {
    let dir = tempfile::tempdir().unwrap();
    let exe = program(dir.path());
    let (editor, outbox) = Editor::new();
    let hello = FromEditor::Hello {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        settings: json!({}),
        begins_chat: false,
    };
    let settings = greet(hello, &editor);
    let greeted = |frame: &[ToEditor]| matches!(frame, [ToEditor::Ready { .. }]);
    let frame = outbox.take_frame();
    assert!(greeted(&frame), "{frame:?}");
    let here = Installation {
        paths: places(dir.path()),
        exe,
    };
    let (_log, services) = start::make(settings, &editor, move || Ok(here)).await;
    let (services, _settings) = services.unwrap();
    let fifo = dir.path().join("fifo");
    let mut opened = fs::File::options();
    opened.write(true).custom_flags(nix::libc::O_NONBLOCK);
    assert!(opened.open(&fifo).is_err(), "the probe reads it");
    tokio::spawn(tell_isolation(Arc::clone(&services)));

    // It waits for the probe to come that far, and ends it.
    let end = tokio::task::spawn_blocking(move || fs::write(fifo, ""));
    end.await.unwrap().unwrap();
    let told = loop {
        outbox.filled().await;
        let frame = outbox.take_frame();
        if !frame.is_empty() {
            break frame;
        }
    };
    let isolation = ToEditor::Isolation {
        isolation: "no sandbox".to_owned(),
    };
    // It gave no answer, which says nothing of the kernel.
    assert_eq!(told, [isolation]);
    services.executor.shutdown().await;
}
