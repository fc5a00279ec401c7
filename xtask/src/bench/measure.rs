//! Reads CPU time, memory and processes of a server from `/proc`.

use std::fs;
use std::path::Path;
use std::time::Instant;

/// Returns `pid` and all its living descendants.
pub fn tree(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut next = 0;
    while next < found.len() {
        let tasks = fs::read_dir(format!("/proc/{}/task", found[next]));
        for task in tasks.into_iter().flatten().flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(
                children
                    .split_whitespace()
                    .filter_map(|child| child.parse::<u32>().ok()),
            );
        }
        next += 1;
    }
    found
}

/// Returns the CPU time of a server in nanoseconds: all threads of all its processes, and the softirq thread of its
/// core, which does network work under load. Without that thread a server would look cheaper under more load.
pub fn cpu_ns(pid: u32, softirq: Option<u32>) -> u64 {
    tree(pid).into_iter().chain(softirq).map(process_cpu_ns).sum()
}

/// CPU time and wall time of a server between the start and the end of a load.
pub struct Meter {
    pid: u32,
    softirq: Option<u32>,
    begun: (u64, Instant),
    /// CPU time in nanoseconds.
    pub spent_ns: u64,
    /// Wall time.
    pub seconds: f64,
}

impl Meter {
    /// Makes a meter for the server `pid`; `softirq` as for [`cpu_ns`].
    pub fn new(pid: u32, softirq: Option<u32>) -> Self {
        Self {
            pid,
            softirq,
            begun: (0, Instant::now()),
            spent_ns: 0,
            seconds: 0.0,
        }
    }

    /// Marks the start of the load.
    pub fn begin(&mut self) {
        self.begun = (cpu_ns(self.pid, self.softirq), Instant::now());
    }

    /// Marks the end of the load.
    pub fn end(&mut self) {
        let (before, start) = self.begun;
        self.spent_ns = cpu_ns(self.pid, self.softirq).saturating_sub(before);
        self.seconds = start.elapsed().as_secs_f64();
    }
}

fn process_cpu_ns(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    tasks
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|task| schedstat_ns(&task.path()))
        .sum()
}

/// Reads the first number of `schedstat`: nanoseconds on a CPU. `stat` counts only in ticks of a hundredth of a second.
fn schedstat_ns(task: &Path) -> Option<u64> {
    fs::read_to_string(task.join("schedstat"))
        .ok()?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

/// Returns the process id of the kernel's softirq thread of `core`.
pub fn softirq_thread(core: usize) -> Option<u32> {
    let name = format!("ksoftirqd/{core}");
    fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let comm = fs::read_to_string(entry.path().join("comm")).ok()?;
        (comm.trim() == name).then_some(pid)
    })
}

/// Returns true if a process of the server has a descriptor open whose link in `/proc/PID/fd` is `kind`.
pub fn holds(pid: u32, kind: &str) -> bool {
    tree(pid).into_iter().any(|pid| {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd"));
        descriptors
            .into_iter()
            .flatten()
            .flatten()
            .any(|entry| fs::read_link(entry.path()).is_ok_and(|target| target == Path::new(kind)))
    })
}

/// Kind of memory figure.
#[derive(Clone, Copy)]
pub enum Memory {
    /// Resident memory now.
    Resident,
    /// Peak resident memory.
    Peak,
}

/// Returns the memory of a server in KiB, summed over its processes; shared pages are counted in each process.
pub fn memory_kib(pid: u32, which: Memory) -> u64 {
    let name = match which {
        Memory::Resident => "VmRSS:",
        Memory::Peak => "VmHWM:",
    };
    tree(pid)
        .into_iter()
        .filter_map(|pid| status_kib(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, name))
        .sum()
}

fn status_kib(status: &str, name: &str) -> Option<u64> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_busy_process_uses_cpu_and_memory() {
        // A separate process is measured, because threads of other tests may end in this process, and their CPU time
        // would then be missing.
        let mut busy = Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .expect("a process");
        let pid = busy.id();
        let before = cpu_ns(pid, None);
        while cpu_ns(pid, None) == before {
            std::thread::yield_now();
        }
        let mut meter = Meter::new(pid, None);
        meter.begin();
        while meter.spent_ns == 0 {
            meter.end();
        }
        assert!(meter.seconds > 0.0 && meter.spent_ns <= cpu_ns(pid, None) - before);
        assert!(memory_kib(pid, Memory::Resident) > 0);
        assert!(memory_kib(pid, Memory::Peak) >= 1);
        busy.kill().expect("killed");
        busy.wait().expect("ended");
    }

    #[test]
    fn descriptors_are_found_by_their_kind() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let name = file.path().to_str().expect("a name").to_owned();
        assert!(holds(std::process::id(), &name));
        assert!(!holds(std::process::id(), "anon_inode:[no such thing]"));
    }

    #[test]
    fn children_belong_to_the_tree() {
        let mut child = Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("cat");
        assert!(tree(std::process::id()).contains(&child.id()));
        drop(child.stdin.take());
        child.wait().expect("cat ends with its input");
    }

    #[test]
    fn memory_is_parsed_from_status() {
        let status = "VmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(status_kib(status, "VmRSS:"), Some(1024));
        assert_eq!(status_kib(status, "VmSwap:"), None);
    }
}
