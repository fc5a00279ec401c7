//! Reactions of systemd to the running service: upgrade without a gap, reload, restart, watchdog and socket activation.

use super::machine::BootedSystem;
use super::service::{PROCESS, page};
use crate::Failure;

/// Example of the package for socket activation.
const SOCKET_UNIT: &str = "/usr/share/doc/rocknet/examples/rocknet.socket";

/// `rocknet upgrade` replaces the main process of the service and cuts off no response.
pub fn take_over(machine: &BootedSystem) -> Result<(), Failure> {
    machine.run("head -c 40M /dev/urandom > /var/www/html/large.bin")?;
    let before = machine.printed(PROCESS)?;
    // The download takes about five seconds, so it begins before the upgrade and ends after it.
    machine.run(
        "curl -sS --fail --limit-rate 8M -o /root/large.bin http://127.0.0.1/large.bin & download=$!; \
         until test -s /root/large.bin; do sleep 0.05; done; \
         rocknet upgrade > /root/upgrade.txt; \
         test $(stat -c %s /root/large.bin) -lt $(stat -c %s /var/www/html/large.bin); \
         wait $download; cmp /root/large.bin /var/www/html/large.bin",
    )?;
    let after = machine.printed(PROCESS)?;
    let (old, new) = (before.trim(), after.trim());
    machine.expect(
        "cat /root/upgrade.txt",
        &format!("process {new} has taken over from process {old}"),
    )?;
    machine.expect(&format!("stat -c %U /proc/{new}"), "rocknet")?;
    for line in ["CapBnd:\t0000000000000400", "Seccomp:\t2", "NoNewPrivs:\t1"] {
        machine.expect(&format!("cat /proc/{new}/status"), line)?;
    }
    let status = machine.printed("systemctl status --no-pager rocknet")?;
    for part in ["active (running)", &format!("Main PID: {new} (rocknet)"), "sites: "] {
        if !status.contains(part) {
            return Err(format!("`systemctl status` shows no {part:?} after an upgrade:\n{status}").into());
        }
    }
    // The old process ends after its last connection, and the service continues.
    machine.wait_until(&format!("test ! -e /proc/{old}"))?;
    machine.run("systemctl reload rocknet")?;
    machine.expect(PROCESS, new)?;
    machine.expect("systemctl show --property NRestarts --value rocknet", "0")?;
    machine.expect(&page(80, "/"), "RockNet works")?;
    machine.run("rm /root/large.bin /var/www/html/large.bin")
}

/// systemd restarts the service if its process hangs or is killed, also the process of an upgrade.
pub fn restart_hung(machine: &BootedSystem) -> Result<(), Failure> {
    let folder = "/etc/systemd/system/rocknet.service.d";
    machine.run(&format!(
        "mkdir -p {folder} && printf '[Service]\\nWatchdogSec=2\\n' > {folder}/watchdog.conf && \
         systemctl daemon-reload && systemctl restart rocknet && rocknet upgrade"
    ))?;
    for signal in ["STOP", "KILL"] {
        let before = machine.printed(PROCESS)?;
        let hung = before.trim();
        machine.run(&format!("kill -{signal} {hung}"))?;
        machine.wait_until(&format!(
            "now=$({PROCESS}); test $now != {hung} && test $now != 0 && systemctl is-active rocknet"
        ))?;
        machine.expect(&page(80, "/"), "RockNet works")?;
    }
    machine.expect("journalctl --no-pager -u rocknet", "Watchdog timeout")?;
    machine.run(&format!(
        "rm -r {folder} && systemctl daemon-reload && systemctl restart rocknet"
    ))
}

/// A socket unit starts the service, and clients that connect during a restart wait.
pub fn activate(machine: &BootedSystem) -> Result<(), Failure> {
    let unit = "/etc/systemd/system/rocknet.socket";
    // Resets the count of starts, so that earlier starts do not exceed the start limit.
    machine.run("systemctl reset-failed rocknet")?;
    // The lines for port 443 are left out, because no site uses it.
    machine.run(&format!("systemctl stop rocknet && grep -v 443 {SOCKET_UNIT} > {unit}"))?;
    machine.run("systemctl daemon-reload && systemctl enable --now rocknet.socket")?;
    machine.expect("systemctl is-active rocknet || true", "inactive")?;
    machine.expect("curl -sS --fail --max-time 20 http://127.0.0.1/", "RockNet works")?;
    machine.expect("systemctl is-active rocknet", "active")?;
    // No request is repeated, so a refused connection fails.
    let request = "curl -sS --fail --max-time 20 -o /dev/null http://127.0.0.1/";
    for command in ["systemctl restart rocknet", "rocknet upgrade", "systemctl stop rocknet"] {
        machine.run(&format!(
            "(until test -e /root/enough; do {request} || exit 1; done) & requests=$!; \
             {command}; {request}; touch /root/enough; wait $requests; rm /root/enough"
        ))?;
    }
    machine.expect("systemctl is-active rocknet", "active")?;
    machine.run(&format!(
        "systemctl disable --now rocknet.socket && rm {unit} && systemctl daemon-reload"
    ))?;
    machine.run("systemctl restart rocknet")?;
    machine.expect(&page(80, "/"), "RockNet works")
}
