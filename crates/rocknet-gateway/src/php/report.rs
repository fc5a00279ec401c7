//! Reports about the pools of PHP: state, processes and restarts.

use std::path::PathBuf;

/// Progress of a pool as the supervisor thread publishes it.
#[derive(Debug, Clone, Copy, Default)]
pub struct PoolProgress {
    /// Process ID of php-fpm; `None` if it does not run, or the ID is unknown.
    pub pid: Option<u32>,
    /// True if it accepts requests.
    pub is_ready: bool,
    /// True if an operator has stopped the pool.
    pub is_stopped: bool,
    /// Number of starts since the pool was created.
    pub starts: u32,
}

/// State of a pool.
#[derive(Debug, Clone)]
pub struct PoolReport {
    /// Name: version and account, such as `8.2` or `8.2@alice`; with settings of its own also the first site that uses
    /// it, such as `8.2/example.com`.
    pub name: String,
    /// Version of PHP.
    pub version: String,
    /// Account of the scripts, if a site names one.
    pub user: Option<String>,
    /// Socket that requests are sent to.
    pub socket: PathBuf,
    /// True if the pool accepts requests.
    pub is_ready: bool,
    /// True if an operator has stopped the pool.
    pub is_stopped: bool,
    /// Reason why PHP does not run, if it does not.
    pub fault: Option<String>,
    /// Number of processes, including php-fpm itself; 0 if php-fpm does not run, and on systems other than Linux.
    pub processes: u64,
    /// Number of starts after the first one, including those that failed.
    pub restarts: u64,
}

/// Returns the number of processes of a php-fpm, including itself. The kernel lists the children of a thread, and
/// php-fpm starts its processes from its only thread.
pub fn processes(pid: u32) -> u64 {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    children.map_or(0, |children| children.split_whitespace().count() as u64 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_processes_of_a_parent_are_counted() {
        let children = format!("/proc/{0}/task/{0}/children", std::process::id());
        if !std::path::Path::new(&children).exists() {
            return;
        }
        // The shell writes a line once it has started its only child. The child reads the input of the shell, so it
        // does not end before the shell is killed. Without redirection, a child in the background has an empty input.
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "exec 3<&0; cat <&3 & echo; wait"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0];
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut line).unwrap();
        let counted = processes(shell.id());
        shell.kill().unwrap();
        shell.wait().unwrap();
        assert_eq!(counted, 2);
        assert_eq!(processes(u32::MAX), 0);
    }
}
