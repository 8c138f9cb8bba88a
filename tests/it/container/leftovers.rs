//! The containers that a killed backend left.

use super::{BUSYBOX, engines, exec, running, workspace};
use crate::support::{DEADLINE, proc};

const SLEEPS: &str = "echo up > up; sleep 500";

#[test]
fn the_next_start_removes_them_and_no_others() {
    for engine in engines() {
        let (killed, lives, third) = (workspace(), workspace(), workspace());
        let mut dead = running(&engine, &killed, SLEEPS);
        let mut living = running(&engine, &lives, SLEEPS);
        proc::kill9(proc::children(i32::try_from(dead.id()).unwrap())[0]);
        dead.wait().unwrap();
        // The backend of another test may be the next one.
        proc::wait_until(DEADLINE, "its removal", || {
            let done = exec(&engine, &third, BUSYBOX, &["true"]);
            assert!(done.status.success(), "{done:?}");
            engine.containers(&killed).is_empty().then_some(())
        });
        let [name] = &engine.containers(&lives)[..] else {
            panic!("the living one has one container");
        };
        assert!(name.starts_with("co-runner-") && name.len() == 18, "{name}");
        let running = engine.call(&["inspect", "--format", "{{.State.Running}}", name]);
        assert_eq!(running.trim(), "true", "{engine:?}");
        proc::kill9(proc::children(i32::try_from(living.id()).unwrap())[0]);
        living.wait().unwrap();
        exec(&engine, &third, BUSYBOX, &["true"]);
    }
}
