//! The end of a server: a stop, or the handover to another process.

use std::io;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use super::Server;
use crate::accept_loop::StopTimes;
use crate::listener::{ActiveListener, join_within};
use crate::takeover::{OfferedSocket, SocketKind};
use crate::worker::Shared;

/// Time for worker threads to end after the workers' own deadline.
const JOIN_GRACE: Duration = Duration::from_secs(1);
/// Time for the processes of isolated controllers to end after the last request.
const LIBRARY_GRACE: Duration = Duration::from_secs(6);
/// Time for which idle connections stay open after a handover. A client that is sending its next request when the
/// handover begins gets its response.
const IDLE_GRACE: Duration = Duration::from_secs(2);

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

    /// Ends like [`Server::stop`] after another process has taken over the sockets. Connections have `limits.drain` to
    /// finish, and certificates are no longer ordered.
    pub fn hand_over(self) -> bool {
        // The other process waits for the lock of the orders. Challenges reach that process only.
        self.shared.certificates.stop(Instant::now() + JOIN_GRACE);
        let within = self.snapshot().config.limits.drain;
        self.end(StopTimes {
            within,
            idle_grace: IDLE_GRACE.min(within / 2),
        })
    }

    fn end(self, times: StopTimes) -> bool {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let threads = state
            .listeners
            .into_values()
            .flat_map(|listener| listener.stop(times).threads)
            .collect();
        let clean = join_within(threads, times.within + JOIN_GRACE);
        let Shared {
            pool,
            cache,
            certificates,
            registries,
            ..
        } = &self.shared;
        pool.stop(JOIN_GRACE);
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
        use std::os::fd::AsFd;

        let mut offered = Vec::new();
        for (address, listener) in &self.state().listeners {
            for socket in listener.sockets() {
                offered.push(OfferedSocket {
                    kind: SocketKind::Stream,
                    address: address.clone(),
                    socket: socket.as_fd().try_clone_to_owned()?,
                });
            }
        }
        Ok(offered)
    }

    /// Leaves the socket files to a process that takes over, or with `false` removes them at the end as usual.
    pub fn leave_socket_files(&self, leaves: bool) {
        let state = self.state();
        for socket in state.listeners.values().flat_map(ActiveListener::sockets) {
            if leaves {
                socket.keep_socket_file();
            } else {
                socket.own_socket_file();
            }
        }
    }
}
