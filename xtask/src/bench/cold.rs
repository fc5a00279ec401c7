//! Rows with files on disk that are not in the page cache: each file is requested once from a freshly started server.

use super::cores::SERVER_CORE;
use super::counted::{StartedServer, start_one};
use super::lane::Lane;
use super::load::sequence;
use super::measure::{cpu_ns, softirq_thread};
use super::row::{GIB, KIB, MIB};
use super::run::Run;
use super::table::{Table, table};
use super::timed::median;
use super::{content, downloads};
use crate::Failure;
use rustix::fs::{Advice, fadvise};
use std::fs::File;
use std::path::PathBuf;

/// Files of one size: enough that a round takes a second, few enough to fit on any disk.
#[derive(Clone, Copy)]
struct FileSet {
    size: u64,
    count: u64,
    connections: u32,
}

const NOTE: &str = "Median of the rounds. Before each round the pages of all files are dropped \
                    from memory (directory entries and block maps stay cached) and the server is restarted; then each file \
                    is requested once. CPU time includes all threads of the server and the kernel threads that work for it.";

pub fn files_10k(run: &Run, lanes: &[Lane]) -> Result<Table, Failure> {
    measure(run, lanes, file_set(10 * KIB, 10_000, 64))
}

pub fn files_100k(run: &Run, lanes: &[Lane]) -> Result<Table, Failure> {
    measure(run, lanes, file_set(100 * KIB, 5_000, 64))
}

pub fn files_1m(run: &Run, lanes: &[Lane]) -> Result<Table, Failure> {
    measure(run, lanes, file_set(MIB, 800, 64))
}

pub fn files_1g(run: &Run, lanes: &[Lane]) -> Result<Table, Failure> {
    measure(run, lanes, file_set(GIB, 4, 4))
}

fn file_set(size: u64, count: u64, connections: u32) -> FileSet {
    FileSet {
        size,
        count,
        connections,
    }
}

fn measure(run: &Run, lanes: &[Lane], set: FileSet) -> Result<Table, Failure> {
    let folder = content::cold_name(set.size);
    let files = run.site.many(&folder, set.size, set.count)?;
    let columns = ["MiB/s", "p99, ms", "µs CPU per MiB", "failed"];
    let measured = table(lanes, &columns, NOTE, |lane| {
        let mut rounds: [Vec<f64>; 4] = Default::default();
        for _ in 0..run.rounds {
            let figures = round(run, lane, set, &folder, &files)?;
            for (all, figure) in rounds.iter_mut().zip(figures) {
                all.push(figure);
            }
        }
        Ok(rounds.iter().map(|all| median(all)).collect())
    });
    std::fs::remove_dir_all(run.site.root().join(&folder))?;
    Ok(measured)
}

/// Starts the server, drops the files from memory, and requests each once. Returns the figures of the columns.
fn round(run: &Run, lane: &Lane, set: FileSet, folder: &str, files: &[PathBuf]) -> Result<[f64; 4], Failure> {
    let StartedServer {
        server, port, scratch, ..
    } = start_one(run, lane, &[])?;
    for path in files {
        fadvise(File::open(path)?, 0, None, Advice::DontNeed)?;
    }
    let softirq = softirq_thread(SERVER_CORE);
    let before = cpu_ns(server.pid(), softirq);
    let count = if set.size >= GIB {
        downloads::each_once(lane, port, folder, set.connections, set.count)?
    } else {
        let url = format!("http://127.0.0.1:{port}/{folder}/");
        sequence(&url, set.connections, set.count, &scratch)?
    };
    let spent = cpu_ns(server.pid(), softirq).saturating_sub(before) as f64 / 1e3;
    // The costs are divided by the bytes that the load generator has received. They are fewer than the server has read
    // if the generator stops in the middle of responses.
    Ok([
        count.mebibytes / count.seconds,
        count.p99_ms.unwrap_or(f64::NAN),
        spent / count.mebibytes,
        (count.failures + count.refused) as f64,
    ])
}
