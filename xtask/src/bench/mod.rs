//! `cargo xtask bench`: compares RockNet with other servers on one machine in one run, by server CPU time per request.
//!
//! Throughput on a shared machine depends more on the other tenants than on the server. Therefore each server is pinned
//! to one core, loaded from another core, and charged the CPU time that the kernel counted for it. All servers of a row
//! take turns within each round. The figure to quote is the ratio to the floor program in the same round.

mod browser;
mod client;
mod cold;
mod content;
mod cores;
mod count;
mod counted;
mod downloads;
mod echo;
mod flood;
mod garbage;
mod goals;
mod group;
mod http2;
mod http3;
mod lane;
mod late;
mod lists;
mod load;
mod machine;
mod measure;
mod metrics_cost;
mod network;
mod page;
mod plot;
mod programs;
mod report;
mod row;
mod run;
mod server;
mod slow_link;
mod slow_network;
mod table;
mod target;
mod timed;
mod tunnels;
mod upstreams;
mod variant;

pub use self::server::free_port;

use crate::command::{cargo, run as run_command};
use crate::packages::{self, Purpose};
use crate::tools::{CADDY, build_oha};
use crate::{Failure, repository};
use cores::LOAD_CORE;
use group::Group;
use lane::Lane;
use report::{Results, is_page};
use row::{Row, Work};
use run::Run;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Options {
    /// Groups of rows, each with its own page; all by default (`--list` shows them)
    groups: Vec<String>,
    /// Only these rows, by name
    #[arg(long, value_name = "ROW", value_delimiter = ',')]
    only: Vec<String>,
    /// Only the floor and these lanes, by the name of the lane or of its server
    #[arg(long, value_name = "LANE", value_delimiter = ',')]
    lanes: Vec<String>,
    /// Measured rounds, after one for warm-up
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// One short round per row: checks that the bench works and measures nothing
    #[arg(long)]
    quick: bool,
    /// Measure existing builds, so that no compiler runs while the machine is kept quiet
    #[arg(long)]
    built: bool,
    /// A folder for the pages, or a page ending in .md; by default docs/bench for whole groups, else target/bench
    #[arg(long, value_name = "PATH")]
    write: Option<PathBuf>,
    /// Load of the machine before the run; set when the run continues in a network namespace
    #[arg(long, hide = true, value_name = "LOAD")]
    own_network: Option<f64>,
    /// List the groups, their rows and their lanes, and stop
    #[arg(long)]
    list: bool,
}

/// Selected rows of a group.
struct Selection {
    group: &'static Group,
    rows: Vec<&'static Row>,
}

impl Selection {
    fn has_caddy(&self) -> bool {
        self.lanes().any(|lane| lane.server.name == lane::CADDY.name)
    }

    fn has_http3(&self) -> bool {
        self.lanes().any(|lane| lane.version == lane::Version::Http3)
    }

    /// Returns true if a server must be reachable from another network namespace, as from another host.
    fn has_other_hosts(&self) -> bool {
        self.lanes().any(|lane| lane.variant == lane::Variant::Public)
    }

    fn lanes(&self) -> impl Iterator<Item = &'static Lane> {
        self.rows.iter().flat_map(|row| row.lanes)
    }
}

/// Load average up to which the cores count as idle.
const QUIET_LOAD: f64 = 0.3;

