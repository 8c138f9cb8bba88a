//! Tests the limits of containers in a container that is created for the test, because an engine may ignore an option.

use super::create;
use super::engine::Engine;
use crate::error::engine::EngineFault;
use crate::settings::container::ContainerSettings;

/// Prints the limits of the shell that runs it. Uses only builtins of the shell.
const SCRIPT: &str = r#"
exec 2>/dev/null
value() { [ -r "$2" ] && read -r found <"$2" && echo "$1 $found"; }
cd /sys/fs/cgroup
value processes pids.max; value processes pids/pids.max
value memory memory.max; value memory memory/memory.limit_in_bytes
value processors cpu.max; value processors cpu/cpu.cfs_quota_us; value processors cpu,cpuacct/cpu.cfs_quota_us
while read -r name found; do
  case $name in CapEff:) echo "capabilities $found" ;; NoNewPrivs:) echo "privileges $found" ;; esac
done </proc/self/status
while IFS=: read -r name rest; do
  case $name in *'|'* | *lo) ;; *) echo "device $name" ;; esac
done </proc/net/dev
(: >/co-probe) && echo writable
exit 0
"#;

/// Returns the names of the limits that the engine does not enforce in a container with these settings.
///
/// # Errors
/// The engine cannot run such a container.
pub async fn missing_limits(
    engine: &Engine,
    settings: &ContainerSettings,
) -> Result<Vec<&'static str>, EngineFault> {
    let mut args: Vec<String> = ["run", "--rm"].map(str::to_owned).into();
    args.extend(create::limits(settings, false));
    args.extend(["--entrypoint", "sh", &settings.image, "-c", SCRIPT].map(str::to_owned));
    let told = engine.call(&args, &settings.image).await?;
    Ok(missing(&told, settings))
}

fn missing(told: &str, settings: &ContainerSettings) -> Vec<&'static str> {
    let lines: Vec<Vec<&str>> = told
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let value = |name: &str| {
        let line = lines.iter().find(|line| line.first() == Some(&name));
        line.and_then(|line| line.get(1).copied())
    };
    let at_most = |name: &str, most: u64| {
        let found = value(name).and_then(|found| found.parse::<u64>().ok());
        found.is_some_and(|found| found <= most)
    };
    let has = |name: &str| lines.iter().any(|line| line.first() == Some(&name));
    let without_network = settings.network == "none";
    // A quota counts microseconds of each 100 ms.
    let quota = (settings.cpus * 100_000.0).ceil() as u64;
    let no_capability = value("capabilities").is_some_and(|set| set.trim_matches('0').is_empty());
    [
        ("memory", at_most("memory", settings.memory)),
        ("processes", at_most("processes", create::MAX_PROCESSES)),
        ("processors", at_most("processors", quota)),
        ("network", !without_network || !has("device")),
        ("capabilities", no_capability),
        ("new privileges", value("privileges") == Some("1")),
        (
            "writes outside of the workspace",
            !settings.read_only || !has("writable"),
        ),
    ]
    .into_iter()
    .filter_map(|(name, holds)| (!holds).then_some(name))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_nothing_shows_does_not_hold() {
        let settings = ContainerSettings::default();
        let check = |told: &str, expected: &[&str]| {
            assert_eq!(missing(told, &settings), expected, "{told}");
        };
        let all = "processes 256\nmemory 1073741824\nprocessors 100000 100000\ncapabilities 0000000000000000\nprivileges 1\n";
        check(all, &[]);
        check(&all.replace("memory 1073741824", "memory max"), &["memory"]);
        check(&all.replace("00\n", "20\n"), &["capabilities"]);
        check(
            &format!("{all}device eth0\nwritable\n"),
            &["network", "writes outside of the workspace"],
        );
        check(
            "",
            &[
                "memory",
                "processes",
                "processors",
                "capabilities",
                "new privileges",
            ],
        );
    }
}
