//! Rows that are not measured under load: memory, time to the first response, instructions and system calls. Their
//! figures hardly vary between runs.

use super::client::{get_many, idle as open_idle};
use super::content;
use super::http2::idle as open_idle_http2;
use super::http3;
use super::lane::{Lane, Variant, Version};
use super::machine::descriptor_limit;
use super::measure::{Memory, memory_kib};
use super::programs::Deployment;
use super::row::Page;
use super::run::Run;
use super::server::{ServerProcess, free_port};
use super::table::{Table, table};
use super::timed::median;
use super::upstreams::Upstreams;
use crate::Failure;
use std::any::Any;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Number of starts per server. The median is reported.
const STARTS: usize = 11;
/// Number of idle connections in the memory row, as in the C10K problem.
const IDLE: usize = 10_000;
/// Requests of the shorter of two counting runs. The longer run makes twice as many, and the difference excludes the
/// start of the server. Both stay below the 1,000 requests after which stock nginx closes a connection.
const COUNTED_REQUESTS: usize = 480;
/// Requests of the shorter run when instructions are counted. The server gathers entropy at its start, so the cost of a
/// start varies by half a million instructions between runs. Therefore more requests are needed. No row counts the
/// instructions of nginx, so its limit of 1,000 does not matter here.
const MANY_REQUESTS: usize = 10 * COUNTED_REQUESTS;

/// A running server with its upstreams, after its first response.
pub(super) struct StartedServer {
    pub server: ServerProcess,
    pub port: u16,
    pub scratch: PathBuf,
    /// Time from the creation of the process to the head of the first response.
    milliseconds: f64,
    _upstreams: Upstreams,
}

/// Starts the server of `lane`, prefixed by `wrapper`, and waits for its first response.
pub(super) fn start_one(run: &Run, lane: &Lane, wrapper: &[&str]) -> Result<StartedServer, Failure> {
    let (scratch, page) = (run.site.scratch(lane.name)?, page_of(lane));
    run.site.file(page)?;
    let upstreams = Upstreams::start(&run.site, lane.variant, page)?;
    let port = free_port()?;
    let setting = Deployment {
        port,
        site: &run.site,
        scratch: &scratch,
        page,
        variant: lane.variant,
        scheme: lane.scheme,
        version: lane.version,
        upstreams: &upstreams.ports,
    };
    let launch = lane.server.configure(&setting)?;
    let begin = Instant::now();
    let mut server = ServerProcess::start(lane, &launch, wrapper, &scratch)?;
    let response = server.first_response(lane, port, &path_of(lane), &scratch)?;
    let milliseconds = begin.elapsed().as_secs_f64() * 1e3;
    let expected = content::length(page);
    if expected.is_some() && response.length != expected {
        return Err(format!(
            "responded with status {} and length {:?}",
            response.status, response.length
        )
        .into());
    }
    Ok(StartedServer {
        server,
        port,
        scratch,
        milliseconds,
        _upstreams: upstreams,
    })
}

pub(super) fn hello() -> String {
    format!("/{}", content::name(Page::Hello))
}

/// Returns the requested page of a lane: the small one, as a file or by a script.
fn page_of(lane: &Lane) -> Page {
    match lane.variant {
        Variant::Php | Variant::CachedPhp => Page::Script,
        _ => Page::Hello,
    }
}

fn path_of(lane: &Lane) -> String {
    format!("/{}", content::name(page_of(lane)))
}

/// Measures the time from process start to the first response, and the memory after one response.
pub fn start(run: &Run, lanes: &[Lane]) -> Result<Table, Failure> {
    let note = "Median of 11 starts, from the creation of the process to the head of the first response, polled each 0.2 ms; \
                resident memory after it, summed over processes.";
    let starts = if run.quick { 1 } else { STARTS };
    Ok(table(lanes, &["first response, ms", "resident, MiB"], note, |lane| {
        let (mut times, mut memories) = (Vec::new(), Vec::new());
        for _ in 0..starts {
            let started = start_one(run, lane, &[])?;
            times.push(started.milliseconds);
            memories.push(memory_kib(started.server.pid(), Memory::Resident) as f64 / 1024.0);
        }
        Ok(vec![median(&times), median(&memories)])
    }))
}

