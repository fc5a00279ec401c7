//! The results of a run: gathered row by row, then written as a page, its plots, and JSON for programs.

use super::counted::Table;
use super::goals::GOALS;
use super::machine::Machine;
use super::peers::{Peer, Setting, Variant};
use super::plot::{Bar, Panel, figure, svg};
use super::row::{Page, Row, Work};
use super::timed::Lane;
use super::{LOAD_CORE, Run, SERVER_CORE, load};
use crate::Failure;
use serde::Serialize;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Everything that one run found out.
#[derive(Serialize)]
pub struct Results {
    date: String,
    rounds: usize,
    quick: bool,
    machine: Machine,
    tools: Vec<String>,
    servers: Vec<ServerFacts>,
    missing: Vec<&'static str>,
    rows: Vec<RowResult>,
}

/// A server of the run: version and settings, so that another can make the same run.
#[derive(Serialize)]
struct ServerFacts {
    name: &'static str,
    version: String,
    settings: &'static str,
    configuration: String,
}

#[derive(Serialize)]
struct RowResult {
    name: &'static str,
    group: &'static str,
    title: &'static str,
    /// Costs are per MiB, not per request.
    per_mebibyte: bool,
    #[serde(flatten)]
    outcome: Outcome,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Timed(Vec<Lane>),
    Counted(Table),
    Failed(String),
}

impl Results {
    pub fn new(run: &Run, machine: Machine, missing: &[&'static Peer]) -> Self {
        let servers = run.peers.iter().map(|peer| ServerFacts {
            name: peer.name,
            version: peer.version(),
            settings: peer.settings,
            configuration: configuration(run, peer),
        });
        Self {
            date: jiff::Zoned::now().strftime("%Y-%m-%d").to_string(),
            rounds: run.rounds,
            quick: run.quick,
            machine,
            tools: load::versions(),
            servers: servers.collect(),
            missing: missing.iter().map(|peer| peer.name).collect(),
            rows: Vec::new(),
        }
    }

    pub fn add_timed(&mut self, row: &'static Row, lanes: Vec<Lane>) {
        self.add(row, Outcome::Timed(lanes));
    }

    pub fn add_counted(&mut self, row: &'static Row, table: Table) {
        self.add(row, Outcome::Counted(table));
    }

    pub fn add_failure(&mut self, row: &'static Row, reason: &str) {
        self.add(row, Outcome::Failed(reason.into()));
    }

    fn add(&mut self, row: &'static Row, outcome: Outcome) {
        let per_mebibyte = matches!(&row.work, Work::Load(work) if work.load.counts_bytes());
        self.rows.push(RowResult {
            name: row.name,
            group: row.group,
            title: row.title,
            per_mebibyte,
            outcome,
        });
    }

    fn lane(&self, row: &str, name: &str) -> Option<&Lane> {
        let row = self.rows.iter().find(|found| found.name == row)?;
        let Outcome::Timed(lanes) = &row.outcome else {
            return None;
        };
        lanes.iter().find(|lane| lane.name == name && lane.absent.is_none())
    }

    /// CPU time per request in microseconds.
    pub fn us(&self, row: &str, name: &str) -> Option<f64> {
        Some(self.lane(row, name)?.us)
    }

    /// Ratio to the floor.
    pub fn ratio(&self, row: &str, name: &str) -> Option<f64> {
        Some(self.lane(row, name)?.ratio)
    }

    /// Requests per second.
    pub fn rate(&self, row: &str, name: &str) -> Option<f64> {
        Some(self.lane(row, name)?.rate)
    }

    /// A figure of a counted row.
    pub fn figure(&self, row: &str, name: &str, column: usize) -> Option<f64> {
        let row = self.rows.iter().find(|found| found.name == row)?;
        let Outcome::Counted(table) = &row.outcome else {
            return None;
        };
        table
            .lines
            .iter()
            .find(|line| line.name == name)?
            .figures
            .get(column)
            .copied()
    }

    /// Writes the page, its plots and the JSON into `folder`; returns the page's path.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, Failure> {
        fs::create_dir_all(folder)?;
        let stem = format!("{}-h1", self.date);
        let json = serde_json::to_string_pretty(self)?;
        fs::write(folder.join(format!("{stem}.json")), json + "\n")?;
        let mut groups: Vec<&str> = self.rows.iter().map(|row| row.group).collect();
        groups.dedup();
        let mut page = self.head();
        for group in groups {
            let _ = write!(page, "\n## {group}\n");
            let panels = self.panels(group);
            if panels.iter().any(|panel| !panel.bars.is_empty()) {
                let name = format!("{stem}-{}.svg", group.to_lowercase().replace(' ', "-"));
                fs::write(folder.join(&name), svg(group, &panels))?;
                let _ = write!(page, "\n![{group}]({name})\n");
            }
            for row in self.rows.iter().filter(|row| row.group == group) {
                row.write(&mut page);
            }
        }
        self.write_configurations(&mut page);
        let path = folder.join(format!("{stem}.md"));
        fs::write(&path, page)?;
        Ok(path)
    }

