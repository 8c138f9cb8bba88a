//! The shell scripts that run inside a container, for any `sh`.
//!
//! All processes of a command have the same mark: a limit of file locks that no other command has. The kernel ignores this limit,
//! and every child inherits it, also with a new environment, session or parent. `/proc` shows it.

use crate::process::command_processes::STOP_GRACE_PERIOD;

/// Starts a command, and reports to standard error; see [`super::control`].
///
/// Arguments: the mark, the seconds until the time-out (0 for no time-out), `shell` or `argv`, `tty` or `pipe`, the command.
pub(super) const RUN: &str = r#"
mark=$1 seconds=$2 kind=$3 streams=$4 fg=
shift 4
if [ "$streams" = tty ]; then exec 3>/dev/null; else exec 3>&2; fi
exec 2>/dev/null
echo 'co start' >&3
ulimit -w "$mark" || ulimit -x "$mark" || echo 'co unmarked' >&3
if [ "$kind" = shell ]; then
  if command -v bash >/dev/null; then set -- bash --noprofile --norc -c "$1"; else
    echo 'co missing bash' >&3
    set -- sh -c "$1"
  fi
fi
if [ "$seconds" != 0 ]; then
  [ "$streams" = tty ] && timeout --foreground 9 sh -c : && fg=--foreground
  if timeout -k 1 9 sh -c :; then set -- timeout $fg -k 1 "$seconds" "$@"
  elif timeout -t 9 sh -c :; then set -- timeout -t "$seconds" "$@"
  elif timeout 9 sh -c :; then set -- timeout "$seconds" "$@"
  else echo 'co missing timeout' >&3; fi
fi
kills() {
  oom=0
  for file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
    [ -r "$file" ] && while read -r name count; do
      [ "$name" = oom_kill ] && oom=$count
    done <"$file"
  done
}
kills
before=$oom
if [ "$streams" = tty ]; then "$@" 2>&1; else "$@" 2>&1 3>&-; fi
code=$?
kills
[ "$oom" = "$before" ] || echo 'co memory' >&3
LIST
echo "co end $code" >&3
exit "$code"
"#;

/// Prints the processes that have a mark. Argument: the mark.
pub(super) const LEFT: &str = r#"
mark=$1
exec 3>&1 2>/dev/null
LIST
"#;

/// Ends the processes that have a mark: sends SIGTERM, pauses, then sends SIGKILL until no such process is left. Fails if some
/// are left. Searches several times, because a process may have started another one before it ended.
///
/// Argument: the mark.
pub(super) const END: &str = r#"
mark=$1
exec 2>/dev/null
find() {
  found=
  exec 3>/dev/null
  LIST
}
find
[ "$found" ] && { kill -TERM $found; kill -CONT $found; sleep GRACE || sleep 1; }
round=0 quiet=0
while [ "$round" -lt 200 ] && [ "$quiet" -lt 10 ]; do
  find
  round=$((round + 1)) quiet=$((quiet + 1))
  [ "$found" ] || continue
  quiet=0
  kill -STOP $found
  [ $((round % 2)) = 0 ] && kill -KILL $found
done
[ "$quiet" = 10 ]
"#;

/// Finds the processes that have the mark, except this shell and processes that have ended. Uses only builtins of the shell.
const LIST: &str = r#"
for dir in /proc/[0-9]*; do
  pid=${dir#/proc/}
  [ "$pid" = "$$" ] && continue
  marked=
  while read -r a b c soft rest; do
    case "$a $b $c" in "Max file locks") [ "$soft" = "$mark" ] && marked=1; break ;; esac
  done <"$dir/limits"
  [ "$marked" ] || continue
  name= state=
  while read -r key value rest; do
    case $key in Name:) name=$value ;; State:) state=$value; break ;; esac
  done <"$dir/status"
  case $state in Z | X | '') continue ;; esac
  found="$found $pid"
  # Busybox's timeout leaves a process that looks once a second if its command goes on.
  [ "$name" = timeout ] || echo "co left $pid $name" >&3
done
"#;

/// Returns a script, with the placeholders for its shared parts filled in.
pub(super) fn script(text: &str) -> String {
    let grace = STOP_GRACE_PERIOD.as_secs_f32().to_string();
    text.replace("LIST", LIST).replace("GRACE", &grace)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Output};

    use super::*;

    fn run(shell: &str, text: &str, args: &[&str]) -> Output {
        let mut command = Command::new(shell);
        command.args(["-c", &script(text), "co"]).args(args);
        command.output().unwrap()
    }

    fn told(output: &Output) -> (String, String) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    }

    /// The `sh` of this machine, and bash.
    const SHELLS: [&str; 2] = ["sh", "bash"];

    #[test]
    fn output_and_reports_have_streams_of_their_own() {
        for shell in SHELLS {
            let done = run(
                shell,
                RUN,
                &[
                    "1001",
                    "9",
                    "shell",
                    "pipe",
                    "echo out; echo err >&2; exit 7",
                ],
            );
            assert_eq!(done.status.code(), Some(7), "{shell}");
            let (out, reports) = told(&done);
            assert_eq!(out, "out\nerr\n", "{shell}");
            assert_eq!(reports, "co start\nco end 7\n", "{shell}");
        }
    }

    #[test]
    fn an_argv_runs_without_a_shell_and_a_time_out_ends_it() {
        for shell in SHELLS {
            let args = ["1002", "0", "argv", "pipe", "printf", "%s.", "a b", "$x"];
            assert_eq!(told(&run(shell, RUN, &args)).0, "a b.$x.", "{shell}");
            let args = ["1003", "1", "shell", "pipe", "echo before; sleep 60"];
            let done = run(shell, RUN, &args);
            assert_eq!(done.status.code(), Some(124), "{shell}");
            assert_eq!(told(&done).0, "before\n", "{shell}");
        }
    }

    #[test]
    fn what_is_left_is_named_and_ended() {
        for (shell, mark) in SHELLS.into_iter().zip(["1004", "1005"]) {
            let command = "env -i setsid sleep 300 >/dev/null 2>&1 &";
            let done = run(shell, RUN, &[mark, "9", "shell", "pipe", command]);
            let reports = told(&done).1;
            assert!(
                reports.starts_with("co start\nco left "),
                "{shell}: {reports}"
            );
            let left = || told(&run(shell, LEFT, &[mark])).0;
            assert_eq!(left().lines().count(), 1, "{shell}");
            assert!(run(shell, END, &[mark]).status.success(), "{shell}");
            assert_eq!(left(), "", "{shell}");
        }
    }
}