/// Measures the memory of idle keep-alive connections that have had one exchange each.
pub fn idle(run: &Run, lanes: &[Lane]) -> Result<Table, Failure> {
    let note = "Resident memory with 10,000 open connections, each after one request, minus the memory after the first request; \
                kernel memory of sockets is not included.";
    let connections = if run.quick { IDLE / 10 } else { IDLE };
    // 100 descriptors are left for everything else.
    if descriptor_limit() < connections as u64 + 100 {
        return Err(format!("{connections} connections need a higher descriptor limit (ulimit -n)").into());
    }
    Ok(table(lanes, &["bytes per connection", "resident, MiB"], note, |lane| {
        if lane.server.connections < connections as u32 {
            return Err(format!(
                "the server's configuration permits {} connections",
                lane.server.connections
            )
            .into());
        }
        let started = start_one(run, lane, &[])?;
        let pid = started.server.pid();
        let open = |count| -> io::Result<Vec<Box<dyn Any>>> {
            Ok(match lane.version {
                Version::Http1 => boxed(open_idle(lane, started.port, &hello(), count)?),
                Version::Http2 => boxed(open_idle_http2(started.port, &hello(), count)?),
                Version::Http3 => boxed(vec![http3::idle(started.port, &hello(), count)?]),
            })
        };
        // The first connections make the server allocate memory that further connections share.
        drop(open(10)?);
        let before = memory_kib(pid, Memory::Resident);
        let opened = open(connections)?;
        let after = memory_kib(pid, Memory::Resident);
        drop(opened);
        let bytes = after.saturating_sub(before) as f64 * 1024.0 / connections as f64;
        Ok(vec![bytes, after as f64 / 1024.0])
    }))
}

/// Boxes connections, so that the connections of all HTTP versions have the same type. The row only keeps them open.
fn boxed<C: 'static>(connections: Vec<C>) -> Vec<Box<dyn Any>> {
    connections
        .into_iter()
        .map(|connection| Box::new(connection) as Box<dyn Any>)
        .collect()
}

/// Counts the user-space instructions of one additional keep-alive request.
pub fn instructions(run: &Run, lanes: &[Lane]) -> Result<Table, Failure> {
    let note = "valgrind --tool=callgrind; one connection; the difference of a run with 9,600 requests and one with 4,800. \
                User space only; the kernel's instructions are not included.";
    Ok(table(lanes, &["instructions"], note, |lane| {
        let count = |requests| -> Result<f64, Failure> {
            let out = run.site.root().with_file_name("callgrind.out");
            let option = format!("--callgrind-out-file={}", out.display());
            let mut started = start_one(run, lane, &["valgrind", "--tool=callgrind", &option])?;
            get_many(lane, started.port, &path_of(lane), requests)?;
            started.server.stop();
            callgrind_total(&fs::read_to_string(&out)?).ok_or_else(|| "no total in callgrind's output".into())
        };
        Ok(vec![
            (count(2 * MANY_REQUESTS)? - count(MANY_REQUESTS)?) / MANY_REQUESTS as f64,
        ])
    }))
}