    fn head(&self) -> String {
        let Machine {
            cpu,
            cores,
            memory_gib,
            kernel,
            system,
            load_before,
        } = &self.machine;
        let mut page = format!("# HTTP/1.1, {}\n\n", self.date);
        if self.quick {
            page.push_str("**A quick run: it shows that the bench works and measures nothing.**\n\n");
        }
        let _ = write!(
            page,
            "Made by `cargo xtask bench` in one run on {cores} cores of {cpu}, {memory_gib} GiB, {system}, {kernel}, load \
             average {load_before} before. Servers \
             on core {SERVER_CORE}, load on core {LOAD_CORE}; {} rounds after one that warms up; load by {}. How, and how to \
             read it: [README](README.md).\n\n",
            self.rounds,
            self.tools.join(" and ")
        );
        page.push_str("| server | version | settings |\n|---|---|---|\n");
        for server in &self.servers {
            let _ = writeln!(page, "| {} | {} | {} |", server.name, server.version, server.settings);
        }
        for name in &self.missing {
            let _ = writeln!(page, "| {name} | not installed here, so not measured | |");
        }
        let reached: Vec<_> = GOALS
            .iter()
            .filter_map(|goal| Some((goal, (goal.reached)(self)?)))
            .collect();
        if !reached.is_empty() {
            page.push_str("\n## Goals\n\n| goal | at most | reached | |\n|---|--:|--:|---|\n");
            for (goal, value) in reached {
                let word = if value <= goal.limit { "met" } else { "**missed**" };
                let _ = writeln!(page, "| {} | {} | {} | {word} |", goal.text, goal.limit, figure(value));
            }
        }
        page
    }

    fn panels(&self, group: &str) -> Vec<Panel> {
        self.rows
            .iter()
            .filter(|row| row.group == group)
            .map(RowResult::panel)
            .collect()
    }

    fn write_configurations(&self, page: &mut String) {
        page.push_str("\n## Configurations\n\nAs written for the row of 13 bytes.\n");
        for server in self.servers.iter().filter(|server| !server.configuration.is_empty()) {
            let _ = write!(
                page,
                "\n<details><summary>{}</summary>\n\n```\n{}```\n</details>\n",
                server.name, server.configuration
            );
        }
    }

    /// Prints the goals; an error when a row failed or a server broke requests.
    pub fn verdict(&self) -> Result<(), Failure> {
        for goal in GOALS {
            if let Some(value) = (goal.reached)(self) {
                let word = if value <= goal.limit { "met   " } else { "MISSED" };
                println!("{word} {:>10} (at most {}) {}", figure(value), goal.limit, goal.text);
            }
        }
        let mut wrong = Vec::new();
        for row in &self.rows {
            match &row.outcome {
                Outcome::Failed(reason) => wrong.push(format!("{}: {}", row.name, one_line(reason))),
                // Peers may fail requests: their table says so. Ours may not.
                Outcome::Timed(lanes) => wrong.extend(
                    lanes
                        .iter()
                        .filter(|lane| lane.name.starts_with("rocknet") && (lane.failures > 0 || lane.absent.is_some()))
                        .map(|lane| format!("{}: {} failed {} requests", row.name, lane.name, lane.failures)),
                ),
                Outcome::Counted(_) => {}
            }
        }
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(wrong.join("\n").into())
        }
    }
}

