//! Restrictions of a server and of the programs that it starts: inherited capabilities.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};

use rocknet_testing::{Need, skip};

use crate::program::ProgramFolder;
use crate::upgrade::{KillAtEnd, upgrade};

/// Shell command that runs the server as another account, with further arguments of `setpriv` in place of `ARGUMENTS`.
/// The program is opened first, because the account may not reach its folder.
pub const AS_NOBODY: &str =
    "exec 9<\"$1\"; shift; exec setpriv --reuid 65534 --regid 65534 --clear-groups ARGUMENTS /proc/self/fd/9 \"$@\"";

/// Arguments for the ambient capability for low ports, which systemd passes with `AmbientCapabilities`.
const AMBIENT: &str = "--inh-caps=+net_bind_service --ambient-caps=+net_bind_service";

/// CGI program that prints its capabilities.
const CAPABILITIES: &str = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\ngrep ^Cap /proc/self/status\n";

/// Set with CAP_NET_BIND_SERVICE alone, as `/proc` writes it.
const LOW_PORTS: &str = "0000000000000400";
/// Set without a capability, as `/proc` writes it.
const NONE: &str = "0000000000000000";

/// Returns the value of a line such as `CapEff:\t0000000000000400`.
fn capability_set<'t>(status: &'t str, name: &str) -> &'t str {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("{name}: {status}"))
        .trim_matches([':', '\t', ' '])
}

#[test]
fn programs_do_not_inherit_the_capability_for_low_ports() {
    if !rustix::process::geteuid().is_root() {
        return skip(Need::Root, "only root can pass capabilities to a program");
    }
    let config = "[server]\nworkers = 1\nstate = \"state\"\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n\
                  cgi = \"/cgi-bin\"\n";
    let dir = ProgramFolder::new(&[("www/cgi-bin/capabilities", CAPABILITIES), ("rocknet.toml", config)]);
    for name in ["", "www", "www/cgi-bin", "www/cgi-bin/capabilities"] {
        let path = dir.path().join(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
    }
    chown(dir.path(), Some(65_534), Some(65_534)).expect("another owner");
    let command = AS_NOBODY.replace("ARGUMENTS", AMBIENT);
    let server = dir.serve_by(&["sh", "-c", &command, "sh"], &["run", "-c", "rocknet.toml"]);

    let own = fs::read_to_string(format!("/proc/{}/status", server.id())).expect("a process");
    assert_eq!(
        capability_set(&own, "CapEff"),
        LOW_PORTS,
        "the server was not started with the capability"
    );
    let response = server.get("/cgi-bin/capabilities");
    for name in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(capability_set(&response, name), NONE, "{name}: {response}");
    }

    // The server itself still binds low ports. The address is one that no other program of this machine uses.
    let added = format!("{config}[site.\"low.test\"]\nlisten = \"http://127.83.19.7:81\"\nroot = \"www\"\n");
    dir.write("rocknet.toml", &added);
    let reloaded = dir.run(&["reload"]);
    assert_eq!(reloaded.code, Some(0), "{reloaded:?}");

    // The new process of an upgrade binds low ports too, and its programs inherit nothing either. The upgrade names the
    // program that is running, because the account may not reach the folder of the program.
    let _end = KillAtEnd(&dir);
    let process = upgrade(&dir, &["--binary", "/proc/self/exe"]);
    let own = fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    assert_eq!(capability_set(&own, "CapEff"), LOW_PORTS);
    for name in ["CapInh", "CapAmb"] {
        assert_eq!(capability_set(&own, name), NONE, "{name}: {own}");
    }
    dir.write("rocknet.toml", &added.replace(":81", ":82"));
    let reloaded = dir.run(&["reload"]);
    assert_eq!(reloaded.code, Some(0), "{reloaded:?}");
}
