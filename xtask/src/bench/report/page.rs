//! Writes the page of a run in Markdown.

use super::{Machine, Measured, Outcome, Results, RowResult, one_line};
use crate::bench::cores::{LOAD_CORE, SERVER_CORE};
use crate::bench::plot::figure;
use std::fmt::Write as _;

impl Results {
    /// Returns the part before the rows: machine, servers and goals.
    pub(super) fn head(&self) -> String {
        let Machine {
            cpu,
            cores,
            memory_gib,
            kernel,
            system,
            congestion_control,
            load_before,
        } = &self.machine;
        let mut page = format!("# {}, {}\n\n", self.group.title, self.date);
        if self.quick {
            page.push_str("**A quick run: it checks that the bench works and measures nothing.**\n\n");
        }
        let _ = write!(
            page,
            "Made by `cargo xtask bench` in one run on {cores} cores of {cpu}, {memory_gib} GiB, {system}, {kernel}, \
             congestion control {congestion_control} on loopback, load average {load_before} before. Servers \
             on core {SERVER_CORE}, load on core {LOAD_CORE}; {} rounds after one for warm-up; load by {}. For method and \
             reading: [README](README.md).\n\n",
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
        let reached = self.reached();
        if !reached.is_empty() {
            page.push_str("\n## Goals\n\n| goal | at most | reached | |\n|---|--:|--:|---|\n");
            for (goal, value) in reached {
                let word = if value <= goal.limit { "met" } else { "**missed**" };
                let _ = writeln!(page, "| {} | {} | {} | {word} |", goal.text, goal.limit, figure(value));
            }
        }
        page
    }

    /// Writes the part after the rows.
    pub(super) fn write_configurations(&self, page: &mut String) {
        page.push_str("\n## Configurations\n\nAs written for the row of 13 bytes.\n");
        for server in self.servers.iter().filter(|server| !server.configuration.is_empty()) {
            let _ = write!(
                page,
                "\n<details><summary>{}</summary>\n\n```\n{}```\n</details>\n",
                server.name, server.configuration
            );
        }
    }
}

impl RowResult {
    pub(super) fn write(&self, page: &mut String) {
        let _ = write!(page, "\n### {}\n\n", self.title);
        match &self.outcome {
            Outcome::Timed(lanes) => {
                if lanes.is_empty() {
                    page.push_str("No server of this run takes part in this row.\n");
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
                    // The line of a lane without figures already contains the reason.
                    if let (Some(reason), None) = (&lane.retried, &lane.absent) {
                        let _ = write!(page, "\na round of {} was repeated: {}\n", lane.name, one_line(reason));
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
                if !table.note.is_empty() {
                    let _ = write!(page, "\n{}\n", table.note);
                }
            }
            Outcome::Failed(reason) => {
                let _ = writeln!(page, "Not measured: {}", one_line(reason));
            }
        }
    }
}

fn write_lane(page: &mut String, lane: &Measured) {
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
