//! Relay in user space: carries IP packets between two TUN devices over the model of a slow link.

use super::link::{Link, PacketOutcome};
use crate::bench::cores::SERVER_CORE;
use crate::bench::machine::pin_to;
use rustix::process::setpriority_process;
use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, sleep};
use std::time::Instant;

/// Maximum length of a packet: the MTU of the devices, 1500, with a reserve.
const PACKET: usize = 2048;
/// Highest priority of an ordinary thread, as a nice value.
const HIGHEST_PRIORITY: i32 = -20;

/// Counters of one direction.
#[derive(Default)]
pub struct Counters {
    /// Packets that arrived or were lost at random.
    pub carried: AtomicU64,
    /// Carried packets that were lost at random.
    pub lost: AtomicU64,
    /// Packets that were dropped because the queue was full.
    pub dropped: AtomicU64,
}

/// Moment of arrival, and the packet.
type InFlight = (Instant, Vec<u8>);

/// Carries one direction with two threads until the device `from` is deleted.
pub fn carry(from: &File, to: &File, link: Link) -> io::Result<Arc<Counters>> {
    let (from, to) = (from.try_clone()?, to.try_clone()?);
    let counters = Arc::new(Counters::default());
    let (sender, receiver) = channel();
    let counted = Arc::clone(&counters);
    thread::spawn(move || receive(from, &sender, link, &counted));
    thread::spawn(move || deliver(to, &receiver));
    Ok(counters)
}

/// Reads the packets of one direction, and passes on those that arrive, each with its moment of arrival.
fn receive(mut from: File, to: &Sender<InFlight>, mut link: Link, counters: &Counters) {
    prefer_this_thread();
    let mut packet = [0; PACKET];
    while let Ok(length) = from.read(&mut packet) {
        let outcome = link.send(Instant::now(), length);
        let add = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed);
        match outcome {
            PacketOutcome::QueueFull => add(&counters.dropped),
            PacketOutcome::Lost => {
                add(&counters.lost);
                add(&counters.carried)
            }
            PacketOutcome::Arrives(at) => {
                if to.send((at, packet[..length].to_vec())).is_err() {
                    return;
                }
                add(&counters.carried)
            }
        };
    }
}

fn deliver(mut to: File, from: &Receiver<InFlight>) {
    prefer_this_thread();
    while let Ok((at, packet)) = from.recv() {
        sleep(at.saturating_duration_since(Instant::now()));
        // A packet that the device refuses is lost, as on any network.
        let _ = to.write(&packet);
    }
}

/// Moves this thread to the core of the server, because the browser keeps the other core busy, and lets it run before
/// other processes. Without permission, the relay is only less exact.
fn prefer_this_thread() {
    let _ = pin_to(SERVER_CORE);
    // Without a process ID, Linux changes the priority of the calling thread only.
    let _ = setpriority_process(None, HIGHEST_PRIORITY);
}