impl RowResult {
    fn panel(&self) -> Panel {
        let title = self.title.to_owned();
        match &self.outcome {
            Outcome::Timed(lanes) => {
                let bars = lanes.iter().filter(|lane| lane.absent.is_none()).map(|lane| Bar {
                    label: lane.name.clone(),
                    value: lane.ratio,
                    spread: Some((lane.ratio_min, lane.ratio_max)),
                });
                let first = lanes.first().map_or("the first", |lane| lane.name.as_str());
                Panel {
                    title,
                    unit: format!("server CPU time, × {first}; line: least to most of the rounds"),
                    bars: bars.collect(),
                }
            }
            Outcome::Counted(table) => {
                let bars = table.lines.iter().filter_map(|line| {
                    Some(Bar {
                        label: line.name.clone(),
                        value: *line.figures.first()?,
                        spread: None,
                    })
                });
                Panel {
                    title,
                    unit: table.columns.first().cloned().unwrap_or_default(),
                    bars: bars.collect(),
                }
            }
            Outcome::Failed(_) => Panel {
                title,
                unit: String::new(),
                bars: Vec::new(),
            },
        }
    }

    fn write(&self, page: &mut String) {
        let _ = write!(page, "\n### {}\n\n", self.title);
        match &self.outcome {
            Outcome::Timed(lanes) => {
                if lanes.is_empty() {
                    page.push_str("No server of this run takes part.\n");
                    return;
                }
                let unit = if self.per_mebibyte { "MiB" } else { "request" };
                let _ = write!(
                    page,
                    "| server | µs CPU per {unit} | ratio | least–most | {unit}s/s | core busy | p99 | failed | peak RSS |\n\
                     |---|--:|--:|--:|--:|--:|--:|--:|--:|\n"
                );
                for lane in lanes {
                    write_lane(page, lane);
                }
                for lane in lanes {
                    // A lane without figures has told its reason in its line.
                    if let (Some(reason), None) = (&lane.retried, &lane.absent) {
                        let _ = write!(
                            page,
                            "\n{} was loaded twice in a round: {}\n",
                            lane.name,
                            one_line(reason)
                        );
                    }
                }
            }
            Outcome::Counted(table) => {
                let _ = writeln!(page, "| server | {} |", table.columns.join(" | "));
                let _ = writeln!(page, "|---|{}", "--:|".repeat(table.columns.len()));
                for line in &table.lines {
                    let cells: Vec<String> = line.figures.iter().map(|value| figure(*value)).collect();
                    let absent = line.absent.as_deref().unwrap_or_default().replace('|', "/");
                    let _ = writeln!(page, "| {} | {}{} |", line.name, cells.join(" | "), one_line(&absent));
                }
                let _ = write!(page, "\n{}\n", table.note);
            }
            Outcome::Failed(reason) => {
                let _ = writeln!(page, "Not measured: {}", one_line(reason));
            }
        }
    }
}

fn write_lane(page: &mut String, lane: &Lane) {
    if let Some(reason) = &lane.absent {
        let _ = writeln!(page, "| {} | {} | | | | | | | |", lane.name, one_line(reason));
        return;
    }
    let _ = writeln!(
        page,
        "| {} | {} | {:.3} | {:.3}–{:.3} | {} | {:.0} % | {} | {} | {} MiB |",
        lane.name,
        figure(lane.us),
        lane.ratio,
        lane.ratio_min,
        lane.ratio_max,
        figure(lane.rate),
        lane.busy * 100.0,
        lane.p99_ms.map_or("–".into(), |p99| format!("{} ms", figure(p99))),
        lane.failures,
        figure(lane.peak_kib as f64 / 1024.0)
    );
}

/// A reason fit for a cell of a table.
fn one_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().replace('|', "/")
}

/// The configuration a server gets for the plainest row, with the places of this run taken out.
fn configuration(run: &Run, peer: &Peer) -> String {
    let Ok(scratch) = run.site.scratch("report") else {
        return String::new();
    };
    let setting = Setting {
        port: 8080,
        site: &run.site,
        scratch: &scratch,
        page: Page::Hello,
        variant: Variant::Plain,
    };
    let text = peer
        .configure(&setting)
        .map_or_else(|failure| format!("{failure}\n"), |launch| launch.configuration);
    let root = run.site.root().display().to_string();
    text.replace(&root, "/srv/site")
        .replace(&scratch.display().to_string(), "/tmp/server")
}

#[cfg(test)]
mod tests;
