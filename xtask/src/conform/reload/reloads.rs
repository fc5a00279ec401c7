//! Loads a hundred configurations under load, and compares the resources of the process before and after the load.

use super::clients::{Clients, RunningClients};
use super::generators::Generator;
use super::process::{listing, memory_kib, resources, wait};
use super::site::{Extra, FIRST, ReloadSite, Shape};
use crate::Failure;

/// Number of reloads in a section, in which no worker is removed.
const SECTION: usize = 20;
/// Value of `server.workers` at the beginning and at the end of each section.
const WORKERS: [(usize, usize); 5] = [(1, 3), (2, 3), (1, 2), (2, 4), (1, 1)];
/// Additional listeners of successive reloads: added, moved, two of them, and moved to all addresses and back.
const EXTRA: [&[Extra]; 6] = [
    &[Extra::First],
    &[Extra::Second],
    &[Extra::First, Extra::Second],
    &[Extra::SecondEverywhere],
    &[Extra::Second],
    &[],
];
/// Connections to additional listeners are opened after one reload in this number, and only before reload `VISITED`.
/// They stay open, so later ones would count as a growth of memory.
const VISIT_INTERVAL: usize = 5;
const VISITED: usize = 41;
/// Maximum growth of the resident memory in KiB after the middle section.
const MAX_GROWTH_KIB: u64 = 8 << 10;
/// Maximum number of configurations in memory while requests of earlier ones are in progress.
const MAX_SNAPSHOTS: u64 = 40;

pub fn run(site: &ReloadSite, clients: &Clients) -> Result<(), Failure> {
    // Threads and caches that the first use creates are no growth.
    let warm = clients.start(site)?;
    warm.wait_for_all_kinds()?;
    for (number, extra) in EXTRA.iter().enumerate() {
        reload(
            site,
            &warm,
            Shape {
                number,
                // The maximum of all sections.
                workers: 4,
                extra,
            },
        )?;
    }
    warm.end()?;
    site.reload(FIRST)?;
    let process = site.process()?;
    wait_for_rest(site)?;
    let idle = resources(process)?;
    println!("{idle:?} and {} KiB without connections", memory_kib(process)?);

    let running = clients.start(site)?;
    running.wait_for_all_kinds()?;
    let wrk = Generator::wrk(site)?;
    let mut number = 0;
    let mut after_middle = 0;
    for (section, (first, last)) in WORKERS.into_iter().enumerate() {
        let mut h2load = None;
        for at in 0..SECTION {
            // The first reload of a section may remove workers.
            if at == 1 {
                h2load = Some(Generator::h2load(site)?);
            }
            number += 1;
            let workers = if at < SECTION / 2 { first } else { last };
            let extra = EXTRA[number % EXTRA.len()];
            reload(site, &running, Shape { number, workers, extra })?;
        }
        h2load.map_or(Ok(()), Generator::wait_for_h2load)?;
        let snapshots = snapshots(site)?;
        println!(
            "{number} reloads, {:?}, {} KiB, {snapshots} configurations in memory",
            resources(process)?,
            memory_kib(process)?
        );
        if snapshots > MAX_SNAPSHOTS {
            return Err(format!("{snapshots} configurations are in memory after {number} reloads").into());
        }
        if section == WORKERS.len() / 2 {
            after_middle = memory_kib(process)?;
        }
    }
    let growth = memory_kib(process)?.saturating_sub(after_middle);
    if growth > MAX_GROWTH_KIB {
        return Err(format!("the memory of the server grew by {growth} KiB after the middle section").into());
    }
    running.end()?;
    wrk.stop_wrk()?;
    // The same listeners as at the start.
    site.reload(FIRST)?;
    wait_for_rest(site)?;
    let rest = || resources(process);
    let is_back = wait("the resources of the start", || Ok(rest()?.are_back_at(idle)));
    is_back.map_err(|error| format!("{error}: {:?} instead of {idle:?}\n{}", rest(), listing(process)))?;
    site.check_log()
}

/// Loads a configuration, and waits until clients have used it. Additional listeners are used until the end.
fn reload(site: &ReloadSite, clients: &RunningClients, shape: Shape) -> Result<(), Failure> {
    site.reload(shape)?;
    if shape.number < VISITED && shape.number.is_multiple_of(VISIT_INTERVAL) {
        for extra in shape.extra {
            clients.visit(site.extra_port(*extra))?;
        }
    }
    clients.wait_for_progress()?;
    clients
        .check()
        .map_err(|error| format!("reload {}: {error}", shape.number).into())
}

/// Waits until only the configuration in use is in memory, and no connection of clients is open.
fn wait_for_rest(site: &ReloadSite) -> Result<(), Failure> {
    wait("the end of all connections and older configurations", || {
        let status = site.status()?;
        Ok(status["connections_open"] == 0 && status["snapshots"] == 1)
    })
    .map_err(|error| format!("{error}: {}", site.status().unwrap_or_default()).into())
}

fn snapshots(site: &ReloadSite) -> Result<u64, Failure> {
    site.status()?["snapshots"]
        .as_u64()
        .ok_or_else(|| "no number of configurations in the status".into())
}
