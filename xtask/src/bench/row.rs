//! The rows of the bench: what is asked of the servers, how, and of which of them.

use super::Run;
use super::counted::{self, Table};
use super::load::Load;
use super::peers::Variant;
use crate::Failure;

/// One row: a question that is put to all servers alike.
pub struct Row {
    pub name: &'static str,
    /// Rows of one group share a section and a plot.
    pub group: &'static str,
    pub title: &'static str,
    pub work: Work,
}

pub enum Work {
    /// Load from one core, the server's CPU time per request on the other.
    Load(Timed),
    /// Something counted instead of timed.
    Count(fn(&Run) -> Result<Table, Failure>),
}

/// A row under load.
pub struct Timed {
    pub load: Load,
    pub page: Page,
    pub field: Field,
}

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Page {
    /// 13 bytes of HTML.
    Hello,
    /// A file of so many bytes.
    File(u64),
    /// What no site has.
    Missing,
}

/// Who takes part.
pub enum Field {
    Everyone,
    /// RockNet alone, in these variants.
    RockNet(&'static [Variant]),
}

const SMALL: &str = "Small answers";
const CONNECTIONS: &str = "Many connections";
const FILES: &str = "Files";
const SETTINGS: &str = "Settings";
const AB: &str = "A connection per request";
const COUNTED: &str = "Counted";

pub const KIB: u64 = 1 << 10;
pub const MIB: u64 = 1 << 20;
pub const GIB: u64 = 1 << 30;

const fn load(
    name: &'static str,
    group: &'static str,
    title: &'static str,
    load: Load,
    page: Page,
    field: Field,
) -> Row {
    Row {
        name,
        group,
        title,
        work: Work::Load(Timed { load, page, field }),
    }
}

const fn count(name: &'static str, title: &'static str, work: fn(&Run) -> Result<Table, Failure>) -> Row {
    Row {
        name,
        group: COUNTED,
        title,
        work: Work::Count(work),
    }
}

use Field::{Everyone, RockNet};
use Page::{File, Hello, Missing};

pub const ROWS: &[Row] = &[
    load(
        "keepalive",
        SMALL,
        "13 bytes, 64 keep-alive connections",
        Load::wrk(64),
        Hello,
        Everyone,
    ),
    load(
        "pipelined",
        SMALL,
        "13 bytes, 64 connections, 16 requests in one write",
        Load::pipelined(64),
        Hello,
        Everyone,
    ),
    load(
        "missing",
        SMALL,
        "404, 64 keep-alive connections",
        Load::wrk(64),
        Missing,
        Everyone,
    ),
    load(
        "connections-500",
        CONNECTIONS,
        "13 bytes, 500 connections",
        Load::wrk(500),
        Hello,
        Everyone,
    ),
    load(
        "connections-10k",
        CONNECTIONS,
        "13 bytes, 10,000 connections",
        Load::wrk(10_000),
        Hello,
        Everyone,
    ),
    load(
        "file-10k",
        FILES,
        "10 KB file, 64 connections",
        Load::wrk(64),
        File(10 * KIB),
        Everyone,
    ),
    load(
        "file-40k",
        FILES,
        "40 KB file, 64 connections",
        Load::wrk(64),
        File(40 * KIB),
        Everyone,
    ),
    load(
        "file-80k",
        FILES,
        "80 KB file, 64 connections",
        Load::wrk(64),
        File(80 * KIB),
        Everyone,
    ),
    load(
        "file-1m",
        FILES,
        "1 MB file, 64 connections",
        Load::wrk(64),
        File(MIB),
        Everyone,
    ),
    // Few connections, for a row in which no download ever ended would count nothing but bytes of broken answers.
    load(
        "file-1g",
        FILES,
        "1 GB file, 4 connections, cost per MiB",
        Load::bulk(4),
        File(GIB),
        Everyone,
    ),
    load(
        "access-log",
        SETTINGS,
        "13 bytes, 64 connections, access log off and on",
        Load::wrk(64),
        Hello,
        RockNet(&[Variant::Plain, Variant::AccessLog]),
    ),
    load(
        "sites",
        SETTINGS,
        "13 bytes, 64 connections, 1 and 10,000 named sites",
        Load::wrk(64),
        Hello,
        RockNet(&[Variant::Sites(1), Variant::Sites(10_000)]),
    ),
    load(
        "ab-500",
        AB,
        "ab: 5,000 requests, 500 at once, 13 bytes",
        Load::ab(5_000, 500),
        Hello,
        Everyone,
    ),
    load(
        "ab-10k",
        AB,
        "ab: 100,000 requests, 10 at once, 10 KB",
        Load::ab(100_000, 10),
        File(10 * KIB),
        Everyone,
    ),
    load(
        "ab-40k",
        AB,
        "ab: 100,000 requests, 10 at once, 40 KB",
        Load::ab(100_000, 10),
        File(40 * KIB),
        Everyone,
    ),
    load(
        "ab-80k",
        AB,
        "ab: 100,000 requests, 10 at once, 80 KB",
        Load::ab(100_000, 10),
        File(80 * KIB),
        Everyone,
    ),
    count(
        "start",
        "From start to the first answer, and memory then",
        counted::start,
    ),
    count("idle", "Memory of 10,000 idle keep-alive connections", counted::idle),
    count(
        "instructions",
        "Instructions per keep-alive request, by callgrind",
        counted::instructions,
    ),
    count(
        "system-calls",
        "System calls per keep-alive request, by strace",
        counted::system_calls,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_groups_stand_together() {
        let mut names = HashSet::new();
        let mut groups = Vec::new();
        for row in ROWS {
            assert!(names.insert(row.name), "{} twice", row.name);
            if groups.last() != Some(&row.group) {
                assert!(!groups.contains(&row.group), "{} is split", row.group);
                groups.push(row.group);
            }
        }
    }
}