pub fn run(options: &Options) -> Result<(), Failure> {
    if options.list {
        list();
        return Ok(());
    }
    let chosen = choose(&options.groups, &options.only)?;
    check_lanes(&options.lanes)?;
    if chosen.len() > 1 && options.write.as_deref().is_some_and(is_page) {
        return Err("--write names one page, but the rows belong to several groups: name a folder".into());
    }
    machine::require_two_cores()?;
    if options.own_network.is_some() {
        network::set_up()?;
    }
    packages::require(Purpose::Bench)?;
    packages::install_optional(Purpose::Competitors);
    // The load is read before the compilers of this run make the machine busy.
    let mut machine = machine::Machine::read();
    machine.load_before = options.own_network.unwrap_or(machine.load_before);
    if machine.load_before > QUIET_LOAD {
        println!(
            "the machine is busy (load {}), which distorts the figures",
            machine.load_before
        );
    }
    if options.built {
        is_built(&chosen)?;
    } else {
        if chosen.iter().any(Selection::has_caddy) {
            CADDY.build_optional();
        }
        if chosen.iter().any(Selection::has_http3) {
            programs::h3::build()?;
            build_oha();
        }
        build()?;
    }
    let has_other_hosts = chosen.iter().any(Selection::has_other_hosts);
    if options.own_network.is_none() && network::is_namespace_needed(has_other_hosts) {
        return network::run_in_namespace(options.built, machine.load_before);
    }
    machine::raise_descriptor_limit();
    machine::pin_to(LOAD_CORE)?;

    let run = Run {
        rounds: if options.quick { 1 } else { options.rounds.max(1) },
        quick: options.quick,
        lanes: options.lanes.clone(),
        site: content::Site::create()?,
    };
    let mut wrong = Vec::new();
    for chosen in &chosen {
        let results = measure_group(&run, chosen, machine.clone());
        let whole = chosen.rows.len() == chosen.group.rows.len() && run.lanes.is_empty() && !run.quick;
        let place = match &options.write {
            Some(place) => place.clone(),
            None if whole => repository::root().join("docs/bench"),
            None => repository::target().join("bench"),
        };
        println!("\nwrote {}", results.write(&place)?.display());
        if let Err(failure) = results.verdict() {
            wrong.push(failure.to_string());
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n").into())
    }
}

fn measure_group(run: &Run, chosen: &Selection, machine: machine::Machine) -> Results {
    let mut results = Results::new(run, chosen.group, machine);
    for row in &chosen.rows {
        println!("\n== {}: {}", row.name, row.title);
        let lanes = run.chosen(row.lanes);
        let outcome = match &row.work {
            Work::Load(work) => timed::run(run, work, &lanes).map(|lanes| results.add_timed(row, lanes)),
            Work::Count(count) => count(run, &lanes).map(|table| results.add_counted(row, table)),
        };
        if let Err(failure) = outcome {
            eprintln!("{}: {failure}", row.name);
            results.add_failure(row, &failure.to_string());
        }
    }
    results
}

fn list() {
    for group in group::ALL {
        println!("{}: {}", group.name, group.title);
        for row in group.rows {
            println!("  {:20} {}", row.name, row.title);
        }
        let mut names: Vec<_> = group
            .rows
            .iter()
            .flat_map(|row| row.lanes)
            .map(|lane| lane.name)
            .collect();
        names.sort_unstable();
        names.dedup();
        println!("  lanes: {}", names.join(", "));
    }
}

/// Returns the selected rows by group. An empty list selects everything.
fn choose(groups: &[String], only: &[String]) -> Result<Vec<Selection>, Failure> {
    let selected = |group: &&Group| groups.is_empty() || groups.iter().any(|name| name == group.name);
    let known = |name: &&String| group::ALL.iter().any(|group| group.name == **name);
    if let Some(name) = groups.iter().find(|name| !known(name)) {
        return Err(format!("no group {name:?}: see cargo xtask bench --list").into());
    }
    let rows = || group::ALL.iter().filter(selected).flat_map(|group| group.rows);
    if let Some(name) = only.iter().find(|name| !rows().any(|row| row.name == **name)) {
        return Err(format!("no row {name:?}: see cargo xtask bench --list").into());
    }
    let chosen = group::ALL.iter().filter(selected).map(|group| Selection {
        group,
        rows: group
            .rows
            .iter()
            .filter(|row| only.is_empty() || only.iter().any(|name| name == row.name))
            .collect(),
    });
    Ok(chosen.filter(|chosen| !chosen.rows.is_empty()).collect())
}

fn check_lanes(names: &[String]) -> Result<(), Failure> {
    let lanes = || group::ALL.iter().flat_map(|group| group.rows).flat_map(|row| row.lanes);
    match names.iter().find(|name| !lanes().any(|lane| lane.is_called(name))) {
        Some(name) => Err(format!("no lane {name:?}: see cargo xtask bench --list").into()),
        None => Ok(()),
    }
}

/// Fails if a program of this checkout is not built. Its rows would have no figures, or ratios to another server.
fn is_built(chosen: &[Selection]) -> Result<(), Failure> {
    let is_optional = |lane: &Lane| lane.server.name == lane::ROCKNET_BEFORE.server.name;
    let is_ours = |lane: &Lane| lane.server.is_floor() || lane.server.name.starts_with(lane::ROCKNET.name);
    let lanes = chosen.iter().flat_map(Selection::lanes);
    let missing = lanes.filter(|lane| is_ours(lane) && !is_optional(lane) && lane.server.path().is_none());
    let mut missing: Vec<_> = missing.map(|lane| lane.server.name).collect();
    missing.sort_unstable();
    missing.dedup();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("not built: {}; run again without --built", missing.join(", ")).into())
    }
}

