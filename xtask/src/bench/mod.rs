//! `cargo xtask bench`: RockNet beside other servers on the same machine in the same run, in server CPU time per request.
//!
//! Throughput on a shared machine tells more of its other tenants than of a server, so each server is pinned to one core,
//! loaded from the other, and charged the CPU time the kernel counted for it. All servers of a row take turns within each
//! round, and the ratio to the floor program in the same round is the figure to quote.

mod client;
mod content;
mod counted;
mod goals;
mod load;
mod machine;
mod measure;
mod peers;
mod plot;
mod report;
mod row;
mod server;
mod timed;

use crate::command::{cargo, run as run_command};
use crate::packages::{self, Chore};
use crate::{Failure, repository};
use peers::Peer;
use report::Results;
use row::{ROWS, Row, Work};
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Options {
    /// Only these rows, by name (`--list` shows them)
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Rounds that count, after one that warms up
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only these servers beside the floor
    #[arg(long, value_delimiter = ',')]
    peers: Vec<String>,
    /// One short round a row: shows that the bench works, measures nothing
    #[arg(long)]
    quick: bool,
    /// Where the results go; a whole run writes docs/bench, any other target/bench
    #[arg(long)]
    out: Option<PathBuf>,
    /// Name the rows and the servers, and stop
    #[arg(long)]
    list: bool,
}

/// All that a row needs to know of the run it is part of.
pub struct Run {
    pub rounds: usize,
    pub quick: bool,
    pub peers: Vec<&'static Peer>,
    /// The document root, and beside it a folder for each server's own files.
    pub site: content::Site,
}

/// The core that every server runs on, and the one for the load. A server that could use more shows it elsewhere.
pub const SERVER_CORE: usize = 0;
pub const LOAD_CORE: usize = 1;
/// Load average up to which nobody else can be said to use the cores.
const QUIET_LOAD: f64 = 0.3;
/// How many cores that takes.
pub const CORES: usize = 2;

pub fn run(options: &Options) -> Result<(), Failure> {
    if options.list {
        list();
        return Ok(());
    }
    let rows = choose_rows(&options.only)?;
    let chosen = choose_peers(&options.peers)?;
    machine::require_two_cores()?;
    packages::need(Chore::Bench)?;
    packages::offer(Chore::Peers);
    // Before our own compilers make the machine busy.
    let machine = machine::Machine::look();
    if machine.load_before > QUIET_LOAD {
        println!(
            "the machine is busy (load {}): the figures will tell of that too",
            machine.load_before
        );
    }
    build(&chosen)?;
    machine::raise_descriptor_limit();
    machine::stay_on(LOAD_CORE)?;

    let (peers, missing) = chosen.into_iter().partition(|peer: &&Peer| peer.program().is_some());
    let rounds = if options.quick { 1 } else { options.rounds.max(1) };
    let run = Run {
        rounds,
        quick: options.quick,
        peers,
        site: content::Site::create()?,
    };
    let mut results = Results::new(&run, machine, &missing);
    for row in &rows {
        println!("\n== {}: {}", row.name, row.title);
        let outcome = match &row.work {
            Work::Load(work) => timed::run(&run, work).map(|lanes| results.add_timed(row, lanes)),
            Work::Count(count) => count(&run).map(|table| results.add_counted(row, table)),
        };
        if let Err(failure) = outcome {
            eprintln!("{}: {failure}", row.name);
            results.add_failure(row, &failure.to_string());
        }
    }
    let whole = rows.len() == ROWS.len() && options.peers.is_empty() && !options.quick;
    let folder = match &options.out {
        Some(folder) => folder.clone(),
        None if whole => repository::root().join("docs/bench"),
        None => repository::target().join("bench"),
    };
    let written = results.write(&folder)?;
    println!("\nwrote {}", written.display());
    results.verdict()
}

fn list() {
    for row in ROWS {
        println!("{:16} {}", row.name, row.title);
    }
    let names: Vec<_> = peers::ALL.iter().map(|peer| peer.name).collect();
    println!("servers: {}", names.join(", "));
}

fn choose_rows(only: &[String]) -> Result<Vec<&'static Row>, Failure> {
    for name in only {
        if !ROWS.iter().any(|row| row.name == name) {
            return Err(format!("no row {name:?}: see cargo xtask bench --list").into());
        }
    }
    Ok(ROWS
        .iter()
        .filter(|row| only.is_empty() || only.iter().any(|name| name == row.name))
        .collect())
}

fn choose_peers(only: &[String]) -> Result<Vec<&'static Peer>, Failure> {
    for name in only {
        if !peers::ALL.iter().any(|peer| peer.name == name) {
            return Err(format!("no server {name:?}: see cargo xtask bench --list").into());
        }
    }
    let chosen = |peer: &&Peer| only.is_empty() || peer.is_floor() || only.iter().any(|name| name == peer.name);
    Ok(peers::ALL.iter().filter(chosen).collect())
}

fn build(peers: &[&Peer]) -> Result<(), Failure> {
    let manifest = repository::root().join("bench/floor/Cargo.toml");
    run_command(
        cargo()
            .args(["build", "--release", "--locked", "--quiet", "--manifest-path"])
            .arg(manifest)
            .arg("--target-dir")
            .arg(peers::floor::target()),
    )?;
    if peers.iter().any(|peer| peer.name == peers::rocknet::PEER.name) {
        run_command(cargo().args(["build", "--release", "--locked", "-p", "rocknet"]))?;
    }
    Ok(())
}
