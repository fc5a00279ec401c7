//! Load on an HTTP/3 server: opens connections, sends requests on them, and reports rates and latencies.

mod client;
mod garbage;
mod histogram;
mod report;

use crate::arguments::{Mode, Options};
use crate::event_loop::EventLoop;
use crate::tls::ClientTls;
use crate::udp::Socket;
use client::{ClientState, Load, Stage};
use garbage::Garbage;
use quinn_proto::congestion::CubicConfig;
use quinn_proto::{ClientConfig, Endpoint, EndpointConfig, IdleTimeout, TransportConfig, VarInt};
use std::error::Error;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use report::Report;

/// Maximum connections whose handshake is in progress while the load opens its connections. Servers require a Retry, or
/// refuse connections, above some number.
const OPENING: u32 = 32;
/// Time after which open connections are idle: acknowledgements and probes of the path MTU have been exchanged.
const SETTLING_TIME: Duration = Duration::from_secs(1);
/// Timeout for the line that starts the load.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of a load that ends after a number of requests.
const REQUESTS_TIMEOUT: Duration = Duration::from_secs(120);
/// Time limit for the last datagrams of closed connections.
const CLOSING_TIME: Duration = Duration::from_millis(20);
/// Idle timeout: longer than that of the servers, so that it never ends a connection.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// Receive windows in bytes, as large as those of browsers.
const STREAM_WINDOW: u32 = 6 << 20;
const CONNECTION_WINDOW: u32 = 15 << 20;

/// Runs a load. `ready` is called when all connections are open.
pub fn run(options: &Options, ready: impl FnOnce() -> io::Result<()>) -> Result<Report, Box<dyn Error>> {
    let mut run = Run::new(options)?;
    let is_handshakes = matches!(options.mode, Mode::Handshakes { .. });
    run.open()?;
    run.fail_on_errors()?;
    run.load.stage = Stage::Idle;
    if options.mode == Mode::Idle {
        run.pass(SETTLING_TIME)?;
    }
    if options.waits {
        run.events.watch(io::stdin())?;
        ready()?;
        let deadline = Instant::now() + START_TIMEOUT;
        while !run.events.run_once(&mut run.load, Some(deadline))? {
            if Instant::now() > deadline {
                return Err("the load was not started in time".into());
            }
        }
        // A line may precede the end of the input; it is left unread, and nothing is watched from here on.
        run.events.unwatch(io::stdin())?;
    }
    if options.mode == Mode::Idle {
        let report = run.report(Duration::ZERO);
        run.close()?;
        return Ok(report);
    }
    run.load.stage = Stage::Running;
    if !options.warm_up.is_zero() {
        run.load.reset(u64::MAX);
        run.work(Instant::now() + options.warm_up, is_handshakes)?;
    }
    run.load.reset(options.requests.unwrap_or(u64::MAX));
    let full_before = run.tls.full_handshakes();
    let garbage = options
        .garbage
        .map(|rate| Garbage::start(options.server, rate))
        .transpose()?;
    let begun = Instant::now();
    let time = options.requests.map_or(options.duration, |_| REQUESTS_TIMEOUT);
    run.work(begun + time, is_handshakes)?;
    let mut report = run.report(begun.elapsed());
    if let Some(garbage) = garbage {
        report.garbage = Some(garbage.stop()?);
    }
    if is_handshakes {
        report.full_handshakes = Some(run.tls.full_handshakes() - full_before);
    }
    print(&report)?;
    run.close()?;
    Ok(report)
}

/// Prints the report before the connections are closed, so that their end is not part of a measurement.
fn print(report: &Report) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{}", report.json())?;
    output.flush()
}

/// A load with its event loop.
struct Run<'o> {
    options: &'o Options,
    events: EventLoop<ClientState>,
    load: Load,
    tls: ClientTls,
    config: ClientConfig,
    /// Number of connections that were begun.
    begun: u32,
}

