//! Files of 256 KB to 1 GB over one to 64 connections: without TLS, with TLS and over HTTP/2, on both I/O back ends.

use super::Group;
use super::io::{EPOLL, RING};
use crate::bench::goals::Figure::{Beside, Rates};
use crate::bench::goals::{Goal, goal};
use crate::bench::lane::{FLOOR_FILE, H2O, LIGHTTPD, Lane, NGINX, http2, over_tls};
use crate::bench::load::Load;
use crate::bench::row::Page::File;
use crate::bench::row::{GIB, KIB, MIB, Row, load};

pub const GROUP: Group = Group {
    name: "files",
    title: "Large files",
    rows: ROWS,
    goals: GOALS,
};

const CLEAR: &[Lane] = &[FLOOR_FILE, EPOLL, RING, NGINX, H2O, LIGHTTPD];
/// nginx is the unit, because lighttpd is not configured for TLS here and no floor program supports TLS.
const TLS: &[Lane] = &[over_tls(NGINX), over_tls(EPOLL), over_tls(RING), over_tls(H2O)];
const HTTP2: &[Lane] = &[http2(H2O), http2(EPOLL), http2(RING), http2(NGINX)];

const IN_CLEAR: &str = "Without TLS";
const OVER_TLS: &str = "Under TLS";
const STREAMS: &str = "HTTP/2 without TLS";

#[rustfmt::skip] // A table is read by its columns.
const ROWS: &[Row] = &[
    load(IN_CLEAR, CLEAR, ("files-256k-16", "256 KB file, 16 connections", Load::wrk(16), File(256 * KIB))),
    load(IN_CLEAR, CLEAR, ("files-256k-64", "256 KB file, 64 connections", Load::wrk(64), File(256 * KIB))),
    load(IN_CLEAR, CLEAR, ("files-1m-1", "1 MB file, one connection", Load::wrk(1), File(MIB))),
    load(IN_CLEAR, CLEAR, ("files-1m-2", "1 MB file, 2 connections", Load::wrk(2), File(MIB))),
    load(IN_CLEAR, CLEAR, ("files-1m-4", "1 MB file, 4 connections", Load::wrk(4), File(MIB))),
    load(IN_CLEAR, CLEAR, ("files-1m-16", "1 MB file, 16 connections", Load::wrk(16), File(MIB))),
    load(IN_CLEAR, CLEAR, ("files-1m-64", "1 MB file, 64 connections", Load::wrk(64), File(MIB))),
    load(IN_CLEAR, CLEAR, ("files-10m-1", "10 MB file, one connection", Load::wrk(1), File(10 * MIB))),
    load(IN_CLEAR, CLEAR, ("files-10m-16", "10 MB file, 16 connections", Load::wrk(16), File(10 * MIB))),
    load(IN_CLEAR, CLEAR, ("files-1g-4", "1 GB file, 4 connections, cost per MiB", Load::bulk(4), File(GIB))),
    load(OVER_TLS, TLS, ("files-tls-1m-1", "1 MB file, one connection", Load::wrk(1), File(MIB))),
    load(OVER_TLS, TLS, ("files-tls-1m-16", "1 MB file, 16 connections", Load::wrk(16), File(MIB))),
    load(OVER_TLS, TLS, ("files-tls-1m-64", "1 MB file, 64 connections", Load::wrk(64), File(MIB))),
    load(OVER_TLS, TLS, ("files-tls-1g-4", "1 GB file, 4 connections, cost per MiB", Load::bulk(4), File(GIB))),
    load(STREAMS, HTTP2, ("files-h2-1m-1", "1 MB file, one connection of one stream", Load::h2load(1, 1), File(MIB))),
    load(STREAMS, HTTP2, ("files-h2-1m-16", "1 MB file, 16 connections of one stream", Load::h2load(16, 1), File(MIB))),
    load(STREAMS, HTTP2, ("files-h2-10m-4", "10 MB file, 4 connections of 4 streams", Load::h2load(4, 4), File(10 * MIB))),
];

#[rustfmt::skip] // A table is read by its columns.
const GOALS: &[Goal] = &[
    goal("1 MB, 16 connections, CPU time × lighttpd", 1.0, Beside("files-1m-16", EPOLL.name, LIGHTTPD.name)),
    goal("1 MB, 64 connections, CPU time × lighttpd", 1.0, Beside("files-1m-64", EPOLL.name, LIGHTTPD.name)),
    goal("1 MB, 64 connections, CPU time × nginx", 1.0, Beside("files-1m-64", EPOLL.name, NGINX.name)),
    goal("10 MB, 16 connections, CPU time × lighttpd", 1.0, Beside("files-10m-16", EPOLL.name, LIGHTTPD.name)),
    goal("1 MB, 16 connections: requests/s of lighttpd, × ours", 1.0, Rates(("files-1m-16", LIGHTTPD.name), ("files-1m-16", EPOLL.name))),
];
