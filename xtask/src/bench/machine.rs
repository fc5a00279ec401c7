//! Describes the machine of a run, pins the run to a core, and raises the descriptor limit.

use super::cores::CORES;
use crate::Failure;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::Serialize;
use std::fs;
use std::thread::available_parallelism;

/// Properties of the machine that a reader needs to judge the figures.
#[derive(Clone, Serialize)]
pub struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub memory_gib: u64,
    pub kernel: String,
    pub system: String,
    /// Congestion control of loopback connections.
    pub congestion_control: String,
    /// Load average of the minute before the run. If it is above zero, other processes disturb the run.
    pub load_before: f64,
}

/// Descriptor limit: enough for 10,000 connections of the client and of the server, with their files and pipes.
const DESCRIPTORS: u64 = 40_000;

impl Machine {
    pub fn read() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split([':', '=']).nth(1)?.trim().trim_matches('"').to_owned())
        };
        let kib: u64 = read("/proc/meminfo")
            .split_whitespace()
            .nth(1)
            .and_then(|word| word.parse().ok())
            .unwrap_or(0);
        Self {
            cpu: field(&cpuinfo, "model name").unwrap_or_else(|| "unknown".into()),
            cores: cpuinfo.lines().filter(|line| line.starts_with("processor")).count(),
            // Rounded to whole GiB.
            memory_gib: (kib + (1 << 19)) >> 20,
            kernel: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
            congestion_control: super::network::congestion_control(),
            load_before: read("/proc/loadavg")
                .split(' ')
                .next()
                .and_then(|word| word.parse().ok())
                .unwrap_or(0.0),
            system: field(&read("/etc/os-release"), "PRETTY_NAME").unwrap_or_else(|| "unknown".into()),
        }
    }
}

/// Fails on a machine with one core, where server and load would distort each other's figures.
pub fn require_two_cores() -> Result<(), Failure> {
    let cores = available_parallelism().map_or(1, usize::from);
    if cores >= CORES {
        Ok(())
    } else {
        Err(format!("the bench needs {CORES} cores, and this machine has {cores}").into())
    }
}

/// Pins this program and the load generators that it starts to `core`, so that they do not use the server's core.
pub fn pin_to(core: usize) -> Result<(), Failure> {
    let mut set = CpuSet::new();
    set.set(core);
    Ok(sched_setaffinity(None, &set)?)
}

/// Raises the descriptor limit of this program and its children to [`DESCRIPTORS`], or as far as permitted.
pub fn raise_descriptor_limit() {
    let now = getrlimit(Resource::Nofile);
    let limit = Rlimit {
        current: Some(DESCRIPTORS),
        maximum: Some(now.maximum.unwrap_or(DESCRIPTORS).max(DESCRIPTORS)),
    };
    // Only root may raise the hard limit.
    if setrlimit(Resource::Nofile, limit).is_err() {
        let _ = setrlimit(
            Resource::Nofile,
            Rlimit {
                current: now.maximum,
                maximum: now.maximum,
            },
        );
    }
}

/// Returns the number of descriptors that this process can open.
pub fn descriptor_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
