//! What a php-fpm is started with: a pool file that says little, and the command line that names it.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rocknet_config::model::PhpVersion;
use rocknet_io::child;
use rocknet_io::rights::{self, User};
use rustix::process::Signal;

use super::installed::{Installed, Kind};

/// What sites ask of PHP beyond a version. Pools that are equal are one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    pub program: Program,
    /// Whom its scripts run as, where a site says so.
    pub user: Option<String>,
    /// Errors are shown on the page.
    pub dev: bool,
    /// Largest content of a request that any site takes: PHP's own limits are not to be in the way of it.
    pub body_size: u64,
    /// How long requests under way may go on when another pool takes its place.
    pub patience: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    Found(Installed),
    /// Looked for again and again: it may be installed while the server runs.
    Missing(PhpVersion),
}

impl Program {
    /// `8.2`; `auto` where none is known.
    pub fn version(&self) -> String {
        match self {
            Program::Found(installed) => installed.version(),
            Program::Missing(version) => version.to_string(),
        }
    }
}

/// Memory of the machine for each process: what a page of a large application takes. Half of the machine is for PHP.
const MEMORY_EACH: u64 = 100 << 20;
/// Processes of a pool: a page that asks itself for something needs two, and beyond the most they wait for each other's
/// cores. An idle one ends after [`IDLE`].
const FEWEST: u64 = 4;
const MOST: u64 = 64;
/// Fewer of php-cgi, whose processes stay.
const MOST_STAYING: u64 = 8;
/// Seconds after which an idle process ends.
const IDLE: u32 = 10;
/// Requests after which a process is replaced, for extensions that lose memory.
const REQUESTS: u32 = 10_000;
/// The users that systems have web applications run as, where RockNet is root and stays so.
const USERS: [&str; 5] = ["www-data", "nginx", "apache", "http", "nobody"];
/// What PHP gets of the environment: the pool file says what scripts see.
const ENVIRONMENT: [&str; 8] = [
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
];

/// A command that is ready to be started, and what has to be there until it is.
pub fn command(pool: &Pool, installed: &Installed, number: u32, folder: &Path) -> io::Result<Command> {
    let user = user(pool.user.as_deref())?;
    let mut command = Command::new(&installed.program);
    let kept = ENVIRONMENT
        .iter()
        .filter_map(|name| Some((name, std::env::var_os(name)?)));
    command.env_clear().envs(kept).current_dir("/");
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let socket = socket(folder, number);
    // php-fpm takes a file that is left for one that is in use if anybody of a former one still lives.
    let _ = fs::remove_file(&socket);
    match installed.kind {
        Kind::Fpm => {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            let text = pool_file(
                pool,
                &super::run_folder::pool_name(&name),
                &socket,
                user.as_ref(),
                processes(),
            )?;
            let file = folder.join(format!("{number}.conf"));
            fs::write(&file, text)?;
            command
                .arg0("php-fpm")
                .args(["--nodaemonize", "--fpm-config"])
                .arg(&file);
            command.stdin(Stdio::null());
            child::bind(&mut command, None, Signal::TERM);
        }
        Kind::Cgi => {
            let listener = UnixListener::bind(&socket)?;
            fs::set_permissions(&socket, fs::Permissions::from_mode(0o600))?;
            command.arg0("php-cgi").stdin(Stdio::from(OwnedFd::from(listener)));
            command.env("PHP_FCGI_CHILDREN", processes().min(MOST_STAYING).to_string());
            command.env("PHP_FCGI_MAX_REQUESTS", REQUESTS.to_string());
            // By the last of them a process tells which server it belongs to.
            for (name, value) in settings(pool) {
                command.arg("-d").arg(format!("{name}={value}"));
            }
            command.arg("-d").arg(format!("rocknet.folder={}", folder.display()));
            child::bind(&mut command, user.as_ref(), Signal::TERM);
        }
    }
    Ok(command)
}

/// Where the pool with this number listens.
pub fn socket(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("{number}.sock"))
}

/// Whom scripts run as: `wanted`, where the site says so. `None`: the user that RockNet is.
pub fn user(wanted: Option<&str>) -> io::Result<Option<User>> {
    if let Some(name) = wanted {
        let user = User::find(name).map_err(io::Error::other)?;
        return match rights::is_root() {
            _ if user.uid == 0 => Err(io::Error::other("scripts are not run as root: name another user")),
            true => Ok(Some(user)),
            false if user.uid == rights::own_uid() => Ok(None),
            false => {
                let help = "only root can run scripts as somebody else, and RockNet is not root";
                Err(io::Error::other(help))
            }
        };
    }
    if !rights::is_root() {
        return Ok(None);
    }
    let user = USERS.iter().find_map(|name| User::find(name).ok());
    user.map(Some).ok_or_else(|| {
        let help = "RockNet is root, and there is no user to run scripts as: write user = \"NAME\" below [server]";
        io::Error::other(help)
    })
}