/// Counts the system calls of one additional keep-alive request, in total and by name.
pub fn system_calls(run: &Run, lanes: &[Lane]) -> Result<Table, Failure> {
    let note = "strace -c; one connection that waits for each response, so that each request needs its own wait; the \
                difference of a run with 960 requests and one with 480.";
    let mut per_server = BTreeMap::new();
    let mut failed = BTreeMap::new();
    for lane in lanes {
        match calls_per_request(run, lane) {
            Ok(calls) => drop(per_server.insert(lane.name, calls)),
            Err(failure) => drop(failed.insert(lane.name, failure.to_string())),
        }
    }
    let mut names: Vec<String> = per_server.values().flat_map(BTreeMap::keys).cloned().collect();
    names.sort();
    names.dedup();
    let mut columns = vec!["all"];
    columns.extend(names.iter().map(String::as_str));
    Ok(table(lanes, &columns, note, |lane| {
        let Some(calls) = per_server.get(lane.name) else {
            return Err(failed.get(lane.name).cloned().unwrap_or_default().into());
        };
        let all = calls.values().sum();
        Ok(std::iter::once(all)
            .chain(names.iter().map(|name| calls.get(name).copied().unwrap_or(0.0)))
            .collect())
    }))
}

fn calls_per_request(run: &Run, lane: &Lane) -> Result<BTreeMap<String, f64>, Failure> {
    let few = strace(run, lane, COUNTED_REQUESTS)?;
    let many = strace(run, lane, 2 * COUNTED_REQUESTS)?;
    let per_request = |name: &String| {
        let difference = many[name] - few.get(name).copied().unwrap_or(0.0);
        difference / COUNTED_REQUESTS as f64
    };
    // Timers may fire in only one of the runs. A call that occurs less than once in a hundred requests therefore does
    // not belong to a request.
    Ok(many
        .keys()
        .map(|name| (name.clone(), per_request(name)))
        .filter(|(_, calls)| *calls >= 0.01)
        .collect())
}

fn strace(run: &Run, lane: &Lane, requests: usize) -> Result<BTreeMap<String, f64>, Failure> {
    let out = run.site.root().with_file_name("strace.out");
    let path = out.display().to_string();
    let mut started = start_one(run, lane, &["strace", "-f", "-c", "-o", &path])?;
    get_many(lane, started.port, &path_of(lane), requests)?;
    started.server.stop();
    strace_calls(&out).map_err(|failure| format!("{failure} ({})", started.scratch.display()).into())
}

fn strace_calls(path: &Path) -> Result<BTreeMap<String, f64>, Failure> {
    let text = fs::read_to_string(path)?;
    let calls = parse_strace(&text);
    if calls.is_empty() {
        Err(format!("no counts in strace's output: {text}").into())
    } else {
        Ok(calls)
    }
}

fn callgrind_total(text: &str) -> Option<f64> {
    let line = |name: &str| text.lines().rev().find_map(|line| line.strip_prefix(name));
    line("totals:")
        .or_else(|| line("summary:"))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

/// Parses calls by name from lines such as ` 55.10    0.001234           1      1000         2 write`.
fn parse_strace(text: &str) -> BTreeMap<String, f64> {
    let mut calls = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (Some(share), Some(count), Some(name)) = (words.first(), words.get(3), words.last()) else {
            continue;
        };
        if let (Ok(_), Ok(count)) = (share.parse::<f64>(), count.parse::<f64>())
            && *name != "total"
        {
            *calls.entry((*name).to_owned()).or_default() += count;
        }
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_parsed_from_callgrind_output() {
        assert_eq!(
            callgrind_total("events: Ir\nfn=main\n1 2\nsummary: 41\ntotals: 42\n"),
            Some(42.0)
        );
        assert_eq!(callgrind_total("summary: 41\n"), Some(41.0));
        assert_eq!(callgrind_total("events: Ir\n"), None);
    }

    #[test]
    fn calls_are_parsed_from_strace_output() {
        let text = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.060000           6     10000           write
 40.00    0.040000           4     10001         7 read
------ ----------- ----------- --------- --------- ----------------
100.00    0.100000           5     20001         7 total
";
        let expected = BTreeMap::from([("read".to_owned(), 10_001.0), ("write".to_owned(), 10_000.0)]);
        assert_eq!(parse_strace(text), expected);
    }
}
