//! The end of a server: a stop, or the handover to another process.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rocknet_io::socket::Address;
use rocknet_quic::RelayReceiver;

use super::Server;
use crate::accept_loop::StopTimes;
use crate::listener::{ActiveListener, StoppingListener, join_within};
use crate::takeover::{OfferedSocket, SocketKind};
use crate::worker::Shared;

/// Time for threads to end. For worker threads it begins at the time limit of the stop, for other threads with the call
/// that stops them. Also the maximum wait until workers have applied a change.
const JOIN_GRACE: Duration = Duration::from_secs(1);
/// Time for the threads and processes of the registries to end after the last request: one second more than an isolated
/// library has for its `drop` function.
const LIBRARY_GRACE: Duration = Duration::from_secs(6);

/// Time after a handover until the store of responses on disk is closed. Until then, changes by requests in progress
/// are recorded there.
const DISK_RELEASE: Duration = Duration::from_secs(30);

impl Server {
    /// Stops the server: no new connections are accepted, responses in progress finish, and connections that are still
    /// open at the deadline are cut. Returns true if all workers ended in time and none has cut a connection.
    ///
    /// Afterwards all threads and child processes of the server have ended, and its descriptors are closed. Calls that
    /// cannot be interrupted are the exception: a name lookup, or access to a disk that does not respond.
    pub fn stop(self) -> bool {
        let within = self.snapshot().config.limits.shutdown;
        self.end(within.into())
    }

    /// Ends like [`Server::stop`] after another process has taken over the sockets. Connections have
    /// `limits.upgrade_drain` to finish, and certificates are no longer ordered.
    pub fn hand_over(self) -> bool {
        // The other process waits for the lock under which certificates are ordered, and only that process receives the
        // challenges of a CA from now on.
        self.shared.certificates.stop(Instant::now() + JOIN_GRACE);
        // It also waits for the stored responses on disk. Requests in progress may still change resources, and their
        // changes must be recorded before the other process sends these responses.
        self.shared.registries.responses.release_disk_after(DISK_RELEASE);
        // From now on, bans that begin in this process are passed to the other process.
        self.shared.registries.bans.begin_passing();
        let times = StopTimes::of_drain(self.snapshot().config.limits.upgrade_drain);
        self.end(times)
    }

    /// Stops all workers within `times`, then the other threads and child processes. Returns true if all workers ended
    /// in time and none has cut a connection.
    fn end(self, times: StopTimes) -> bool {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut stopping = state.stopping;
        stopping.iter().for_each(|listener| listener.stop(times));
        stopping.extend(state.listeners.into_values().map(|listener| listener.stop(times)));
        let threads = stopping.iter_mut().flat_map(StoppingListener::take_threads).collect();
        let clean = join_within(threads, times.within + JOIN_GRACE);
        drop(stopping);
        let Shared {
            pool,
            cache,
            certificates,
            registries,
            ..
        } = &self.shared;
        pool.stop(JOIN_GRACE);
        // The snapshot holds the controllers. Dropping them begins the end of the processes of isolated libraries.
        drop(state.snapshot);
        // The registries are stopped after the last request, and the log after all other components, because they write
        // to it.
        if !registries.stop(Instant::now() + LIBRARY_GRACE) {
            tracing::warn!("a thread or process of the server did not end in time and is abandoned");
        }
        self.php.stop();
        cache.stop(Instant::now() + JOIN_GRACE);
        certificates.stop(Instant::now() + JOIN_GRACE);
        self.shared.logger.flush_and_stop(JOIN_GRACE);
        clean
    }

