//! Compares this checkout with another build of RockNet, whose path is in the variable `ROCKNET_BEFORE`, to measure the
//! cost of a change.

use super::Group;
use crate::bench::counted;
use crate::bench::goals::Figure::{Beside, Counted, CountedBeside};
use crate::bench::goals::{Goal, goal};
use crate::bench::lane::{Lane, ROCKNET, ROCKNET_BEFORE, by_fastcgi, http2, proxied};
use crate::bench::load::Load;
use crate::bench::row::Page::{File, Hello};
use crate::bench::row::{Row, count, load};

pub const GROUP: Group = Group {
    name: "builds",
    title: "Two builds",
    rows: ROWS,
    goals: GOALS,
};

/// The other build is the unit of the ratios.
const PLAIN: &[Lane] = &[ROCKNET_BEFORE, ROCKNET];
const MULTIPLEXED: &[Lane] = &[http2(ROCKNET_BEFORE), http2(ROCKNET)];
const PROXIED: &[Lane] = &[proxied(ROCKNET_BEFORE, 1), proxied(ROCKNET, 1)];
const FASTCGI: &[Lane] = &[by_fastcgi(ROCKNET_BEFORE), by_fastcgi(ROCKNET)];

const READY: &str = "Ready responses";
const BACK_ENDS: &str = "Back ends";
const COUNTED: &str = "Counted";

#[rustfmt::skip] // A table is read by its columns.
const ROWS: &[Row] = &[
    load(READY, PLAIN, ("build-keepalive", "13 bytes, 64 keep-alive connections", Load::wrk(64), Hello)),
    load(READY, PLAIN, ("build-pipelined", "13 bytes, 64 connections, 16 requests in one write", Load::pipelined(64), Hello)),
    load(READY, PLAIN, ("build-file-10k", "10 KB file, 64 connections", Load::wrk(64), File(10 * 1024))),
    load(READY, MULTIPLEXED, ("build-h2-streams", "HTTP/2: 13 bytes, 16 connections of 32 streams", Load::h2load(16, 32), Hello)),
    load(READY, MULTIPLEXED, ("build-h2-single", "HTTP/2: 13 bytes, 64 connections of 1 stream", Load::h2load(64, 1), Hello)),
    load(BACK_ENDS, PROXIED, ("build-proxy", "13 bytes, 64 connections, one upstream", Load::wrk(64), Hello)),
    load(BACK_ENDS, FASTCGI, ("build-fastcgi", "FastCGI: 13 bytes, 64 connections", Load::wrk(64), Hello)),
    count(COUNTED, PLAIN, ("build-instructions", "Instructions per keep-alive request, by callgrind", counted::instructions)),
    count(COUNTED, MULTIPLEXED, ("build-h2-instructions", "HTTP/2: instructions per request, by callgrind", counted::instructions)),
    count(COUNTED, PLAIN, ("build-system-calls", "System calls per keep-alive request, by strace", counted::system_calls)),
    count(COUNTED, PLAIN, ("build-idle", "Memory of 10,000 idle keep-alive connections", counted::idle)),
    count(COUNTED, MULTIPLEXED, ("build-h2-idle", "HTTP/2: memory of 10,000 idle connections", counted::idle)),
];

const US: &str = ROCKNET.name;
const BEFORE: &str = ROCKNET_BEFORE.name;

#[rustfmt::skip] // A table is read by its columns.
const GOALS: &[Goal] = &[
    goal("keep-alive, × before", 1.05, Beside("build-keepalive", US, BEFORE)),
    goal("pipelined, × before", 1.05, Beside("build-pipelined", US, BEFORE)),
    goal("10 KB file, × before", 1.05, Beside("build-file-10k", US, BEFORE)),
    goal("HTTP/2, 32 streams, × before", 1.05, Beside("build-h2-streams", US, BEFORE)),
    goal("HTTP/2, 1 stream, × before", 1.05, Beside("build-h2-single", US, BEFORE)),
    goal("proxy, × before", 1.05, Beside("build-proxy", US, BEFORE)),
    goal("FastCGI, × before", 1.05, Beside("build-fastcgi", US, BEFORE)),
    goal("instructions, × before", 1.03, CountedBeside("build-instructions", US, BEFORE, 0)),
    goal("HTTP/2, instructions, × before", 1.03, CountedBeside("build-h2-instructions", US, BEFORE, 0)),
    goal("system calls, × before", 1.01, CountedBeside("build-system-calls", US, BEFORE, 0)),
    goal("memory of an idle connection, bytes", 850.0, Counted("build-idle", US, 0)),
];
