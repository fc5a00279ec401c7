//! Starts the php-fpm or php-cgi of a pool: its command line, environment and account.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, PipeReader};
use std::os::fd::OwnedFd;
use std::path::Path;

use rocknet_config::model::PhpSettings;
use rocknet_io::sealed_file;
use rustix::process::Signal;

use super::installed::{Installed, Sapi};
use super::pool::Pool;
use super::pool_file::{MAX_REQUESTS, PoolFile, env_variable, fixed_settings, quoted, start_arguments};
use crate::accounts::{Account, Launch, pipe};

/// Memory in bytes that is allotted to each process: the memory that a page of a large application needs. The process
/// limit of each pool is computed as if half of the machine's memory were for this pool.
const MEMORY_PER_PROCESS: u64 = 100 << 20;
/// Minimum of the process limit of a pool. A page that requests another page of its own site needs two processes.
const MIN_PROCESSES: u64 = 4;
/// Maximum of the process limit of a pool. More processes would only wait for cores.
const MAX_PROCESSES: u64 = 64;
/// Maximum number of processes of php-cgi. It is lower, because processes of php-cgi do not end when idle.
const MAX_CGI_PROCESSES: u64 = 8;
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
    let PhpSettings { ini, env, workers, .. } = &pool.settings;
    let workers = workers.map(u64::from);
    match installed.sapi {
        Sapi::Fpm => {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            let listen = format!("{NO_FOLDER}/{number}.sock");
            let text = PoolFile {
                name: &super::run_folder::pool_name(&name),
                listen: &listen,
                user: launch.account.user(),
                processes: workers.unwrap_or_else(process_limit),
            }
            .text(pool);
            launch.name = "php-fpm".into();
            let at_start = start_arguments(&pool.settings);
            launch.arguments.extend(at_start.into_iter().map(OsString::from));
            launch
                .arguments
                .extend(["--nodaemonize", "--fpm-config"].map(OsString::from));
            let variables = env
                .iter()
                .map(|(name, value)| (env_variable(name).into(), value.into()));
            launch.environment.extend(variables);
            launch.file = Some(sealed_file::create(text.as_bytes())?.into());
            launch.listener = Some((listen.into(), listener));
        }
        Sapi::Cgi => {
            launch.name = "php-cgi".into();
            // php-cgi accepts connections at its standard input.
            launch.stdin = listener;
            let mut set_variable = |name: &str, value: String| launch.environment.push((name.into(), value.into()));
            let processes = workers.unwrap_or_else(|| process_limit().min(MAX_CGI_PROCESSES));
            set_variable("PHP_FCGI_CHILDREN", processes.to_string());
            set_variable("PHP_FCGI_MAX_REQUESTS", MAX_REQUESTS.to_string());
            let mut set_ini = |name: &str, value: &str| {
                launch.arguments.push("-d".into());
                launch.arguments.push(format!("{name}={value}").into());
            };
            for (name, value) in fixed_settings(pool) {
                set_ini(name, &value);
            }
            for (name, value) in ini {
                set_ini(name, &quoted(value));
            }
            // Puts the run folder into the command line, so that a later server finds the processes of a killed server.
            set_ini("rocknet.folder", &folder.display().to_string());
            let is_configured = |name: &OsString| name.to_str().is_some_and(|name| env.contains_key(name));
            launch.environment.retain(|(name, _)| !is_configured(name));
            let variables = env.iter().map(|(name, value)| (name.into(), value.into()));
            launch.environment.extend(variables);
        }
    }
    Ok((launch, stderr_reader))
}

/// Returns the process limit of a pool on this machine.
fn process_limit() -> u64 {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let (machine, group) = (read("/proc/meminfo"), read("/sys/fs/cgroup/memory.max"));
    process_limit_for(memory(&machine, &group))
}

/// Returns the process limit of a pool. `memory`: memory of the machine in bytes; `None` if it is unknown.
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
