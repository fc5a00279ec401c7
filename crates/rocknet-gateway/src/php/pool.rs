//! The settings with which a php-fpm or php-cgi is started: its pool file, its command line, and its listening socket,
//! which outlives it.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, PipeReader};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rocknet_config::model::PhpVersion;
use rocknet_io::privileges::User;
use rocknet_io::sealed_file;
use rustix::process::Signal;

use super::installed::{Installed, Sapi};
use crate::accounts::{Account, Launch, pipe};

/// Settings of a pool. Sites whose settings are equal share a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// Program that the pool runs.
    pub program: PhpProgram,
    /// Account of its scripts, if the site names one.
    pub user: Option<String>,
    /// True if PHP shows its errors in its responses.
    pub dev: bool,
    /// Largest request body in bytes that any site accepts. The limits of PHP are set to this size, so that PHP rejects
    /// no request body that RockNet accepts.
    pub body_size: u64,
    /// Maximum time for requests in flight to complete when this pool is replaced or its php-fpm has ended.
    pub drain_timeout: Duration,
}

impl Pool {
    /// Returns the name of the pool for operators.
    pub fn name(&self) -> String {
        let version = self.program.version();
        match &self.user {
            Some(user) => format!("{version}@{user}"),
            None => version,
        }
    }
}

/// Program of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PhpProgram {
    /// An installed program.
    Found(Installed),
    /// A version that is not installed. It is searched for repeatedly, because it may be installed while the server
    /// runs.
    Missing(PhpVersion),
}

impl PhpProgram {
    /// Returns the version, such as `8.2`; for a missing program, the version as the configuration writes it.
    pub fn version(&self) -> String {
        match self {
            PhpProgram::Found(installed) => installed.version(),
            PhpProgram::Missing(version) => version.to_string(),
        }
    }
}

/// Memory in bytes that is allotted to each process: the memory that a page of a large application needs. The process
/// limit of each pool is computed as if half of the machine's memory were for this pool.
const MEMORY_PER_PROCESS: u64 = 100 << 20;
/// Minimum of the process limit of a pool. A page that requests another page of its own site needs two processes.
const MIN_PROCESSES: u64 = 4;
/// Maximum of the process limit of a pool. More processes would only wait for cores.
const MAX_PROCESSES: u64 = 64;
/// Maximum number of processes of php-cgi. It is lower, because processes of php-cgi do not end when idle.
const MAX_CGI_PROCESSES: u64 = 8;
/// Seconds after which an idle process of php-fpm ends.
const IDLE_TIMEOUT_S: u32 = 10;
/// Number of requests after which a process is replaced, because extensions may leak memory.
const MAX_REQUESTS: u32 = 10_000;
/// Backlog of the listening socket, equal to the default of php-fpm.
const BACKLOG: i32 = 511;
/// Folder in the name of the socket in the pool file. It does not exist. php-fpm inherits the socket as a descriptor
/// and finds it by that name. When php-fpm ends, it removes the file of that name, so the name must not be the real
/// path.
const NO_FOLDER: &str = "/nonexistent/rocknet";
/// Environment variables that PHP inherits. php-fpm passes to scripts only variables that the pool file names.
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

/// Returns the parameters to start a php-fpm or php-cgi that accepts connections of `listener`, and the reading end of
/// its standard error. `number` is the number of the pool, `folder` the run folder.
///
/// # Errors
///
/// Returns an error if there is no account for its scripts, or if a file or pipe cannot be created.
pub fn launch(
    pool: &Pool,
    installed: &Installed,
    (number, folder): (u32, &Path),
    listener: OwnedFd,
) -> io::Result<(Launch, PipeReader)> {
    let account = Account::for_scripts(pool.user.as_deref())?;
    let null = || File::options().read(true).write(true).open("/dev/null");
    let (stderr_reader, stderr) = pipe()?;
    let kept = ENVIRONMENT
        .iter()
        .filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
    let mut launch = Launch {
        program: installed.program.clone(),
        name: OsString::new(),
        arguments: Vec::new(),
        environment: kept.collect(),
        folder: "/".into(),
        stdin: null()?.into(),
        stdout: null()?.into(),
        stderr: stderr.into(),
        file: None,
        listener: None,
        parent_death_signal: Signal::TERM,
        account,
    };
    // Scripts get the home folder of their own account, not the server's `HOME`.
    if let Some(user) = launch.account.user() {
        launch.environment.retain(|(name, _)| name != "HOME");
        let home = user.home.as_ref().map(|home| ("HOME".into(), home.into()));
        launch.environment.extend(home);
    }
    match installed.sapi {
        Sapi::Fpm => {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            let listen = format!("{NO_FOLDER}/{number}.sock");
            let text = pool_file(
                pool,
                &super::run_folder::pool_name(&name),
                &listen,
                launch.account.user(),
                process_limit(),
            );
            launch.name = "php-fpm".into();
            launch.arguments = ["--nodaemonize", "--fpm-config"].map(OsString::from).into();
            launch.file = Some(sealed_file::create(text.as_bytes())?.into());
            launch.listener = Some((listen.into(), listener));
        }
        Sapi::Cgi => {
            launch.name = "php-cgi".into();
            // php-cgi accepts connections at its standard input.
            launch.stdin = listener;
            let mut set_variable = |name: &str, value: String| launch.environment.push((name.into(), value.into()));
            set_variable("PHP_FCGI_CHILDREN", process_limit().min(MAX_CGI_PROCESSES).to_string());
            set_variable("PHP_FCGI_MAX_REQUESTS", MAX_REQUESTS.to_string());
            let mut set_ini = |name: &str, value: &str| {
                launch.arguments.push("-d".into());
                launch.arguments.push(format!("{name}={value}").into());
            };
            for (name, value) in settings(pool) {
                set_ini(name, &value);
            }
            // Puts the run folder into the command line, so that a later server finds the processes of a killed server.
            set_ini("rocknet.folder", &folder.display().to_string());
        }
    }
    Ok((launch, stderr_reader))
}

