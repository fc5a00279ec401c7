//! The Debian package in a booted Debian: installation, upgrade and purge, and the service without a package.
//!
//! The systems are Debian 12 and 13 from debootstrap, booted by systemd-nspawn, so that systemd starts the service with
//! all restrictions of its unit.

mod desktop;
mod machine;
mod service;
mod systemd;

use crate::Failure;
use crate::dist::{Contents, Libc, Release, deb};
pub use desktop::run as run_desktop;
use machine::{BootedSystem, SERVERS, SHARED};
use service::{PROCESS, page};
use std::fs;
use std::path::Path;

/// Maximum exposure that `systemd-analyze security` may report for the unit.
const MAX_EXPOSURE: f32 = 2.0;

/// The unit of the package.
const UNIT: &str = "/usr/lib/systemd/system/rocknet.service";

/// Command that prints the files whose names contain the name of the package, except in the shared folder and in the
/// file systems of the kernel.
const TRACES: &str = "find / -path /proc -prune -o -path /sys -prune -o -path /packages -prune \
                      -o -name '*rocknet*' -print";

pub fn run(program: &Path) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let mut names = Vec::new();
    for revision in [1, 2] {
        let release = Release::new("rocknet", program.to_owned(), Libc::Glibc.triple()?, revision)?;
        let package = deb(&release, &Contents::new(&release)?)?;
        println!("{:>10}  {}", package.len(), release.deb_name());
        fs::write(folder.path().join(release.deb_name()), package)?;
        names.push(release.deb_name());
    }
    let program_name = "rocknet";
    fs::copy(program, folder.path().join(program_name))?;
    for debian in SERVERS {
        println!("Debian {}", debian.suite);
        let machine = BootedSystem::boot(&debian, folder.path(), &folder.path().join("console.log"))?;
        let [first, second] = [&names[0], &names[1]].map(|name| format!("dpkg --install {SHARED}/{name}"));
        install(&machine, &first, debian.service_type)?;
        configure(&machine)?;
        systemd::take_over(&machine)?;
        systemd::restart_hung(&machine)?;
        systemd::activate(&machine)?;
        upgrade(&machine, &second)?;
        keep_running(&machine, &first)?;
        purge(&machine)?;
        without_package(&machine, &format!("{SHARED}/{program_name}"))?;
    }
    Ok(())
}

/// The package starts the service, with one capability and a system call filter.
fn install(machine: &BootedSystem, command: &str, service_type: &str) -> Result<(), Failure> {
    machine.run(command)?;
    machine.expect("systemctl is-enabled rocknet", "enabled")?;
    machine.expect(&page(80, "/"), "RockNet works")?;
    machine.expect(&format!("stat -c %U /proc/$({PROCESS})"), "rocknet")?;
    // Bit 10 is CAP_NET_BIND_SERVICE, and mode 2 of seccomp is a filter.
    for line in ["CapEff:\t0000000000000400", "CapBnd:\t0000000000000400", "Seccomp:\t2"] {
        machine.expect(&format!("cat /proc/$({PROCESS})/status"), line)?;
    }
    machine.expect(
        "systemctl show --property Type --value rocknet",
        &format!("{service_type}\n"),
    )?;
    machine.expect("systemctl show --property StatusText --value rocknet", "sites: 1")?;
    machine.expect("systemctl show --property WatchdogUSec --value rocknet", "30s")?;
    machine.expect("rocknet status", "programs are limited")?;
    let exposure = machine.printed("systemd-analyze security rocknet --no-pager | tail -n 1")?;
    let figure = exposure.split_whitespace().find_map(|word| word.parse::<f32>().ok());
    println!("{}", exposure.trim());
    if figure.is_none_or(|figure| figure > MAX_EXPOSURE) {
        return Err(format!("the exposure is above {MAX_EXPOSURE}: {exposure}").into());
    }
    machine.expect("rocknet status", "requests")?;
    machine.run("test -s /usr/share/man/man1/rocknet-run.1.gz")
}

