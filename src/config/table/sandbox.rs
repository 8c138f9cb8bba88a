//! The settings for the confinement of commands.

use crate::config::setting::{Applies, Setting, setting};
use crate::config::units::{MIB, TIB};
use crate::config::value::Kind;
use crate::config::{ConfinementSetting, Network, TryFirst};
use co_exec::container;

/// The settings for confinement, in the order of the help.
pub(super) static SETTINGS: &[Setting] = &[
    setting(
        "sandbox_backend",
        "subprocess",
        Kind::Choice(&["subprocess", "landlock", "docker", "auto"], |c, v| {
            c.sandbox_backend =
                ConfinementSetting::from_word(v).unwrap_or(ConfinementSetting::Subprocess);
        }),
        "The way approved commands run: as plain processes (subprocess), confined to the workspace by the \
         kernel (landlock), or in a container (docker), see |co-containers|. Landlock also protects the hooks and the configuration of the workspace's git \
         repository, so `git init` and `git config` fail there. It does not protect those of other repositories \
         in the workspace: `git -C sub config` works in one that a command has made. \
         Commands so confined cannot open secret files, see |co-secret-files|. If the chosen way \
         cannot work here, co refuses every such command with the reason; \
         auto takes docker if the engine answers and has the image, else landlock, else subprocess. \
         :Co /sandbox chooses another until :Co /restart or the end of Neovim.",
    )
    .confines()
    .applies(Applies::Restart),
    setting(
        "sandbox_network",
        "none",
        Kind::Checked {
            accepts: "one of none, ask, host, bridge, or the name of a network of the container engine",
            check: container::is_network,
            set: |c, v| {
                c.sandbox_network = match v {
                    "none" => Network::None,
                    "ask" => Network::Ask,
                    _ => Network::Some,
                };
                let engines = if v == "ask" { "none" } else { v };
                engines.clone_into(&mut c.exec.container.network);
            },
        },
        "The network of confined commands. ask lets trials and approved commands under landlock reach hosts: \
         co asks about each host that |co-allow_hosts| does not name, see |co-hosts|. It needs namespaces; without them, \
         these commands have no network. co starts no container then. With any other value, trials have no network, and the \
         value is about approved commands. \
         Under landlock, none means no network, and every other value the network of this machine. A container gets the \
         engine's network of that name. Commands that only look have no network.",
    )
    .confines()
    .applies(Applies::Restart),
    setting(
        "allow_hosts",
        "",
        Kind::Hosts(|c, v| c.hosts.allow = v),
        "Hosts that confined commands reach without a question if |co-sandbox_network| is ask: example.org, *.example.org for all \
         names below it, or an address; example.org:8080 for one port. A rule without a port allows ports 80 and 443. \
         localhost:8080 is that port of this machine.",
    ),
    setting(
        "deny_hosts",
        "",
        Kind::Hosts(|c, v| c.hosts.deny = v),
        "Hosts that confined commands never reach, whatever else allows them. A rule without a port denies all ports. A workspace's \
         .co/policy.toml may have this setting too.",
    )
    .strict(),
    setting(
        "try_first",
        "changes",
        Kind::Choice(&["never", "code", "changes"], |c, v| {
            c.try_first = match v {
                "never" => TryFirst::Never,
                "code" => TryFirst::Code,
                _ => TryFirst::Changes,
            }
        }),
        "The commands that co tries before it asks, see |co-trials|, in a workspace where you allowed that: \
         none (never), those that run code and those that co does not know (code), or also those that change files \
         (changes). Those that fetch packages count as those that run code if |co-sandbox_network| is ask, and are not tried otherwise.",
    ),
    setting(
        "sandbox_namespaces",
        "true",
        Kind::Flag(|c, v| c.exec.namespaces = v),
        "Give sandboxed commands mounts and process numbers of their own, in namespaces, where the kernel lets us.",
    )
    .confines()
    .applies(Applies::Restart),
    setting(
        "read_roots",
        "/usr/include, ~/.cargo/registry, ~/.cargo/git, ~/.rustup/toolchains, ~/go/pkg/mod, ~/.m2/repository, ~/.gradle/caches, ~/.nuget/packages",
        Kind::Paths(|c, v| c.exec.read_roots = v),
        "Places outside the workspace that confined commands may read, beside the system and the tools on PATH. \
         Your list replaces the default: the places where toolchains keep the sources of dependencies. A home \
         directory, and what contains one, is left out.",
    )
    .confines()
    .applies(Applies::Restart),
    setting(
        "hide_secrets",
        "true",
        Kind::Flag(|c, v| c.hide_secrets = v),
        "Hide files with names of secrets (.env, keys) from commands that a container confines, and from those that landlock \
         confines, where the kernel has namespaces. Commands that run unasked never see them.",
    )
    .confines()
    .applies(Applies::Restart),
    setting(
        "container_engine",
        "auto",
        Kind::Checked {
            accepts: "one of auto, docker, podman, or an absolute path",
            check: container::is_engine,
            set: |c, v| v.clone_into(&mut c.exec.container.engine),
        },
        "The command line of the container engine. auto takes docker, or podman if docker does not answer.",
    )
    .confines()
    .applies(Applies::Restart),
    setting(
        "docker_image",
        "co-cli-sandbox",
        Kind::Checked {
            accepts: "the name of an image",
            check: container::is_image,
            set: |c, v| v.clone_into(&mut c.exec.container.image),
        },
        "The image of the container. It needs sh and timeout. co never pulls it.",
    )
    .confines()
    .applies(Applies::Restart),
    setting(
        "sandbox_mem_limit",
        "1GiB",
        Kind::Size(16 * MIB..=TIB, |c, v| c.exec.container.memory = v),
        "Memory of the container, for all its commands together.",
    )
    .confines()
    .applies(Applies::Restart),
    setting(
        "sandbox_cpus",
        "1",
        Kind::Decimal(0.01..=1024.0, |c, v| c.exec.container.cpus = v),
        "Processors of the container.",
    )
    .confines()
    .applies(Applies::Restart),
    setting(
        "container_user",
        "auto",
        Kind::Checked {
            accepts: "auto, or a user by numbers, as 1000 or 1000:1000",
            check: container::is_user,
            set: |c, v| v.clone_into(&mut c.exec.container.user),
        },
        "The user of commands in the container. auto means you, or 1000:1000 if you are root.",
    )
    .confines()
    .applies(Applies::Restart),
    setting(
        "container_read_only",
        "true",
        Kind::Flag(|c, v| c.exec.container.read_only = v),
        "Commands in the container write in the workspace and in /tmp only. Commands that run unasked write in /tmp only, \
         whatever this says.",
    )
    .confines()
    .applies(Applies::Restart),
    setting(
        "container_tmp_size",
        "256MiB",
        Kind::Size(MIB..=TIB, |c, v| c.exec.container.tmp_size = v),
        "The largest size of /tmp in the container. It is a part of its memory.",
    )
    .confines()
    .applies(Applies::Restart),
    setting(
        "docker_start_command",
        "(none)",
        Kind::Argv(|c, v| c.docker_start_command = Some(v)),
        "A program that starts the service of the container engine, and its arguments. It runs before a command of docker, podman \
         or compose on this machine if the engine does not answer. Then co asks the engine ten times, a second apart.",
    ),
];