impl<'o> Run<'o> {
    fn new(options: &'o Options) -> Result<Self, Box<dyn Error>> {
        let resumes = matches!(options.mode, Mode::Handshakes { resumed: true });
        let tls = ClientTls::new(resumes)?;
        let mut config = ClientConfig::new(Arc::<quinn_proto::crypto::rustls::QuicClientConfig>::clone(&tls.config));
        config.transport_config(Arc::new(transport()?));
        let local = match options.server.ip() {
            IpAddr::V4(_) => SocketAddr::from(([127, 0, 0, 1], 0)),
            IpAddr::V6(_) => SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, 0)),
        };
        let sockets = (0..options.sockets)
            .map(|_| Socket::bind(local))
            .collect::<Result<_, _>>()?;
        let endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), None, true, None);
        let is_handshakes = matches!(options.mode, Mode::Handshakes { .. });
        Ok(Self {
            options,
            events: EventLoop::new(endpoint, sockets)?,
            load: Load::new(options, is_handshakes),
            tls,
            config,
            begun: 0,
        })
    }

    /// Opens all connections and waits for one response on each.
    fn open(&mut self) -> Result<(), Box<dyn Error>> {
        let deadline = Instant::now() + self.options.timeout;
        while self.load.opened < self.options.connections {
            while self.begun < self.options.connections && self.begun < self.load.opened + OPENING {
                self.connect()?;
            }
            self.events.run_once(&mut self.load, Some(deadline))?;
            if Instant::now() > deadline {
                return Err(format!("{} connections were opened in time", self.load.opened).into());
            }
        }
        Ok(())
    }

    fn connect(&mut self) -> Result<(), Box<dyn Error>> {
        let socket = self.begun % self.options.sockets;
        let Options { server, host, .. } = self.options;
        self.events
            .connect(&self.config, *server, host, socket as usize, ClientState::new())?;
        self.begun += 1;
        Ok(())
    }

    /// Fails if a connection could not be opened.
    fn fail_on_errors(&self) -> Result<(), Box<dyn Error>> {
        match &self.load.reason {
            Some(reason) => Err(reason.clone().into()),
            None => Ok(()),
        }
    }

    /// Loads the server until `deadline`, or until all requests are complete.
    fn work(&mut self, deadline: Instant, is_handshakes: bool) -> Result<(), Box<dyn Error>> {
        self.events.wake_all();
        let counts = |load: &Load| load.counts.requests + load.counts.failures + load.counts.refused;
        let all = self.load.left;
        loop {
            while is_handshakes && self.begun < self.load.closed + self.options.connections && self.load.left > 0 {
                self.connect()?;
            }
            if Instant::now() >= deadline || counts(&self.load) >= all {
                return Ok(());
            }
            self.events.run_once(&mut self.load, Some(deadline))?;
        }
    }

    fn report(&self, time: Duration) -> Report {
        let Load { counts, latencies, .. } = &self.load;
        Report {
            requests: counts.requests,
            bytes: counts.bytes,
            seconds: time.as_secs_f64(),
            failures: counts.failures,
            refused: counts.refused,
            p50_us: latencies.percentile(0.5),
            p99_us: latencies.percentile(0.99),
            full_handshakes: None,
            garbage: None,
            last: self.load.last,
            reason: self.load.reason.clone(),
        }
    }

    fn close(&mut self) -> Result<(), Box<dyn Error>> {
        self.load.stage = Stage::Closing;
        self.events.wake_all();
        self.pass(CLOSING_TIME)
    }

    /// Lets the connections exchange datagrams for some time.
    fn pass(&mut self, time: Duration) -> Result<(), Box<dyn Error>> {
        let deadline = Instant::now() + time;
        while Instant::now() < deadline {
            self.events.run_once(&mut self.load, Some(deadline))?;
        }
        Ok(())
    }
}

fn transport() -> Result<TransportConfig, Box<dyn Error>> {
    let mut transport = TransportConfig::default();
    transport
        .max_idle_timeout(Some(IdleTimeout::try_from(IDLE_TIMEOUT)?))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .receive_window(VarInt::from_u32(CONNECTION_WINDOW))
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .congestion_controller_factory(Arc::new(CubicConfig::default()));
    Ok(transport)
}