/// Settings of PHP itself.
fn settings(pool: &Pool) -> Vec<(&'static str, String)> {
    let word = |on: bool| if on { "on" } else { "off" }.to_owned();
    let size = pool.body_size.to_string();
    let mut all = vec![
        // To RockNet's error log, with the site.
        ("log_errors", word(true)),
        ("error_log", String::new()),
        ("upload_max_filesize", size.clone()),
        ("post_max_size", size),
    ];
    if pool.dev {
        all.push(("display_errors", word(true)));
        all.push(("display_startup_errors", word(true)));
    }
    all
}

fn pool_file(pool: &Pool, name: &str, socket: &Path, user: Option<&User>, processes: u64) -> io::Result<String> {
    let listen = socket
        .to_str()
        .filter(|path| !path.contains(['"', '$', '\\', '\n', ';']));
    let listen = listen.ok_or_else(|| {
        io::Error::other("the name of the state folder holds a character that pool files cannot: write another one as `state` below [server]")
    })?;
    let mut text = String::from("; Written by RockNet at each start of this php-fpm.\n[global]\n");
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name} = {value}");
    };
    line("error_log", "/dev/stderr");
    line("daemonize", "no");
    line("log_level", "warning");
    line("process_control_timeout", &pool.patience.as_secs().max(1).to_string());
    let _ = writeln!(text, "[{name}]");
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name} = {value}");
    };
    line("listen", &format!("\"{listen}\""));
    line("listen.mode", "0600");
    if let Some(user) = user {
        line("user", &user.uid.to_string());
        line("group", &user.gid.to_string());
    }
    line("pm", "ondemand");
    line("pm.max_children", &processes.to_string());
    line("pm.process_idle_timeout", &format!("{IDLE}s"));
    line("pm.max_requests", &REQUESTS.to_string());
    // What scripts complain of comes by FastCGI, with the request it belongs to: caught here it would come twice.
    line("catch_workers_output", "no");
    for (name, value) in settings(pool) {
        let _ = writeln!(text, "php_value[{name}] = \"{value}\"");
    }
    Ok(text)
}

fn processes() -> u64 {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let (machine, group) = (read("/proc/meminfo"), read("/sys/fs/cgroup/memory.max"));
    processes_of(memory(&machine, &group))
}

fn processes_of(memory: Option<u64>) -> u64 {
    memory.map_or(FEWEST, |bytes| (bytes / 2 / MEMORY_EACH).clamp(FEWEST, MOST))
}

/// Bytes of the machine, or of the container it is.
fn memory(meminfo: &str, group: &str) -> Option<u64> {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let total = total.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    let total = total.map(|kilobytes| kilobytes.saturating_mul(1024));
    let limit = group.trim().parse().ok();
    total.into_iter().chain(limit).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(dev: bool) -> Pool {
        Pool {
            program: Program::Missing(PhpVersion::Newest),
            user: None,
            dev,
            body_size: 1 << 20,
            patience: Duration::from_secs(60),
        }
    }

    #[test]
    fn the_pool_file_says_what_is_needed() {
        let user = User {
            name: "www-data".into(),
            uid: 33,
            gid: 34,
            groups: vec![34],
        };
        let text = pool_file(
            &pool(false),
            "rocknet-1-2",
            Path::new("/var/lib/a b/1.sock"),
            Some(&user),
            5,
        )
        .unwrap();
        for line in [
            "[rocknet-1-2]",
            "listen = \"/var/lib/a b/1.sock\"",
            "listen.mode = 0600",
            "user = 33",
            "group = 34",
            "pm = ondemand",
            "pm.max_children = 5",
            "process_control_timeout = 60",
            "php_value[post_max_size] = \"1048576\"",
            "php_value[log_errors] = \"on\"",
            "php_value[error_log] = \"\"",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
        assert!(!text.contains("display_errors"));
        let plain = pool_file(&pool(true), "x", Path::new("/s"), None, 5).unwrap();
        assert!(plain.contains("php_value[display_errors] = \"on\""));
        assert!(!plain.contains("user ="));
        for bad in ["/a\"b", "/a${X}", "/a\nb", "/a;b"] {
            assert!(pool_file(&pool(false), "x", Path::new(bad), None, 5).is_err(), "{bad}");
        }
    }

    #[test]
    fn small_machines_get_few_processes() {
        for (meminfo, group, expected) in [
            ("MemTotal:  524288 kB\nMemFree: 1 kB\n", "max\n", 4),
            ("MemTotal: 2097152 kB\n", "", 10),
            ("MemTotal: 67108864 kB\n", "max\n", 64),
            ("MemTotal: 67108864 kB\n", "1073741824\n", 5),
            ("", "", 4),
        ] {
            assert_eq!(processes_of(memory(meminfo, group)), expected, "{meminfo}{group}");
        }
    }
}
