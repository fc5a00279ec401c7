//! Resources of a process, from `/proc`.

use crate::Failure;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Time for an event that has no notification: longer than the timeouts of idle connections in the server.
const TIMEOUT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(50);

/// Numbers of descriptors and threads of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    pub descriptors: usize,
    pub threads: usize,
}

/// Number of descriptors that may be added: folders and files that a request opens, and that stay open. A leak for each
/// reload or connection exceeds it many times.
const DESCRIPTOR_MARGIN: usize = 8;

impl Resources {
    /// Returns true if the process uses no more than `idle`, its resources without connections, apart from a few
    /// descriptors.
    pub fn are_back_at(&self, idle: Resources) -> bool {
        self.descriptors <= idle.descriptors + DESCRIPTOR_MARGIN && self.threads <= idle.threads
    }
}

/// Returns the resources that a process uses now.
pub fn resources(process: u32) -> Result<Resources, Failure> {
    Ok(Resources {
        descriptors: fs::read_dir(format!("/proc/{process}/fd"))?.count(),
        threads: fs::read_dir(format!("/proc/{process}/task"))?.count(),
    })
}

/// Returns the resident memory of a process in KiB.
pub fn memory_kib(process: u32) -> Result<u64, Failure> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| "no resident memory in the status of the process".into())
}

/// Describes the descriptors and threads of a process, for an error.
pub fn listing(process: u32) -> String {
    let names = |folder: &str, name: fn(&Path) -> Option<String>| {
        let entries = fs::read_dir(format!("/proc/{process}/{folder}")).into_iter().flatten();
        let mut names: Vec<_> = entries.flatten().filter_map(|entry| name(&entry.path())).collect();
        names.sort();
        names.join("\n")
    };
    let link = |path: &Path| fs::read_link(path).ok().map(|target| target.display().to_string());
    let comm = |path: &Path| {
        fs::read_to_string(path.join("comm"))
            .ok()
            .map(|name| name.trim().to_owned())
    };
    format!("descriptors:\n{}\nthreads:\n{}", names("fd", link), names("task", comm))
}

/// Waits until a process has ended. A zombie has ended too.
pub fn wait_for_end(process: u32) -> Result<(), Failure> {
    let stat = format!("/proc/{process}/stat");
    wait(&format!("the end of process {process}"), || {
        Ok(!fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")))
    })
}

/// Waits until a condition is true.
pub fn wait(what: &str, mut is_true: impl FnMut() -> Result<bool, Failure>) -> Result<(), Failure> {
    let started = Instant::now();
    while !is_true()? {
        if started.elapsed() > TIMEOUT {
            return Err(format!("timeout while waiting for {what}").into());
        }
        thread::sleep(POLL);
    }
    Ok(())
}
