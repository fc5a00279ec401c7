//! HTTP/1.1 without TLS, compared with most other servers of the bench.

use super::Group;
use crate::bench::goals::Figure::{Beside, Counted, More, Rates, Ratio};
use crate::bench::goals::{Goal, goal};
use crate::bench::lane::{APACHE, FLOOR, FLOOR_FILE, H2O, LIGHTTPD, Lane, NGINX, NGINX_STOCK, ROCKNET, Variant};
use crate::bench::load::Load;
use crate::bench::row::Page::{File, Hello, Missing};
use crate::bench::row::{GIB, KIB, MIB, Row, count, load};
use crate::bench::{counted, metrics_cost};

pub const GROUP: Group = Group {
    name: "h1",
    title: "HTTP/1.1",
    rows: ROWS,
    goals: GOALS,
};

const ALL_SERVERS: &[Lane] = &[FLOOR, ROCKNET, H2O, LIGHTTPD, NGINX, NGINX_STOCK, APACHE];
/// The unit of file rows is the floor that sends a file. The floor that sends 13 bytes is measured too.
const FILES: &[Lane] = &[FLOOR_FILE, FLOOR, ROCKNET, H2O, LIGHTTPD, NGINX, NGINX_STOCK, APACHE];
/// The floor that sends 13 bytes is left out, because it does not show the cost of a MiB.
const BULK: &[Lane] = &[FLOOR_FILE, ROCKNET, H2O, LIGHTTPD, NGINX, NGINX_STOCK, APACHE];
const OURS: &[Lane] = &[FLOOR, ROCKNET];
const LOGGED: Lane = rocknet("rocknet-log", Variant::AccessLog);
const ONE_SITE: Lane = rocknet("rocknet-1-site", Variant::Sites(1));
const MANY_SITES: Lane = rocknet("rocknet-10000-sites", Variant::Sites(10_000));

const fn rocknet(name: &'static str, variant: Variant) -> Lane {
    Lane {
        name,
        variant,
        ..ROCKNET
    }
}

const SMALL: &str = "Small responses";
const CONNECTIONS: &str = "Many connections";
const CONTENT: &str = "Files";
const SETTINGS: &str = "Settings";
const AB: &str = "A connection per request";
const COUNTED: &str = "Counted";

#[rustfmt::skip] // A table is read by its columns.
const ROWS: &[Row] = &[
    load(SMALL, ALL_SERVERS, ("keepalive", "13 bytes, 64 keep-alive connections", Load::wrk(64), Hello)),
    load(SMALL, ALL_SERVERS, ("pipelined", "13 bytes, 64 connections, 16 requests in one write", Load::pipelined(64), Hello)),
    load(SMALL, ALL_SERVERS, ("missing", "404, 64 keep-alive connections", Load::wrk(64), Missing)),
    load(CONNECTIONS, ALL_SERVERS, ("connections-500", "13 bytes, 500 connections", Load::wrk(500), Hello)),
    load(CONNECTIONS, ALL_SERVERS, ("connections-10k", "13 bytes, 10,000 connections", Load::wrk(10_000), Hello)),
    load(CONTENT, FILES, ("file-10k", "10 KB file, 64 connections", Load::wrk(64), File(10 * KIB))),
    load(CONTENT, FILES, ("file-40k", "40 KB file, 64 connections", Load::wrk(64), File(40 * KIB))),
    load(CONTENT, FILES, ("file-80k", "80 KB file, 64 connections", Load::wrk(64), File(80 * KIB))),
    load(CONTENT, FILES, ("file-1m", "1 MB file, 64 connections", Load::wrk(64), File(MIB))),
    // Few connections, because a row in which no download completes would count only bytes of incomplete responses.
    load(CONTENT, BULK, ("file-1g", "1 GB file, 4 connections, cost per MiB", Load::bulk(4), File(GIB))),
    load(SETTINGS, &[ROCKNET, LOGGED], ("access-log", "13 bytes, 64 connections, access log off and on", Load::wrk(64), Hello)),
    load(SETTINGS, &[ONE_SITE, MANY_SITES], ("sites", "13 bytes, 64 connections, 1 and 10,000 named sites", Load::wrk(64), Hello)),
    load(AB, ALL_SERVERS, ("ab-500", "ab: 5,000 requests, 500 at once, 13 bytes", Load::ab(5_000, 500), Hello)),
    load(AB, FILES, ("ab-10k", "ab: 100,000 requests, 10 at once, 10 KB", Load::ab(100_000, 10), File(10 * KIB))),
    load(AB, FILES, ("ab-40k", "ab: 100,000 requests, 10 at once, 40 KB", Load::ab(100_000, 10), File(40 * KIB))),
    load(AB, FILES, ("ab-80k", "ab: 100,000 requests, 10 at once, 80 KB", Load::ab(100_000, 10), File(80 * KIB))),
    count(COUNTED, ALL_SERVERS, ("start", "From start to the first response, and memory then", counted::start)),
    count(COUNTED, ALL_SERVERS, ("idle", "Memory of 10,000 idle keep-alive connections", counted::idle)),
    count(COUNTED, OURS, ("instructions", "Instructions per keep-alive request, by callgrind", counted::instructions)),
    count(COUNTED, &[ROCKNET], ("metrics", "CPU time of the metrics of a ready response", metrics_cost::of_a_response)),
    count(COUNTED, ALL_SERVERS, ("system-calls", "System calls per keep-alive request, by strace", counted::system_calls)),
];

