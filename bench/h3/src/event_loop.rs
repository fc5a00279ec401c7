//! One loop on one thread that drives the connections of a `quinn-proto` endpoint over UDP sockets.
//!
//! Each iteration receives once from each readable socket and handles the timers that have passed. It then runs the
//! program for each connection with pending events, and sends all datagrams of the connection together.

use crate::udp::{Buffers, MAX_BYTES, MAX_SEGMENTS, Socket};
use bytes::BytesMut;
use quinn_proto::{ClientConfig, Connection, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint};
use quinn_udp::RecvMeta;
use rustix::event::{Timespec, epoll};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::error::Error;
use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// Client or server that uses the connections.
pub trait Program {
    /// State of one connection.
    type State;

    /// Returns the state of a connection that a client has opened.
    fn accept(&mut self) -> Self::State;

    /// Handles the events of a connection, and reads and writes its streams.
    fn process(&mut self, connection: &mut Connection, state: &mut Self::State, now: Instant);
}

struct Slot<S> {
    connection: Connection,
    state: S,
    /// Index of the socket that sends the datagrams of the connection.
    socket: usize,
    /// Earliest moment in the timers; `None` if they have none for this connection.
    timer: Option<Instant>,
    /// True if the connection is in the list of connections with pending events.
    is_pending: bool,
}

/// Event loop with its sockets and connections.
pub struct EventLoop<S> {
    endpoint: Endpoint,
    sockets: Vec<Socket>,
    poll: OwnedFd,
    /// Connections by their handle.
    slots: Vec<Option<Box<Slot<S>>>>,
    /// Handles of connections with pending events.
    pending: Vec<usize>,
    timers: BinaryHeap<Reverse<(Instant, usize)>>,
    buffers: Buffers,
    output: Vec<u8>,
    /// Datagrams that a full socket has not taken. They count as lost, so that the connection sends them again.
    pub unsent: u64,
}

/// Maximum number of events of one wait.
const EVENTS: usize = 256;
/// Key of the watched descriptor; sockets have their index as key.
const WATCHED: u64 = u64::MAX;

