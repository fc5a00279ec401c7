//! Numbers of workers and connections, by the cores and the descriptors of the process.

use std::thread;

use rocknet_config::model::{Config, Workers};
use rocknet_io::descriptors;

use crate::files::cache::most_open_files;
use crate::files::open_folder::most_open_folders;
use crate::snapshot::{Snapshot, addresses};
use crate::spool;

/// Maximum number of worker threads in total if `server.workers` is `auto`, unless there are more addresses. Without
/// it, a machine with many cores and addresses would have thousands of threads.
const MAX_AUTO_WORKERS: usize = 128;
/// Descriptors reserved for logs, for files that are being looked up, and for other uses that are not counted.
const RESERVED_DESCRIPTORS: u64 = 384;
/// Descriptors of a worker: its listening socket, a copy of the socket for a restart, event queue, timer and ring, with
/// a margin.
const WORKER_DESCRIPTORS: u64 = 10;

/// Minimum number of descriptors for one worker: the five that [`WORKER_DESCRIPTORS`] names, without its margin.
const MIN_WORKER_DESCRIPTORS: u64 = 5;
/// Minimum number of descriptors for the process itself, such as standard streams, logs and the control socket, with
/// a margin. The descriptors of the workers are not included.
const MIN_DESCRIPTORS: u64 = 16;

/// Returns an error if the descriptor limit is so low that `threads` workers could not start.
pub fn check_descriptors(threads: usize) -> Result<(), String> {
    check_limit(descriptors::limit(), threads)
}

fn check_limit(limit: u64, threads: usize) -> Result<(), String> {
    let needed = MIN_DESCRIPTORS + threads as u64 * MIN_WORKER_DESCRIPTORS;
    if limit >= needed {
        return Ok(());
    }
    Err(format!(
        "the process may open only {limit} files, but with {threads} workers it needs at least {needed}: raise the \
         limit by `ulimit -n`, or LimitNOFILE= in the unit"
    ))
}

/// Returns the number of workers per listening address. `addresses`: number of listening addresses.
pub fn worker_count(config: &Config, addresses: usize) -> usize {
    match config.server.workers {
        Workers::Count(count) => usize::from(count).max(1),
        Workers::Auto => automatic_workers(thread::available_parallelism().map_or(1, usize::from), addresses),
    }
}

/// Returns the number of workers per listening address if `server.workers` is `auto`: one for each core, or fewer if
/// all addresses together would exceed [`MAX_AUTO_WORKERS`], but at least one.
fn automatic_workers(cores: usize, addresses: usize) -> usize {
    cores.min(MAX_AUTO_WORKERS / addresses.max(1)).max(1)
}

/// Returns the maximum number of open connections for each of `threads` workers.
pub fn connections_per_worker(snapshot: &Snapshot, threads: usize) -> usize {
    let folders = snapshot.folders().min(most_open_folders());
    let files = most_open_files() + spool::most_files();
    let max = max_connections(descriptors::limit(), threads, folders, files);
    snapshot
        .config
        .limits
        .connections
        // Connections beyond the descriptor limit would take descriptors from the files that are sent.
        .map_or(max, |limit| limit.min(max))
        // Rounded up, so that the workers together accept at least that number.
        .div_ceil(threads.max(1))
        .max(1)
}

/// Returns the number of connections that a server of this configuration accepts with a descriptor limit, regardless of
/// `limits.connections`. Sites count as one folder each.
pub fn allowed_connections(config: &Config, limit: u64) -> usize {
    let addresses = addresses(config).len();
    let threads = worker_count(config, addresses) * addresses;
    let folders = config.sites.len().min(most_open_folders());
    max_connections(limit, threads, folders, most_open_files() + spool::most_files())
}

/// Returns the number of connections that the descriptor limit allows. Descriptors stay reserved for workers, the
/// folders of sites, and files that the cache holds open or that hold request bodies. At least half of the limit is for
/// connections: the server survives a shortage of files, but without connections it is useless.
fn max_connections(limit: u64, workers: usize, folders: usize, files: u64) -> usize {
    let others = RESERVED_DESCRIPTORS + workers as u64 * WORKER_DESCRIPTORS + folders as u64 + files;
    usize::try_from(limit.saturating_sub(others).max(limit / 2)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_core_has_a_worker_up_to_the_maximum_of_all_addresses() {
        // Cores, listening addresses, expected workers per address.
        for (cores, addresses, expected) in [
            (4, 0, 4),
            (64, 2, 64),
            (64, 3, 42),
            (128, 1, 128),
            (129, 1, 128),
            (8, 128, 1),
            (8, 10_000, 1),
        ] {
            let found = automatic_workers(cores, addresses);
            assert_eq!(found, expected, "{cores} cores, {addresses} addresses");
        }
    }

    #[test]
    fn a_limit_below_the_needs_of_the_workers_is_an_error() {
        assert_eq!(check_limit(1024, 128), Ok(()));
        assert_eq!(check_limit(26, 2), Ok(()));
        let error = check_limit(25, 2).unwrap_err();
        assert!(
            error.contains("open only 25 files") && error.contains("at least 26"),
            "{error}"
        );
    }

    #[test]
    fn connections_leave_descriptors_for_other_uses() {
        // Descriptor limit, workers, folders, files, and the expected connections. The last two rows leave less than
        // half of the limit, so half of the limit applies.
        for (limit, workers, folders, files, expected) in [
            (1 << 20, 2, 3, 8192, (1 << 20) - 384 - 20 - 3 - 8192),
            (4096, 4, 10, 512, 4096 - 384 - 40 - 10 - 512),
            (4096, 128, 10_000, 512, 2048),
            (64, 1, 1, 16, 32),
        ] {
            let found = max_connections(limit, workers, folders, files);
            assert_eq!(found, expected, "of {limit}, with {workers}, {folders}, {files}");
        }
    }
}
