//! Collects the results of a run, and writes them as a page with charts and as JSON for programs.

mod figures;
mod page;

use super::goals::Goal;
use super::group::Group;
use super::lane::{Lane, Variant};
use super::load;
use super::machine::Machine;
use super::plot::{Bar, Panel, figure, svg};
use super::programs::Deployment;
use super::row::{Page, Row};
use super::run::Run;
use super::table::{Picture, Table};
use super::timed::Measured;
use crate::Failure;
use serde::{Serialize, Serializer};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Results of one run for the rows of one group.
#[derive(Serialize)]
pub struct Results {
    #[serde(serialize_with = "by_name")]
    group: &'static Group,
    date: String,
    rounds: usize,
    quick: bool,
    machine: Machine,
    tools: Vec<String>,
    servers: Vec<ServerDescription>,
    missing: Vec<&'static str>,
    rows: Vec<RowResult>,
}

/// Version and options of a server, so that the run can be repeated elsewhere.
#[derive(Serialize)]
struct ServerDescription {
    name: &'static str,
    version: String,
    settings: String,
    configuration: String,
}

#[derive(Serialize)]
struct RowResult {
    name: &'static str,
    section: &'static str,
    title: &'static str,
    /// True if costs are per MiB instead of per request.
    per_mebibyte: bool,
    #[serde(flatten)]
    outcome: Outcome,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Timed(Vec<Measured>),
    Counted(Table),
    Failed(String),
}

impl Results {
    pub fn new(run: &Run, group: &'static Group, machine: Machine) -> Self {
        // Describes each lane once. Lanes of variants that are not listed here are left out, because their names show
        // the option that differs.
        let mut lanes: Vec<Lane> = Vec::new();
        let all = group.rows.iter().flat_map(|row| row.lanes);
        for lane in all.filter(|lane| {
            let is_described = matches!(
                lane.variant,
                Variant::Plain
                    | Variant::Public
                    | Variant::Proxied(_)
                    | Variant::Cached
                    | Variant::Spread(_)
                    | Variant::Tunnels
                    | Variant::FastCgi
                    | Variant::CachedPhp
            );
            is_described && run.wants(lane)
        }) {
            if !lanes.iter().any(|known| known.name == lane.name) {
                lanes.push(*lane);
            }
        }
        let (installed, missing): (Vec<Lane>, Vec<Lane>) =
            lanes.into_iter().partition(|lane| lane.server.path().is_some());
        let servers = installed.iter().map(|lane| ServerDescription {
            name: lane.name,
            version: lane.server.version(),
            settings: lane.settings(),
            configuration: configuration(run, lane),
        });
        Self {
            group,
            date: jiff::Zoned::now().strftime("%Y-%m-%d").to_string(),
            rounds: run.rounds,
            quick: run.quick,
            machine,
            tools: load::versions(),
            servers: servers.collect(),
            missing: missing.iter().map(|lane| lane.name).collect(),
            rows: Vec::new(),
        }
    }

    pub fn add_timed(&mut self, row: &'static Row, lanes: Vec<Measured>) {
        self.add(row, Outcome::Timed(lanes));
    }

    pub fn add_counted(&mut self, row: &'static Row, table: Table) {
        self.add(row, Outcome::Counted(table));
    }

    pub fn add_failure(&mut self, row: &'static Row, reason: &str) {
        self.add(row, Outcome::Failed(reason.into()));
    }

    fn add(&mut self, row: &'static Row, outcome: Outcome) {
        self.rows.push(RowResult {
            name: row.name,
            section: row.section,
            title: row.title,
            per_mebibyte: row.counts_bytes(),
            outcome,
        });
    }

    fn lane(&self, row: &str, name: &str) -> Option<&Measured> {
        let row = self.rows.iter().find(|found| found.name == row)?;
        let Outcome::Timed(lanes) = &row.outcome else {
            return None;
        };
        lanes.iter().find(|lane| lane.name == name && lane.absent.is_none())
    }

    /// Returns the CPU time per request (or per MiB) in microseconds.
    pub fn us(&self, row: &str, name: &str) -> Option<f64> {
        Some(self.lane(row, name)?.us)
    }

    /// Returns the ratio to the first server of the row.
    pub fn ratio(&self, row: &str, name: &str) -> Option<f64> {
        Some(self.lane(row, name)?.ratio)
    }

    /// Returns the requests (or MiB) per second.
    pub fn rate(&self, row: &str, name: &str) -> Option<f64> {
        Some(self.lane(row, name)?.rate)
    }

    /// Returns a figure of a counted row.
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

