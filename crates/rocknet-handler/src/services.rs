//! Services that a worker lends to handlers: clock, timers, pools, limiters, and the state that handlers keep per
//! worker.

use std::any::{Any, TypeId};
use std::cell::{Cell, OnceCell, RefCell};
use std::hash::BuildHasher;
use std::rc::Rc;

pub use rocknet_blocking::{Job, Pool};
use rocknet_io::socket::Address;
use rocknet_io::tls::TlsBuffers;
use rocknet_io::wheel::Wheel;
use rocknet_proto::response::ResponseIndex;

use crate::clock::Clock;
use crate::spool;
use crate::start_limiter::{self, StartLimiter};

/// Size of the receive buffer for back ends, in bytes. A response up to this size can be received by one read.
const RECEIVE_BUFFER: usize = 64 * 1024;

/// Services that a worker lends to handlers. The value belongs to one thread; its pool and its spool are shared.
pub struct Services {
    /// Address of the worker's listener.
    pub address: Address,
    /// Time of the last tick.
    pub clock: Clock,
    /// Timer wheel.
    pub wheel: Rc<Wheel>,
    /// Threads for blocking work.
    pub pool: Pool,
    /// Store of request bodies that are received completely before they are passed on.
    pub spool: spool::Store,
    /// Limits TLS handshakes per iteration of the event loop.
    pub handshake_limiter: StartLimiter,
    /// Limits `connect` calls to back ends per iteration of the event loop.
    pub connect_limiter: StartLimiter,
    /// Buffers of TLS connections, created with the first connection.
    tls: OnceCell<Rc<TlsBuffers>>,
    /// Receive buffer for back ends, borrowed for one read.
    pub receive_buffer: RefCell<ReceiveBuffer>,
    /// State of [`Services::random`]; 0 until the first call.
    random_state: Cell<u64>,
    /// Values of the handlers, at most one of each type.
    locals: RefCell<Vec<(TypeId, Rc<dyn WorkerLocal>)>>,
}

/// State that a handler keeps for each worker, such as idle connections to back ends.
pub trait WorkerLocal: Any {
    /// Called once per tick while the worker has connections, with the uptime in milliseconds.
    fn tick(&self, _now_ms: u64) {}

    /// Releases memory and descriptors. Called when the worker's last connection has closed.
    fn release(&self) {}
}

/// A receive buffer, with an index for the fields of a head.
#[derive(Default)]
pub struct ReceiveBuffer {
    /// Buffer of 64 KiB; empty until [`ReceiveBuffer::allocated`] is called.
    pub bytes: Box<[u8]>,
    /// Positions of the fields of a response head.
    pub index: ResponseIndex,
}

impl ReceiveBuffer {
    /// Returns the buffer, and allocates it first if necessary.
    pub fn allocated(&mut self) -> &mut ReceiveBuffer {
        if self.bytes.is_empty() {
            self.bytes = vec![0; RECEIVE_BUFFER].into_boxed_slice();
        }
        self
    }
}

impl Services {
    /// Creates the services of a worker.
    pub fn new(address: Address, clock: Clock, wheel: Rc<Wheel>, pool: Pool, spool: spool::Store) -> Services {
        Services {
            address,
            clock,
            wheel,
            pool,
            spool,
            handshake_limiter: StartLimiter::new(start_limiter::MAX_HANDSHAKES),
            connect_limiter: StartLimiter::new(start_limiter::MAX_CONNECTS),
            tls: OnceCell::new(),
            receive_buffer: RefCell::default(),
            random_state: Cell::new(0),
            locals: RefCell::default(),
        }
    }

    /// Returns the buffers that the TLS connections of the worker share.
    pub fn tls_buffers(&self) -> &Rc<TlsBuffers> {
        self.tls.get_or_init(|| TlsBuffers::new(&self.wheel))
    }

    /// Adds the worker's value of type `T`.
    pub fn add<T: WorkerLocal>(&self, local: Rc<T>) {
        self.locals.borrow_mut().push((TypeId::of::<T>(), local));
    }

    /// Returns the worker's value of type `T`; `None` if none was added. The search is linear, because there are two or
    /// three values.
    pub fn get<T: WorkerLocal>(&self) -> Option<Rc<T>> {
        let locals = self.locals.borrow();
        let (_, local) = locals.iter().find(|(id, _)| *id == TypeId::of::<T>())?;
        let local: Rc<dyn Any> = Rc::<dyn WorkerLocal>::clone(local);
        local.downcast().ok()
    }

    /// Returns the worker's value of type `T`, and creates it at the first call.
    pub fn local<T: WorkerLocal + Default>(&self) -> Rc<T> {
        self.get().unwrap_or_else(|| {
            let local = Rc::<T>::default();
            self.add(Rc::clone(&local));
            local
        })
    }

    /// Returns a random number for choices that may be predictable (xorshift64*). Not for secrets.
    pub fn random(&self) -> u64 {
        let mut state = match self.random_state.get() {
            // The seed differs in each worker and process. It must not be zero, because zero would yield only zeros.
            0 => foldhash::fast::RandomState::default().hash_one(0) | 1,
            state => state,
        };
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        self.random_state.set(state);
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Runs the periodic work of all handlers. Called by the worker once per tick.
    pub fn tick(&self) {
        let now_ms = self.clock.uptime_ms();
        self.each(|local| local.tick(now_ms));
    }

    /// Releases everything that is kept for later requests. Called by the worker when its last connection has closed.
    pub fn release(&self) {
        self.each(WorkerLocal::release);
        *self.receive_buffer.borrow_mut() = ReceiveBuffer::default();
    }

    fn each(&self, work: impl Fn(&dyn WorkerLocal)) {
        // Iterates by index, because `work` may add a value.
        for number in 0.. {
            let Some(local) = self.locals.borrow().get(number).map(|(_, local)| Rc::clone(local)) else {
                return;
            };
            work(&*local);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::TimeSource;

    fn services() -> Services {
        let (wheel, pool) = (Wheel::new(std::time::Duration::from_millis(100), 1), Pool::new(1));
        let address = Address::Unix("/none".into());
        Services::new(
            address,
            Clock::new(TimeSource::System),
            wheel,
            pool.clone(),
            spool::Store::new(pool),
        )
    }

    #[derive(Default)]
    struct Ticks(Cell<u32>);

    impl WorkerLocal for Ticks {
        fn tick(&self, _: u64) {
            self.0.set(self.0.get() + 1);
        }
    }

    #[derive(Default)]
    struct Other;

    impl WorkerLocal for Other {}

    #[test]
    fn each_type_has_one_value_in_a_worker() {
        let worker = services();
        worker.local::<Other>();
        let ticks = worker.local::<Ticks>();
        worker.tick();
        worker.tick();
        assert_eq!(ticks.0.get(), 2);
        assert!(Rc::ptr_eq(&ticks, &worker.local::<Ticks>()));
        assert_eq!(services().local::<Ticks>().0.get(), 0);
    }

    #[test]
    fn random_numbers_differ_within_and_between_workers() {
        let one = services();
        let drawn: std::collections::HashSet<u64> = (0..100).map(|_| one.random()).collect();
        assert_eq!(drawn.len(), 100);
        assert_ne!(services().random(), services().random());
    }
}
