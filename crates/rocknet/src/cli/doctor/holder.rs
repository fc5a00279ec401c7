//! Commands about the process that holds a port.

use std::fs::File;
use std::io::Read;

use rocknet_io::port_owner::PortOwner;

/// Maximum number of bytes read of the list of control groups, which has one line on current systems.
const MAX_CGROUP_BYTES: u64 = 16 * 1024;

/// Services of other web servers. Only these are stopped: others, such as `docker.service`, do more than hold a port.
const WEB_SERVERS: [&str; 6] = [
    "nginx.service",
    "apache2.service",
    "httpd.service",
    "caddy.service",
    "lighttpd.service",
    "haproxy.service",
];

/// Returns the command that stops the process if it is another web server, or else shows its service or the process.
pub(super) fn command(owner: &PortOwner) -> String {
    let mut groups = String::new();
    if let Ok(file) = File::open(format!("/proc/{}/cgroup", owner.pid)) {
        // If the list cannot be read, it names no unit, and the command shows the process.
        let _ = file.take(MAX_CGROUP_BYTES).read_to_string(&mut groups);
    }
    match unit(&groups) {
        Some(unit) if WEB_SERVERS.contains(&unit) => format!("sudo systemctl disable --now {unit}"),
        Some(unit) => format!("systemctl status {unit}"),
        None => format!("ps -f -p {}", owner.pid),
    }
}

/// Returns the system service in the text of `/proc/PID/cgroup`: the first part of a path below `system.slice`.
fn unit(groups: &str) -> Option<&str> {
    let paths = groups.lines().filter_map(|line| line.rsplit(':').next());
    let units = paths.filter_map(|path| path.strip_prefix("/system.slice/")?.split('/').next());
    // The name is printed as a part of a command, so other characters are refused.
    let is_plain = |name: &str| {
        name.chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "._@-".contains(letter))
    };
    let mut services = units.filter(|unit| unit.ends_with(".service") && !unit.starts_with('-') && is_plain(unit));
    services.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_found_in_the_list_of_control_groups() {
        for (groups, expected) in [
            ("0::/system.slice/nginx.service\n", Some("nginx.service")),
            ("0::/system.slice/apache2.service/child\n", Some("apache2.service")),
            (
                "1:name=systemd:/system.slice/php8.2-fpm.service\n0::/\n",
                Some("php8.2-fpm.service"),
            ),
            ("0::/user.slice/user-1000.slice/session-2.scope\n", None),
            ("0::/system.slice/a;reboot.service\n", None),
            ("0::/system.slice/-x.service\n", None),
            ("", None),
        ] {
            assert_eq!(unit(groups), expected, "{groups:?}");
        }
    }
}