/// Binds a Unix socket at `path` to which only the account of this process may connect.
///
/// # Errors
///
/// Returns the error of the system.
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    // An earlier listener may have left its file.
    let _ = fs::remove_file(path);
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    // Replaces the backlog that the standard library has set.
    rustix::net::listen(&listener, BACKLOG)?;
    Ok(listener)
}

/// Returns the path of the socket of the pool with this number.
pub fn socket(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("{number}.sock"))
}

/// Returns the `php.ini` settings of the pool.
fn settings(pool: &Pool) -> Vec<(&'static str, String)> {
    let word = |on: bool| if on { "on" } else { "off" }.to_owned();
    let size = pool.body_size.to_string();
    let mut all = vec![
        // Without its own error log, PHP sends errors over FastCGI, so that RockNet logs them with the site.
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

/// Returns the text of the pool file. `name`: name of the pool in php-fpm. `listen`: name of the listening socket.
/// `user`: account of the scripts; `None` if they run as the server's account. `processes`: process limit.
fn pool_file(pool: &Pool, name: &str, listen: &str, user: Option<&User>, processes: u64) -> String {
    let mut text = String::from("; Written by RockNet at each start of this php-fpm.\n[global]\n");
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name} = {value}");
    };
    line("error_log", "/dev/stderr");
    line("daemonize", "no");
    // Level `notice` includes the message by which php-fpm reports that it accepts requests.
    line("log_level", "notice");
    line(
        "process_control_timeout",
        &pool.drain_timeout.as_secs().max(1).to_string(),
    );
    let _ = writeln!(text, "[{name}]");
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name} = {value}");
    };
    line("listen", &format!("\"{listen}\""));
    line("pm", "ondemand");
    line("pm.max_children", &processes.to_string());
    line("pm.process_idle_timeout", &format!("{IDLE_TIMEOUT_S}s"));
    line("pm.max_requests", &MAX_REQUESTS.to_string());
    // Messages of scripts arrive over FastCGI with their request. If php-fpm caught them too, the log would have them
    // twice.
    line("catch_workers_output", "no");
    for (name, value) in settings(pool) {
        let _ = writeln!(text, "php_value[{name}] = \"{value}\"");
    }
    // php-fpm sets `HOME` and `USER` itself only if it is started as root.
    if let Some(user) = user {
        let home = user.home.iter().filter_map(|home| home.to_str());
        for (name, value) in home.map(|home| ("HOME", home)).chain([("USER", user.name.as_str())]) {
            // These characters could end the quoted string, begin a comment, or expand as a variable.
            if !value.contains(['"', '$', '\\', '\n', ';']) {
                let _ = writeln!(text, "env[{name}] = \"{value}\"");
            }
        }
    }
    text
}

/// Returns the process limit of a pool on this machine.
fn process_limit() -> u64 {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let (machine, group) = (read("/proc/meminfo"), read("/sys/fs/cgroup/memory.max"));
    process_limit_for(memory(&machine, &group))
}

/// Returns the process limit of a pool for this number of bytes of memory; `None`: the memory is unknown.
fn process_limit_for(memory: Option<u64>) -> u64 {
    memory.map_or(MIN_PROCESSES, |bytes| {
        (bytes / 2 / MEMORY_PER_PROCESS).clamp(MIN_PROCESSES, MAX_PROCESSES)
    })
}

/// Returns the memory of the machine in bytes, or the limit of its container if that is smaller; `None` if both are
/// unknown. `group`: the text of `memory.max`, which is `max` if there is no limit.
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
            program: PhpProgram::Missing(PhpVersion::Newest),
            user: None,
            dev,
            body_size: 1 << 20,
            drain_timeout: Duration::from_secs(60),
        }
    }

    #[test]
    fn the_pool_file_has_all_settings() {
        let user = User {
            name: "www-data".into(),
            uid: 33,
            gid: 34,
            groups: vec![34],
            home: Some("/var/www".into()),
        };
        let text = pool_file(&pool(false), "rocknet-1-2", "/nonexistent/1.sock", Some(&user), 5);
        for line in [
            "[rocknet-1-2]",
            "listen = \"/nonexistent/1.sock\"",
            "pm = ondemand",
            "pm.max_children = 5",
            "process_control_timeout = 60",
            "php_value[post_max_size] = \"1048576\"",
            "php_value[log_errors] = \"on\"",
            "php_value[error_log] = \"\"",
            "env[HOME] = \"/var/www\"",
            "env[USER] = \"www-data\"",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
        assert!(!text.contains("display_errors"));
        let plain = pool_file(&pool(true), "x", "/s", None, 5);
        assert!(plain.contains("php_value[display_errors] = \"on\""));
        assert!(!plain.contains("env["));
        let odd = User {
            home: Some("/a\"\nuser = root".into()),
            ..user
        };
        assert!(!pool_file(&pool(true), "x", "/s", Some(&odd), 5).contains("HOME"));
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
            assert_eq!(process_limit_for(memory(meminfo, group)), expected, "{meminfo}{group}");
        }
    }
}