const US: &str = ROCKNET.name;

#[rustfmt::skip] // A table is read by its columns.
const GOALS: &[Goal] = &[
    goal("keep-alive, × floor", 1.05, Ratio("keepalive", US)),
    goal("keep-alive, × H2O", 1.0, Beside("keepalive", US, H2O.name)),
    goal("pipelined, × floor", 1.3, Ratio("pipelined", US)),
    goal("404, × nginx", 1.0, Beside("missing", US, NGINX.name)),
    goal("10 KB file, × nginx", 1.0, Beside("file-10k", US, NGINX.name)),
    goal("40 KB file, × nginx", 1.0, Beside("file-40k", US, NGINX.name)),
    goal("80 KB file, × nginx", 1.0, Beside("file-80k", US, NGINX.name)),
    goal("1 MB file, × nginx", 1.0, Beside("file-1m", US, NGINX.name)),
    goal("1 GB file, × nginx", 1.0, Beside("file-1g", US, NGINX.name)),
    // The rate with 10,000 connections must be within 10 % of the rate with 500.
    goal("requests/s of 500 connections, × those of 10,000", 1.11, Rates(("connections-500", US), ("connections-10k", US))),
    goal("access log, µs a request", 0.4, More("access-log", LOGGED.name, US)),
    goal("metrics of a ready response, µs", 0.1, Counted("metrics", US, 0)),
    goal("metrics of a ready response of 2,000 routes, µs", 0.1, Counted("metrics", US, 1)),
    // The cost must not depend on the number of sites, as far as one core and its CPU caches can show.
    goal("10,000 sites, × one site", 1.05, Beside("sites", MANY_SITES.name, ONE_SITE.name)),
    goal("ab, 500 at once: requests/s of Apache, × ours", 1.0, Rates(("ab-500", APACHE.name), ("ab-500", US))),
    goal("ab, 10 KB: requests/s of Apache, × ours", 1.0, Rates(("ab-10k", APACHE.name), ("ab-10k", US))),
    goal("ab, 40 KB: requests/s of Apache, × ours", 1.0, Rates(("ab-40k", APACHE.name), ("ab-40k", US))),
    goal("ab, 80 KB: requests/s of Apache, × ours", 1.0, Rates(("ab-80k", APACHE.name), ("ab-80k", US))),
    goal("first response, ms", 50.0, Counted("start", US, 0)),
    goal("resident after it, MiB", 8.0, Counted("start", US, 1)),
    goal("memory of an idle connection, bytes", 1024.0, Counted("idle", US, 0)),
    goal("system calls per request", 3.05, Counted("system-calls", US, 0)),
];
