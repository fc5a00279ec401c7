//! Measures how fast Chromium loads a page of 60 resources over a network with delay and loss, by version of HTTP.
//!
//! Both ends of the network have a TCP/IP stack of the kernel, and the relay between them carries their IP packets. So
//! a lost packet is a loss for TCP and for QUIC alike. A relay that joins two TCP connections could lose nothing.

mod link;
mod path;
mod relay;
mod tun;
mod waterfall;

use super::browser::content;
use super::browser::visit::{Browser, Protocol, Visit};
use super::content::Certificate;
use super::counted::{StartedServer, start_one};
use super::lane::{Lane, Version};
use super::run::Run;
use super::table::{Picture, Table, table};
use super::timed::median;
use super::variant::KeyKind;
use crate::Failure;
use crate::command::{command, output};
use path::{NetworkPath, SERVER_ADDRESS};
use std::cell::RefCell;
use std::sync::atomic::Ordering;
use std::time::Duration;
use waterfall::VisitPanel;

/// Name in the certificates of the run.
const HOST: &str = "localhost";
/// Seed of the losses of the first round. The next rounds use the next numbers.
const SEED: u64 = 20_261_127;

const NOTE: &str = "Milliseconds since the start of the navigation, medians of the rounds: the last style sheet has arrived, \
                    DOMContentLoaded (all scripts have run), and load (all images have arrived), the latter also as least \
                    and most. KB: bodies as transferred. Full queue: packets towards the client that were dropped because \
                    the queue of the link was full, beside those that were lost at random.";

/// Network of a row, and the lanes whose visits are drawn.
#[derive(Clone, Copy)]
struct Case {
    round_trip: Duration,
    /// Probability that a packet is lost, in each direction.
    loss: f64,
    drawn: &'static [&'static str],
}

/// One visit, and the number of packets that the full queue of the link dropped.
struct MeasuredVisit {
    visit: Visit,
    dropped: u64,
}

/// Measures visits with a round-trip time in milliseconds and a loss in percent.
pub fn visits<const ROUND_TRIP: u64, const LOSS: u32>(run: &Run, lanes: &[Lane]) -> Result<Table, Failure> {
    measure(run, lanes, Case::new(ROUND_TRIP, LOSS))
}

/// Measures as [`visits`] does, and explains the figures below the table.
pub fn explained_visits<const ROUND_TRIP: u64, const LOSS: u32>(run: &Run, lanes: &[Lane]) -> Result<Table, Failure> {
    let table = visits::<ROUND_TRIP, LOSS>(run, lanes)?;
    Ok(Table { note: NOTE, ..table })
}

/// Measures as [`visits`] does, and draws the visits of some lanes.
pub fn drawn_visits<const ROUND_TRIP: u64, const LOSS: u32>(run: &Run, lanes: &[Lane]) -> Result<Table, Failure> {
    measure(
        run,
        lanes,
        Case {
            drawn: &["rocknet-h3", "rocknet-h2", "rocknet-h1", "caddy-h3"],
            ..Case::new(ROUND_TRIP, LOSS)
        },
    )
}

impl Case {
    fn new(round_trip: u64, loss: u32) -> Case {
        Case {
            round_trip: Duration::from_millis(round_trip),
            loss: f64::from(loss) / 100.0,
            drawn: &[],
        }
    }
}

fn measure(run: &Run, lanes: &[Lane], case: Case) -> Result<Table, Failure> {
    let browser = Browser::find()?;
    content::create(&run.site.root())?;
    let key = format!(
        "--ignore-certificate-errors-spki-list={}",
        key_hash(&run.site.certificate(KeyKind::Ecdsa)?)?
    );
    let columns = [
        "styles, ms",
        "DOMContentLoaded, ms",
        "load, ms",
        "least",
        "most",
        "KB",
        "full queue",
    ];
    let medians = RefCell::new(Vec::new());
    let mut table = table(lanes, &columns, "", |lane| {
        let started = start_one(run, lane, &[])?;
        let visit = |case, round| visit(&browser, lane, &started, case, round, &key);
        // The warm-up is a visit without loss. RockNet compresses text when it is first requested.
        let _ = visit(Case::new(20, 0), 0)?;
        let visits = (1..=run.rounds as u64).map(|round| visit(case, round));
        let mut visits = visits.collect::<Result<Vec<_>, _>>()?;
        let of = |figure: fn(&MeasuredVisit) -> f64| median(&visits.iter().map(figure).collect::<Vec<_>>());
        let loads = || visits.iter().map(|measured| measured.visit.loaded);
        let figures = vec![
            of(|measured| measured.visit.last_blocking()),
            of(|measured| measured.visit.parsed),
            of(|measured| measured.visit.loaded),
            loads().fold(f64::INFINITY, f64::min),
            loads().fold(0.0, f64::max),
            of(|measured| measured.visit.bytes() as f64 / 1e3),
            of(|measured| measured.dropped as f64),
        ];
        visits.sort_by(|one, other| one.visit.loaded.total_cmp(&other.visit.loaded));
        let middle = visits.swap_remove(visits.len() / 2).visit;
        medians.borrow_mut().push((lane.name, middle));
        Ok(figures)
    });
    let medians = medians.into_inner();
    let panels: Vec<VisitPanel<'_>> = case
        .drawn
        .iter()
        .filter_map(|name| medians.iter().find(|(lane, _)| lane == name))
        .map(|(label, visit)| VisitPanel { label, visit })
        .collect();
    if !panels.is_empty() {
        let title = format!(
            "A visit with the median load time: {} ms, {} % of loss",
            case.round_trip.as_millis(),
            case.loss * 100.0
        );
        table.pictures.push(Picture {
            name: "waterfall".into(),
            svg: waterfall::svg(&title, &panels),
            title,
        });
    }
    Ok(table)
}

/// Makes a visit over a new network path. All visits of a round have the same losses.
fn visit(
    browser: &Browser,
    lane: &Lane,
    started: &StartedServer,
    case: Case,
    round: u64,
    key: &str,
) -> Result<MeasuredVisit, Failure> {
    let protocol = match lane.version {
        Version::Http1 => Protocol::Http1,
        Version::Http2 => Protocol::Http2,
        Version::Http3 => Protocol::Http3,
    };
    let path = NetworkPath::create(case.round_trip, case.loss, SEED + round)?;
    let resolve = format!("--host-resolver-rules=MAP {HOST} {SERVER_ADDRESS}");
    let visit = browser.visit(&path.at_client(), (HOST, started.port), protocol, &[key, &resolve])?;
    Ok(MeasuredVisit {
        visit,
        dropped: path.to_client.dropped.load(Ordering::Relaxed),
    })
}

/// Returns the hash of the certificate's key, by which Chromium can be made to accept it, also over QUIC.
fn key_hash(certificate: &Certificate) -> Result<String, Failure> {
    let pipeline = "openssl x509 -pubkey -noout -in \"$0\" | openssl pkey -pubin -outform der | \
                    openssl dgst -sha256 -binary | openssl base64";
    let hash = output(command("sh").args(["-c", pipeline]).arg(&certificate.chain))?;
    match hash.trim() {
        // Base64 of 32 bytes.
        hash if hash.len() == 44 => Ok(hash.to_owned()),
        other => Err(format!("no hash of {}: {other}", certificate.chain.display()).into()),
    }
}