fn build() -> Result<(), Failure> {
    let manifest = repository::root().join("bench/floor/Cargo.toml");
    run_command(
        cargo()
            .args([
                "build",
                "--locked",
                "--quiet",
                "--profile",
                &programs::profile(),
                "--manifest-path",
            ])
            .arg(manifest)
            .arg("--target-dir")
            .arg(programs::floor::target()),
    )?;
    run_command(cargo().args([
        "build",
        "--locked",
        "--profile",
        &programs::profile(),
        "-p",
        "rocknet",
        "--bins",
        "--example",
        "echo",
        "--example",
        "metrics_cost",
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_chosen_by_group_and_by_name() {
        let rows: [(&[&str], &[&str], &str); 6] = [
            (&["tls"], &[], "tls:9"),
            (&[], &["keepalive", "io-keepalive"], "h1:1 io:1"),
            (&["h1"], &["keepalive", "missing"], "h1:2"),
            (
                &["h1"],
                &["io-keepalive"],
                "no row \"io-keepalive\": see cargo xtask bench --list",
            ),
            (&["h9"], &[], "no group \"h9\": see cargo xtask bench --list"),
            (&[], &["keepalive", "x"], "no row \"x\": see cargo xtask bench --list"),
        ];
        for (groups, only, expected) in rows {
            let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
            let outcome = match choose(&owned(groups), &owned(only)) {
                Ok(chosen) => {
                    let one = |chosen: &Selection| format!("{}:{}", chosen.group.name, chosen.rows.len());
                    chosen.iter().map(one).collect::<Vec<_>>().join(" ")
                }
                Err(failure) => failure.to_string(),
            };
            assert_eq!(outcome, expected, "{groups:?} {only:?}");
        }
    }

    #[test]
    fn lanes_are_chosen_by_their_names_and_their_servers() {
        let run = Run {
            rounds: 1,
            quick: true,
            lanes: vec!["rocknet-log".into(), "nginx".into()],
            site: content::Site::create().expect("a site"),
        };
        for (lane, expected) in [
            (lane::FLOOR, true),
            (lane::NGINX, true),
            (lane::ROCKNET, false),
            (lane::H2O, false),
        ] {
            assert_eq!(run.wants(&lane), expected, "{}", lane.name);
        }
        let log = group::h1::GROUP
            .rows
            .iter()
            .flat_map(|row| row.lanes)
            .find(|lane| lane.name == "rocknet-log");
        assert!(run.wants(log.expect("a lane")));
        assert!(check_lanes(&run.lanes).is_ok());
        assert!(check_lanes(&["iis".to_owned()]).is_err());
    }
}
