//! Upgrades the server under load: old processes serve their connections to the end, and new ones take over.

use super::clients::Clients;
use super::generators::Generator;
use super::process::{listing, resources, wait, wait_for_end};
use super::site::ReloadSite;
use crate::Failure;
use rustix::process::{Pid, Signal, kill_process};

/// Way to begin an upgrade.
#[derive(Clone, Copy)]
enum UpgradeBy {
    Command,
    Signal,
}

/// Upgrades under the first load, after which the resources of the process are measured. Only processes that an upgrade
/// has started are compared with each other, because such a process begins with a worker for each socket that it
/// inherits.
const FIRST: &[UpgradeBy] = &[UpgradeBy::Command];
/// Upgrades under the second load.
const FURTHER: &[UpgradeBy] = &[UpgradeBy::Command, UpgradeBy::Command, UpgradeBy::Signal];

pub fn run(site: &ReloadSite, clients: &Clients) -> Result<(), Failure> {
    let first = upgrade(site, clients, FIRST)?;
    let idle = resources(first)?;
    println!("{idle:?} without connections after an upgrade");
    let last = upgrade(site, clients, FURTHER)?;
    let is_back = wait("the resources after the first upgrade", || {
        // A query of the status makes the server close its channels to processes that have ended.
        site.status()?;
        Ok(resources(last)?.are_back_at(idle))
    });
    is_back.map_err(|error| format!("{error}: {:?} instead of {idle:?}\n{}", resources(last), listing(last)))?;
    site.check_log()
}

/// Upgrades the server under load. Returns the process that serves at the end, once all older ones have ended.
fn upgrade(site: &ReloadSite, clients: &Clients, ways: &[UpgradeBy]) -> Result<u32, Failure> {
    let running = clients.start(site)?;
    running.wait_for_all_kinds()?;
    let wrk = Generator::wrk(site)?;
    let mut current = site.process()?;
    let mut old = Vec::new();
    for way in ways {
        old.push(current);
        match way {
            UpgradeBy::Command => site.rocknet(&["upgrade"]).map(drop)?,
            UpgradeBy::Signal => {
                signal(current, Signal::USR2)?;
                wait("the upgrade by a signal", || {
                    Ok(site.process().is_ok_and(|process| process != current))
                })?;
            }
        }
        current = site.process()?;
        running.wait_for_progress()?;
        running
            .check()
            .map_err(|error| format!("upgrade to process {current}: {error}"))?;
        println!("upgraded to process {current}");
    }
    running.end()?;
    wrk.stop_wrk()?;
    for process in old {
        wait_for_end(process)?;
    }
    wait("the end of all connections", || {
        Ok(site.status()?["connections_open"] == 0)
    })?;
    Ok(current)
}

fn signal(process: u32, signal: Signal) -> Result<(), Failure> {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    Ok(kill_process(pid.ok_or("no process ID")?, signal)?)
}