    /// Returns duplicates of all sockets of the server, for a process that takes over.
    ///
    /// # Errors
    ///
    /// Fails if no descriptor is free.
    pub fn offered_sockets(&self) -> io::Result<Vec<OfferedSocket>> {
        let mut offered = Vec::new();
        for (address, listener) in &self.state().listeners {
            for socket in listener.all_sockets() {
                let kind = match socket.is_activated() {
                    true => SocketKind::Activated,
                    false => SocketKind::Stream,
                };
                offered.push(OfferedSocket {
                    kind,
                    address: address.clone(),
                    socket: socket.as_fd().try_clone_to_owned()?,
                });
            }
            for socket in listener.quic_sockets() {
                offered.push(OfferedSocket {
                    kind: SocketKind::Udp,
                    address: address.clone(),
                    socket: socket.as_fd().try_clone_to_owned()?,
                });
            }
        }
        Ok(offered)
    }

    /// Returns the number of this process for its QUIC connection IDs.
    pub fn generation(&self) -> u16 {
        self.quic_keys.generation()
    }

    /// Starts a thread that receives datagrams from the process that takes over, and passes them to the QUIC
    /// connections of this process. Returns the channels of this process and of older ones, with their generations;
    /// none if the server has no UDP sockets.
    ///
    /// # Errors
    ///
    /// Fails if no descriptor is free, or the thread cannot be started.
    pub fn offered_relays(&self) -> io::Result<Vec<(u16, OwnedFd)>> {
        if !self.state().listeners.values().any(ActiveListener::has_quic) {
            return Ok(Vec::new());
        }
        let forwarding = self.quic_keys.forwarding().clone();
        let (receiver, channel) = RelayReceiver::pair()?;
        thread::Builder::new()
            .name("rn-relay".to_owned())
            .spawn(move || receiver.run(&forwarding))?;
        let mut offered = vec![(self.generation(), channel)];
        for relay in self.relays.iter().filter(|relay| relay.check_running()) {
            if let Some(channel) = relay.duplicate()? {
                offered.push((relay.generation(), channel));
            }
        }
        Ok(offered)
    }

    /// Closes the channels to older processes that have ended.
    pub(super) fn close_ended_relays(&self) {
        for relay in &self.relays {
            relay.check_running();
        }
    }

    /// Makes the workers leave the datagrams of their UDP sockets to another process. Workers of the addresses `unused`
    /// are left out, because the other process does not read their sockets. Returns when all workers have applied the
    /// change, or after one second.
    pub fn leave_quic(&self, unused: &[Address]) {
        self.receive_quic(false, unused);
    }

    /// Makes all workers read their UDP sockets again. Returns when they have applied the change, or after one second.
    pub fn resume_quic(&self) {
        self.receive_quic(true, &[]);
    }

    /// Does the work of [`leave_quic`](Self::leave_quic), or of [`resume_quic`](Self::resume_quic) if `receives` is
    /// true. A listener whose address was removed is included if the address of an included listener equals or covers
    /// it, because its workers may read the same sockets.
    fn receive_quic(&self, receives: bool, unused: &[Address]) {
        let (applied, all_applied) = mpsc::channel();
        let state = self.state();
        let used = state.listeners.iter().filter(|(address, _)| !unused.contains(address));
        for (_, listener) in used.filter(|(_, listener)| listener.has_quic()) {
            listener.receive_quic(receives, &applied);
            let reads_same =
                |other: &&StoppingListener| listener.bound() == other.bound() || listener.bound().covers(other.bound());
            for other in state.stopping.iter().filter(reads_same) {
                other.receive_quic(receives, &applied);
            }
        }
        drop((state, applied));
        // Never receives a value: the channel is closed once all workers have dropped their end.
        let _ = all_applied.recv_timeout(JOIN_GRACE);
    }

    /// Leaves the socket files to a process that takes over.
    pub fn leave_socket_files(&self) {
        let state = self.state();
        let sockets = state.listeners.values().flat_map(ActiveListener::all_sockets);
        sockets.for_each(|socket| socket.keep_socket_file());
    }

    /// Lets the server remove its socket files at its end, which is the default.
    pub fn own_socket_files(&self) {
        let state = self.state();
        let sockets = state.listeners.values().flat_map(ActiveListener::all_sockets);
        sockets.for_each(|socket| socket.own_socket_file());
    }
}
