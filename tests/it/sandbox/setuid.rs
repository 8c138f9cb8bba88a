//! A command leaves no setuid file: others could run it as its owner.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use super::hostile::python;
use super::machine::Machine;
use super::scene::stdout;
use crate::support::test_tree;

/// Tries each way to make a setuid file, by the calls of the C library and by numbers. Prints a line at its end.
const WAYS: &str = r"
import ctypes, os, shutil, stat, struct, subprocess
call = ctypes.CDLL(None).syscall
here = ctypes.c_int(-100)

def fresh(name):
    with open(name, 'w') as file:
        file.write('x')
    return name

def openat2():
    how = struct.pack('QQQ', os.O_CREAT | os.O_WRONLY, 0o4755, 0)
    call(437, here, b'by-openat2', how, len(how))

def by_descriptor():
    with open('fd', 'w') as file:
        os.fchmod(file.fileno(), 0o6755)

for way in [
    lambda: os.chmod(fresh('chmod'), 0o4755),
    lambda: os.chmod(fresh('bit'), 0o4000),
    by_descriptor,
    lambda: os.open('open', os.O_CREAT | os.O_WRONLY, 0o4755),
    lambda: os.mknod('mknod', stat.S_IFREG | 0o4755),
    lambda: call(452, here, fresh('fchmodat2').encode(), 0o4755, 0),
    lambda: call(452, here, fresh('flags').encode(), 0o4755, 0x100),
    openat2,
    lambda: shutil.copy2('before', 'copy2'),
    lambda: os.chmod('before', 0o4711),
    lambda: os.setxattr(fresh('xattr'), 'system.posix_acl_access', bytes(4)),
    lambda: subprocess.run('cp -p before cp; cp -a before archive; install -m 4755 before install; umask 0; tar c before |'
                           ' (mkdir t; cd t; tar xp); chmod u+s fd; chmod 7777 chmod', shell=True, stderr=subprocess.DEVNULL),
]:
    try:
        way()
    except OSError:
        pass
print('at the end')
";

#[test]
fn no_level_lets_a_command_make_one() {
    for machine in Machine::all() {
        for level in [&["--backend", "landlock"][..], &["--try", "--keep"]] {
            let ws = machine.lay("ws", &[("before", "x"), ("ways.py", WAYS)]);
            fs::set_permissions(ws.join("before"), Permissions::from_mode(0o4755)).unwrap();
            let done = machine.exec(&ws, level, &format!("{} ways.py", python()));
            assert!(stdout(&done).starts_with("at the end\n"), "{done:?}");
            let files = test_tree::read(&ws);
            assert!(files.len() > 6, "{level:?}: {files:?} {done:?}");
            let is_setuid = |(_, (mode, _)): &(&_, &(u32, _))| mode & 0o4000 != 0;
            let made = files
                .iter()
                .filter(is_setuid)
                .map(|(path, (mode, _))| (path, mode & 0o7777));
            let before = "before".into();
            assert_eq!(made.collect::<Vec<_>>(), [(&before, 0o4755)], "{level:?}");
            fs::remove_dir_all(ws).unwrap();
        }
    }
}