/// A reload takes an edited configuration, and refuses an invalid one.
fn configure(machine: &BootedSystem) -> Result<(), Failure> {
    machine.run("mkdir -p /var/www/second && echo second > /var/www/second/index.html")?;
    machine.run("printf '[site.\":8081\"]\\nroot = \"/var/www/second\"\\n' >> /etc/rocknet/rocknet.toml")?;
    machine.run("systemctl reload rocknet")?;
    machine.expect(&page(8081, "/"), "second")?;
    // The first installation has given the configuration to the server. An operator may give it to root.
    machine.run("rocknet config set log.level info")?;
    machine.expect("cat /etc/rocknet/rocknet.toml", "level = \"info\"")?;
    machine.expect("stat -c %U:%G:%a /etc/rocknet/rocknet.toml", "rocknet:rocknet:644")?;
    machine.run("chown -R root: /etc/rocknet")?;
    machine.expect_failure("rocknet config set log.level warn")?;
    machine
        .run("cp /etc/rocknet/rocknet.toml /root/good.toml && echo 'no = key = here' >> /etc/rocknet/rocknet.toml")?;
    machine.expect_failure("systemctl reload rocknet")?;
    machine.expect("journalctl --no-pager -u rocknet", "rocknet.toml:")?;
    machine.expect(
        "systemctl show --property StatusText --value rocknet",
        "the last reload failed",
    )?;
    machine.expect(&page(8081, "/"), "second")?;
    machine.run("cp /root/good.toml /etc/rocknet/rocknet.toml")
}

/// A newer package takes over without a gap, and keeps the edited configuration. If its unit differs, it restarts the
/// service.
fn upgrade(machine: &BootedSystem, command: &str) -> Result<(), Failure> {
    let before = machine.printed(PROCESS)?;
    machine.run(&format!("{command} > /root/dpkg.txt"))?;
    // The second package has the revision 2.
    machine.expect("dpkg-query --show rocknet", "-2")?;
    let after = machine.printed(PROCESS)?;
    machine.expect(
        "cat /root/dpkg.txt",
        &format!("process {} has taken over from process {}", after.trim(), before.trim()),
    )?;
    // Only files below `/etc` may differ from the package.
    machine.run("dpkg --verify rocknet | tee /dev/stderr | (! grep -v ' /etc/')")?;
    machine.run(&format!("echo '# older' >> {UNIT}"))?;
    machine.run(&format!("{command} > /root/dpkg.txt"))?;
    machine.expect_failure("grep 'has taken over' /root/dpkg.txt")?;
    if machine.printed(PROCESS)? == after {
        return Err("the upgrade with another unit has not restarted the service".into());
    }
    machine.run("cmp /root/good.toml /etc/rocknet/rocknet.toml")?;
    machine.expect(
        "stat -c %U:%G /etc/rocknet /etc/rocknet/rocknet.toml",
        "root:root\nroot:root\n",
    )?;
    machine.expect(&page(8081, "/"), "second")
}

/// A version that cannot load the configuration leaves the running server alone.
fn keep_running(machine: &BootedSystem, command: &str) -> Result<(), Failure> {
    let before = machine.printed(PROCESS)?;
    machine.run("echo 'no = key = here' >> /etc/rocknet/rocknet.toml")?;
    machine.expect(&format!("{command} 2>&1"), "is not restarted")?;
    if machine.printed(PROCESS)? != before {
        return Err("the service was restarted with an invalid configuration".into());
    }
    machine.expect(&page(8081, "/"), "second")?;
    machine.run("cp /root/good.toml /etc/rocknet/rocknet.toml")?;
    // The configuration is checked as the account of the service: only root can read this one.
    machine.run("chmod 600 /etc/rocknet/rocknet.toml")?;
    machine.expect(&format!("{command} 2>&1"), "Permission denied")?;
    if machine.printed(PROCESS)? != before {
        return Err("the service was restarted with a configuration that it cannot read".into());
    }
    machine.run("chmod 644 /etc/rocknet/rocknet.toml")
}

/// After a purge only the sites are left.
fn purge(machine: &BootedSystem) -> Result<(), Failure> {
    machine.run("dpkg --purge rocknet")?;
    let traces = machine.printed(TRACES)?;
    if !traces.is_empty() {
        return Err(format!("the purge has left files:\n{traces}").into());
    }
    machine.expect_failure("curl -sS --max-time 5 http://127.0.0.1/")?;
    machine.run("test -s /var/www/html/index.html && test -s /var/www/second/index.html")
}

/// `rocknet service` installs and removes the service without a package.
fn without_package(machine: &BootedSystem, program: &str) -> Result<(), Failure> {
    machine.expect_failure(&format!("{program} service status"))?;
    machine.run(&format!("{program} service install"))?;
    machine.expect("rocknet service status", "active (running)")?;
    machine.run("rocknet config set log.level info && test -s /usr/local/share/man/man1/rocknet.1")?;
    machine.expect(&page(80, "/"), "RockNet works")?;
    machine.run("rocknet service install")?;
    machine.run("rocknet service uninstall")?;
    machine.expect_failure("systemctl is-active rocknet")?;
    machine.run("test ! -e /usr/local/share/man/man1/rocknet.1")?;
    machine.run("test ! -e /etc/systemd/system/rocknet.service && test -s /etc/rocknet/rocknet.toml")
}
