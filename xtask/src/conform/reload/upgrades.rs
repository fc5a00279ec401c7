//! Upgrades the server under load: old processes serve their connections to the end, and new ones take over.

use super::clients::Clients;
use super::generators::Generator;
use super::process::{Resources, listing, resources, wait, wait_for_end};
use super::site::ReloadSite;
use crate::Failure;
use rustix::process::{Pid, Signal, kill_process};

/// Number of upgrades by a command. One by a signal follows.
const COMMANDS: usize = 3;

/// Upgrades the server. `idle`: its resources without connections.
pub fn run(site: &ReloadSite, clients: &Clients, idle: Resources) -> Result<(), Failure> {
    let running = clients.start(site)?;
    running.wait_for_all_kinds()?;
    let wrk = Generator::wrk(site)?;
    let mut processes = vec![site.first_process()];
    for number in 1..=COMMANDS + 1 {
        if number <= COMMANDS {
            site.rocknet(&["upgrade"])?;
        } else {
            signal(site.process()?, Signal::USR2)?;
            wait("the upgrade by a signal", || {
                let process = site.process();
                Ok(process.is_ok_and(|process| !processes.contains(&process)))
            })?;
        }
        processes.push(site.process()?);
        running.wait_for_progress()?;
        running.check().map_err(|error| format!("upgrade {number}: {error}"))?;
        println!("upgrade {number}: process {}", site.process()?);
    }
    running.end()?;
    wrk.stop_wrk()?;
    let current = processes.pop().ok_or("no process")?;
    for old in processes {
        wait_for_end(old)?;
    }
    let rest = || resources(current);
    // Channels for the control of an upgrade are closed once the old processes have ended.
    let is_back = wait("the resources of the start", || {
        let now = rest()?;
        Ok(now.descriptors <= idle.descriptors && now.threads <= idle.threads)
    });
    is_back.map_err(|error| format!("{error}: {:?} instead of {idle:?}\n{}", rest(), listing(current)))?;
    site.check_log()
}

fn signal(process: u32, signal: Signal) -> Result<(), Failure> {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    Ok(kill_process(pid.ok_or("no process ID")?, signal)?)
}
