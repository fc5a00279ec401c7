//! The Debian package of the desktop program in a booted Debian: its files for desktops, the rule for polkit, and the
//! window on the service of the system.

use super::machine::{BootedSystem, DESKTOP, SHARED};
use super::service::{PROCESS, page};
use crate::Failure;
use crate::dist::{Contents, Libc, Release, deb, window_deb};
use std::fs;
use std::path::Path;

/// Member of the group `rocknet`, and an account outside it.
const MEMBER: &str = "runuser -u ann --";
const STRANGER: &str = "runuser -u bob --";

/// Prints a line per connection to the control socket. `03` is the state of an established connection in
/// `/proc/net/unix`.
const CONNECTIONS: &str = "grep -E '^[^ ]+ [^ ]+ [^ ]+ [^ ]+ [^ ]+ 03 .*/run/rocknet/control.sock$' /proc/net/unix";

/// Files of the package that the purge may not leave.
const INSTALLED: &str = "find /usr /etc /var -name '*rocknet*gui*' -print";

pub fn run(server: &Path, window: &Path) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let triple = Libc::Glibc.triple()?;
    let server = Release::new("rocknet", server.to_owned(), triple, 1)?;
    let window = Release::new("rocknet-gui", window.to_owned(), triple, 1)?;
    fs::write(
        folder.path().join(server.deb_name()),
        deb(&server, &Contents::new(&server)?)?,
    )?;
    fs::write(folder.path().join(window.deb_name()), window_deb(&window)?)?;
    let machine = BootedSystem::boot(&DESKTOP, folder.path(), &folder.path().join("console.log"))?;
    let install = |release: &Release| format!("dpkg --install {SHARED}/{}", release.deb_name());
    // The window needs the server.
    machine.expect_failure(&install(&window))?;
    machine.run("dpkg --purge rocknet-gui")?;
    machine.run(&install(&server))?;
    machine.run(&install(&window))?;
    machine.run("useradd --create-home --groups rocknet ann && useradd --create-home bob")?;
    files(&machine)?;
    permissions(&machine)?;
    show(&machine)?;
    purge(&machine)
}

/// Desktops accept the files of the package.
fn files(machine: &BootedSystem) -> Result<(), Failure> {
    machine.run("desktop-file-validate /usr/share/applications/rocknet-gui.desktop")?;
    machine.run("appstreamcli validate --no-net /usr/share/metainfo/*rocknet*.metainfo.xml")?;
    machine.run("dpkg --verify rocknet-gui | tee /dev/stderr | (! grep .)")?;
    machine.run("test -s /usr/share/man/man1/rocknet-gui.1.gz")?;
    machine.expect("rocknet-gui --version", Release::VERSION)
}

/// Members of the group start, stop and restart the service without a password, and may do nothing else to units. Other
/// accounts may do none of it. No password is prompted for, because no polkit agent runs.
fn permissions(machine: &BootedSystem) -> Result<(), Failure> {
    let before = machine.printed(PROCESS)?;
    machine.run(&format!("{MEMBER} systemctl --no-ask-password restart rocknet"))?;
    if machine.printed(PROCESS)? == before {
        return Err("a member of the group has not restarted the service".into());
    }
    machine.run(&format!("{MEMBER} systemctl --no-ask-password stop rocknet"))?;
    machine.expect("systemctl is-active rocknet || true", "inactive")?;
    machine.expect_failure(&format!("{STRANGER} systemctl --no-ask-password start rocknet"))?;
    machine.expect("systemctl is-active rocknet || true", "inactive")?;
    machine.run(&format!("{MEMBER} systemctl --no-ask-password start rocknet"))?;
    machine.expect(&page(80, "/"), "RockNet works")?;
    let running = machine.printed(PROCESS)?;
    for refused in [
        format!("{STRANGER} systemctl --no-ask-password stop rocknet"),
        format!("{STRANGER} systemctl --no-ask-password restart rocknet"),
        format!("{MEMBER} systemctl --no-ask-password kill rocknet"),
        format!("{MEMBER} systemctl --no-ask-password disable rocknet"),
        format!("{MEMBER} systemctl --no-ask-password stop systemd-journald"),
        format!("{MEMBER} systemctl --no-ask-password set-property rocknet MemoryMax=1M"),
    ] {
        machine.expect_failure(&refused)?;
    }
    if machine.printed(PROCESS)? != running {
        return Err("a command that was refused has changed the process of the service".into());
    }
    machine.expect("systemctl is-enabled rocknet", "enabled")
}

/// The window of a member finds the service of the system, and ends by its shortcut.
fn show(machine: &BootedSystem) -> Result<(), Failure> {
    machine.run("(Xvfb :9 -noreset -ac > /dev/null 2>&1 &)")?;
    machine.wait_until("test -S /tmp/.X11-unix/X9")?;
    machine.expect_failure(CONNECTIONS)?;
    machine.run(&format!(
        "({MEMBER} env HOME=/home/ann DISPLAY=:9 rocknet-gui > /tmp/window.txt 2>&1; echo $? > /tmp/window.code) \
         > /dev/null 2>&1 &"
    ))?;
    machine.wait_until("DISPLAY=:9 xdotool search --onlyvisible --class rocknet-gui")?;
    machine.wait_until(CONNECTIONS)?;
    machine.run(
        "window=$(DISPLAY=:9 xdotool search --onlyvisible --class rocknet-gui | tail -n 1); \
         DISPLAY=:9 xdotool windowfocus --sync $window key ctrl+q",
    )?;
    machine.wait_until("test -s /tmp/window.code")?;
    machine.expect("cat /tmp/window.code", "0")?;
    machine.run("cat /tmp/window.txt && test ! -s /tmp/window.txt")
}

/// A purge removes the window, and the server runs on.
fn purge(machine: &BootedSystem) -> Result<(), Failure> {
    machine.run("dpkg --purge rocknet-gui")?;
    let left = machine.printed(INSTALLED)?;
    if !left.is_empty() {
        return Err(format!("the purge has left files:\n{left}").into());
    }
    machine.expect_failure("test -e /usr/share/polkit-1/rules.d/rocknet.rules")?;
    machine.expect_failure(&format!("{MEMBER} systemctl --no-ask-password restart rocknet"))?;
    machine.expect(&page(80, "/"), "RockNet works")
}