    /// Writes the page, its charts and the JSON, and returns the path of the page. If `place` ends in `.md`, the page
    /// is written to this path. Otherwise `place` is a folder, and the page is named after the date and the group.
    pub fn write(&self, place: &Path) -> Result<PathBuf, Failure> {
        let (folder, stem) = match place.file_stem().filter(|_| is_page(place)) {
            Some(stem) => (
                place.parent().unwrap_or(Path::new("")),
                stem.to_string_lossy().into_owned(),
            ),
            None => (place, format!("{}-{}", self.date, self.group.name)),
        };
        fs::create_dir_all(folder)?;
        let json = serde_json::to_string_pretty(self)?;
        fs::write(folder.join(format!("{stem}.json")), json + "\n")?;
        let mut sections: Vec<&str> = self.rows.iter().map(|row| row.section).collect();
        sections.dedup();
        let mut page = self.head();
        for section in sections {
            let _ = write!(page, "\n## {section}\n");
            let panels = self.panels(section);
            if panels.iter().any(|panel| !panel.bars.is_empty()) {
                let name = format!("{stem}-{}.svg", file_name(section));
                fs::write(folder.join(&name), svg(section, &panels))?;
                let _ = write!(page, "\n![{section}]({name})\n");
            }
            for row in self.rows.iter().filter(|row| row.section == section) {
                row.write(&mut page);
                for picture in row.pictures() {
                    let name = format!("{stem}-{}.svg", picture.name);
                    fs::write(folder.join(&name), &picture.svg)?;
                    let _ = write!(page, "\n![{}]({name})\n", picture.title);
                }
            }
        }
        self.write_configurations(&mut page);
        let path = folder.join(format!("{stem}.md"));
        fs::write(&path, page)?;
        Ok(path)
    }

    /// Returns the goals of the rows that were run, each with its figure.
    fn reached(&self) -> Vec<(&'static Goal, f64)> {
        let goals = self.group.goals.iter();
        goals
            .filter_map(|goal| Some((goal, self.value(goal.figure)?)))
            .collect()
    }

    fn panels(&self, section: &str) -> Vec<Panel> {
        self.rows
            .iter()
            .filter(|row| row.section == section)
            .map(RowResult::panel)
            .collect()
    }

    /// Prints the goals. Fails if a row failed, or if RockNet has no figures or failed requests.
    pub fn verdict(&self) -> Result<(), Failure> {
        for (goal, value) in self.reached() {
            let word = if value <= goal.limit { "met   " } else { "MISSED" };
            println!("{word} {:>10} (at most {}) {}", figure(value), goal.limit, goal.text);
        }
        let mut wrong = Vec::new();
        for row in &self.rows {
            match &row.outcome {
                Outcome::Failed(reason) => wrong.push(format!("{}: {}", row.name, one_line(reason))),
                // A failure of another server is only shown in its table. A failure of RockNet fails the run.
                Outcome::Timed(lanes) => {
                    for lane in lanes.iter().filter(|lane| lane.name.starts_with("rocknet")) {
                        if let Some(reason) = &lane.absent {
                            wrong.push(format!("{}: {}: {}", row.name, lane.name, one_line(reason)));
                        } else if lane.failures > 0 {
                            wrong.push(format!("{}: {} failed {} requests", row.name, lane.name, lane.failures));
                        }
                    }
                }
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
    fn pictures(&self) -> &[Picture] {
        match &self.outcome {
            Outcome::Counted(table) => &table.pictures,
            Outcome::Timed(_) | Outcome::Failed(_) => &[],
        }
    }

    fn panel(&self) -> Panel {
        let title = self.title.to_owned();
        match &self.outcome {
            Outcome::Timed(lanes) => {
                let bars = lanes.iter().filter(|lane| lane.absent.is_none()).map(|lane| Bar {
                    label: lane.name.clone(),
                    value: lane.ratio,
                    spread: Some((lane.ratio_min, lane.ratio_max)),
                });
                let first = lanes.iter().find(|lane| lane.absent.is_none());
                let first = first.map_or("the first", |lane| lane.name.as_str());
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
}

/// Returns a section's name in a form for file names: `A connection per request` becomes `a-connection-per-request`.
fn file_name(section: &str) -> String {
    let words = section.split(|letter: char| !letter.is_ascii_alphanumeric());
    words
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join("-")
        .to_lowercase()
}

/// Returns the first line of a reason without `|`, so that it fits into a table cell.
fn one_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().replace('|', "/")
}

/// Returns true if the path names a page instead of a folder for pages.
pub fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "md")
}

fn by_name<S: Serializer>(group: &&'static Group, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(group.name)
}

/// Ports of upstreams in configurations that are only shown.
const PORTS: [u16; 8] = [9001, 9002, 9003, 9004, 9005, 9006, 9007, 9008];

/// Returns the configuration of a server for the simplest row, without the paths of this run.
fn configuration(run: &Run, lane: &Lane) -> String {
    let Ok(scratch) = run.site.scratch("report") else {
        return String::new();
    };
    let setting = Deployment {
        port: 8080,
        site: &run.site,
        scratch: &scratch,
        page: Page::Hello,
        variant: lane.variant,
        scheme: lane.scheme,
        version: lane.version,
        upstreams: &PORTS[..PORTS.len().min(lane.variant.upstreams() as usize)],
    };
    let text = lane
        .server
        .configure(&setting)
        .map_or_else(|failure| format!("{failure}\n"), |launch| launch.configuration);
    let root = run.site.root();
    let text = text
        .replace(&root.display().to_string(), "/srv/site")
        .replace(&scratch.display().to_string(), "/tmp/server");
    // The certificates of the run are beside the document root.
    match root.parent() {
        Some(folder) => text.replace(&folder.display().to_string(), "/tmp/server"),
        None => text,
    }
}

#[cfg(test)]
mod tests;