impl<S> EventLoop<S> {
    pub fn new(endpoint: Endpoint, sockets: Vec<Socket>) -> io::Result<Self> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (index, socket) in sockets.iter().enumerate() {
            epoll::add(
                &poll,
                socket,
                epoll::EventData::new_u64(index as u64),
                epoll::EventFlags::IN,
            )?;
        }
        Ok(Self {
            endpoint,
            sockets,
            poll,
            slots: Vec::new(),
            pending: Vec::new(),
            timers: BinaryHeap::new(),
            buffers: Buffers::default(),
            output: Vec::with_capacity(MAX_BYTES),
            unsent: 0,
        })
    }

    /// Makes [`EventLoop::run_once`] report when `descriptor` is readable.
    pub fn watch(&self, descriptor: impl AsFd) -> io::Result<()> {
        let key = epoll::EventData::new_u64(WATCHED);
        Ok(epoll::add(&self.poll, descriptor, key, epoll::EventFlags::IN)?)
    }

    /// Stops watching a descriptor.
    pub fn unwatch(&self, descriptor: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.poll, descriptor)?)
    }

    /// Begins a connection to `server` over the socket with this index.
    pub fn connect(
        &mut self,
        config: &ClientConfig,
        server: SocketAddr,
        name: &str,
        socket: usize,
        state: S,
    ) -> Result<(), Box<dyn Error>> {
        let (handle, connection) = self.endpoint.connect(Instant::now(), config.clone(), server, name)?;
        self.insert(handle, connection, socket, state);
        Ok(())
    }

    /// Marks every connection, so that the next iteration runs the program for it.
    pub fn wake_all(&mut self) {
        for index in 0..self.slots.len() {
            self.wake(index);
        }
    }

    /// Runs one iteration. It waits for a datagram, a timer or `until`. Returns true if the watched descriptor is
    /// readable.
    pub fn run_once(&mut self, program: &mut impl Program<State = S>, until: Option<Instant>) -> io::Result<bool> {
        // Connections may have been opened or marked since the last iteration.
        self.process(program, Instant::now())?;
        let next = self.timers.peek().map(|Reverse((moment, _))| *moment);
        let timeout = next.into_iter().chain(until).min();
        let timeout = timeout.map(|moment| timespec(moment.saturating_duration_since(Instant::now())));
        let mut events = [const { MaybeUninit::uninit() }; EVENTS];
        let (ready, _) = match epoll::wait(&self.poll, &mut events, timeout.as_ref()) {
            Ok(events) => events,
            Err(rustix::io::Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let now = Instant::now();
        let mut is_readable = false;
        for event in ready {
            match event.data.u64() {
                WATCHED => is_readable = true,
                index => self.receive(program, index as usize, now)?,
            }
        }
        self.fire_timers(now);
        self.process(program, now)?;
        Ok(is_readable)
    }

    fn receive(&mut self, program: &mut impl Program<State = S>, socket: usize, now: Instant) -> io::Result<()> {
        let mut buffers = std::mem::take(&mut self.buffers);
        if self.sockets[socket].receive(&mut buffers)? {
            for (meta, bytes) in buffers.batches() {
                // One allocation for all datagrams of a batch.
                let mut copy = BytesMut::from(bytes);
                while !copy.is_empty() {
                    // All datagrams but the last have the length `stride`. At least one byte is split off, so that the
                    // loop ends.
                    let datagram = copy.split_to(meta.stride.min(copy.len()).max(1));
                    self.handle(program, socket, meta, datagram, now)?;
                }
            }
        }
        self.buffers = buffers;
        Ok(())
    }

    fn handle(
        &mut self,
        program: &mut impl Program<State = S>,
        socket: usize,
        meta: &RecvMeta,
        datagram: BytesMut,
        now: Instant,
    ) -> io::Result<()> {
        self.output.clear();
        let ecn = meta.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8));
        let output = &mut self.output;
        let response = match self.endpoint.handle(now, meta.addr, meta.dst_ip, ecn, datagram, output) {
            None => return Ok(()),
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(Some(slot)) = self.slots.get_mut(handle.0) {
                    slot.connection.handle_event(event);
                    self.wake(handle.0);
                }
                return Ok(());
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                match self.endpoint.accept(incoming, now, &mut self.output, None) {
                    Ok((handle, connection)) => {
                        self.insert(handle, connection, socket, program.accept());
                        return Ok(());
                    }
                    Err(error) => match error.response {
                        Some(response) => response,
                        None => return Ok(()),
                    },
                }
            }
            Some(DatagramEvent::Response(response)) => response,
        };
        self.sockets[socket].send(&response, &self.output).map(drop)
    }

    fn insert(&mut self, handle: ConnectionHandle, connection: Connection, socket: usize, state: S) {
        if self.slots.len() <= handle.0 {
            self.slots.resize_with(handle.0 + 1, || None);
        }
        self.slots[handle.0] = Some(Box::new(Slot {
            connection,
            state,
            socket,
            timer: None,
            is_pending: false,
        }));
        self.wake(handle.0);
    }

    fn wake(&mut self, index: usize) {
        if let Some(slot) = &mut self.slots[index]
            && !std::mem::replace(&mut slot.is_pending, true)
        {
            self.pending.push(index);
        }
    }

    fn fire_timers(&mut self, now: Instant) {
        while let Some(Reverse((moment, index))) = self.timers.peek().copied()
            && moment <= now
        {
            self.timers.pop();
            let Some(Some(slot)) = self.slots.get_mut(index) else {
                continue;
            };
            // If the moments differ, an earlier one has replaced this one.
            if slot.timer == Some(moment) {
                slot.timer = None;
                // The timeout may have moved to a later moment. `flush` then sets the timer again.
                if slot.connection.poll_timeout().is_some_and(|timeout| timeout <= now) {
                    slot.connection.handle_timeout(now);
                }
                self.wake(index);
            }
        }
    }

    fn process(&mut self, program: &mut impl Program<State = S>, now: Instant) -> io::Result<()> {
        let mut pending = std::mem::take(&mut self.pending);
        for index in pending.drain(..) {
            let Some(mut slot) = self.slots[index].take() else {
                continue;
            };
            slot.is_pending = false;
            program.process(&mut slot.connection, &mut slot.state, now);
            self.flush(index, &mut slot, now)?;
            if !slot.connection.is_drained() {
                self.slots[index] = Some(slot);
            }
        }
        self.pending = pending;
        Ok(())
    }

    /// Sends the datagrams of a connection, and sets its timer.
    fn flush(&mut self, index: usize, slot: &mut Slot<S>, now: Instant) -> io::Result<()> {
        let connection = &mut slot.connection;
        loop {
            self.output.clear();
            let most = MAX_BYTES / usize::from(connection.current_mtu()).max(1);
            let most = most.clamp(1, MAX_SEGMENTS);
            let Some(transmit) = connection.poll_transmit(now, most, &mut self.output) else {
                break;
            };
            if !self.sockets[slot.socket].send(&transmit, &self.output)? {
                self.unsent += 1;
            }
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(reply) = self.endpoint.handle_event(ConnectionHandle(index), event) {
                connection.handle_event(reply);
            }
        }
        if let Some(timeout) = connection.poll_timeout()
            && slot.timer.is_none_or(|timer| timeout < timer)
        {
            slot.timer = Some(timeout);
            self.timers.push(Reverse((timeout, index)));
        }
        Ok(())
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: duration.as_secs() as _,
        tv_nsec: duration.subsec_nanos().into(),
    }
}
