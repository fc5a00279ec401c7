//! The two I/O back ends of RockNet, epoll and io_uring, compared with each other and with the floor.

use super::Group;
use crate::bench::goals::Figure::{Beside, Counted, Ratio};
use crate::bench::goals::{Goal, goal};
use crate::bench::lane::{
    FLOOR, FLOOR_FILE, FLOOR_URING, Lane, NGINX, NGINX_AIO, ROCKNET, ROCKNET_HANDLER, http2, over_tls, proxied,
};
use crate::bench::load::Load;
use crate::bench::row::Page::{File, Hello, Post};
use crate::bench::row::{GIB, KIB, MIB, Row, count, load};
use crate::bench::{cold, counted};

pub const GROUP: Group = Group {
    name: "io",
    title: "epoll and io_uring",
    rows: ROWS,
    goals: GOALS,
};

/// RockNet on epoll. A server without the descriptor in `holds` uses the other back end, and gets no figures.
pub const EPOLL: Lane = Lane {
    name: "rocknet-epoll",
    environment: &[("ROCKNET_BACKEND", "epoll")],
    holds: Some("anon_inode:[eventpoll]"),
    ..ROCKNET
};
/// RockNet on io_uring, checked like [`EPOLL`].
pub const RING: Lane = Lane {
    name: "rocknet-io_uring",
    environment: &[("ROCKNET_BACKEND", "io_uring")],
    holds: Some("anon_inode:[io_uring]"),
    ..ROCKNET
};
const BOTH: &[Lane] = &[FLOOR, FLOOR_URING, EPOLL, RING];
const FILES: &[Lane] = &[FLOOR_FILE, EPOLL, RING];

const CONNECT: &[Lane] = &[FLOOR, EPOLL, RING];
const COLD: &[Lane] = &[EPOLL, RING, NGINX, NGINX_AIO];
const OURS: &[Lane] = &[EPOLL, RING];
const PROXIES: &[Lane] = &[proxied(EPOLL, 1), proxied(RING, 1)];
const HANDLERS: &[Lane] = &[handler(EPOLL), handler(RING)];
const H2_HANDLERS: &[Lane] = &[http2(handler(EPOLL)), http2(handler(RING))];
const TLS_HANDLERS: &[Lane] = &[over_tls(handler(EPOLL)), over_tls(handler(RING))];

/// Returns `lane` with a program whose handler reads the request body.
const fn handler(lane: Lane) -> Lane {
    Lane {
        server: ROCKNET_HANDLER.server,
        ..lane
    }
}

const SMALL: &str = "Small responses";
const CONTENT: &str = "Files";
const RECEIVING: &str = "Request and upstream bodies";
const CONNECTING: &str = "Connections";
const DISK: &str = "Files that are not in memory";
const MEMORY: &str = "Memory";

#[rustfmt::skip] // A table is read by its columns.
const ROWS: &[Row] = &[
    load(SMALL, BOTH, ("io-keepalive", "13 bytes, 64 keep-alive connections", Load::wrk(64), Hello)),
    load(SMALL, BOTH, ("io-single", "13 bytes, one connection", Load::wrk(1), Hello)),
    load(SMALL, BOTH, ("io-pipelined", "13 bytes, 64 connections, 16 requests in one write", Load::pipelined(64), Hello)),
    load(SMALL, BOTH, ("io-connections-500", "13 bytes, 500 connections", Load::wrk(500), Hello)),
    load(SMALL, BOTH, ("io-connections-10k", "13 bytes, 10,000 connections", Load::wrk(10_000), Hello)),
    load(CONTENT, FILES, ("io-file-10k", "10 KB file, 64 connections", Load::wrk(64), File(10 * KIB))),
    load(CONTENT, FILES, ("io-file-80k", "80 KB file, 64 connections", Load::wrk(64), File(80 * KIB))),
    load(CONTENT, FILES, ("io-file-1m", "1 MB file, 64 connections", Load::wrk(64), File(MIB))),
    load(CONTENT, FILES, ("io-file-1g", "1 GB file, 4 connections, cost per MiB", Load::bulk(4), File(GIB))),
    load(RECEIVING, PROXIES, ("io-proxy-13", "13 bytes from an upstream, 64 connections", Load::wrk(64), Hello)),
    load(RECEIVING, PROXIES, ("io-proxy-100k", "100 KB from an upstream, 64 connections", Load::wrk(64), File(100 * KIB))),
    load(RECEIVING, HANDLERS, ("io-post-10k", "POST of 10 KB, 64 connections", Load::wrk(64), Post(10 * KIB))),
    load(RECEIVING, HANDLERS, ("io-post-1m", "POST of 1 MB, 16 connections", Load::wrk(16), Post(MIB))),
    load(RECEIVING, TLS_HANDLERS, ("io-tls-post-1m", "POST of 1 MB over TLS, 16 connections", Load::wrk(16), Post(MIB))),
    load(RECEIVING, H2_HANDLERS, ("io-h2-post-1m", "POST of 1 MB over HTTP/2, 16 connections of 8 streams", Load::h2load(16, 8), Post(MIB))),
    load(CONNECTING, CONNECT, ("io-connect", "13 bytes, a connection for each request", Load::ab(50_000, 16), Hello)),
    count(DISK, COLD, ("io-cold-10k", "10,000 files of 10 KB, 64 connections", cold::files_10k)),
    count(DISK, COLD, ("io-cold-100k", "5,000 files of 100 KB, 64 connections", cold::files_100k)),
    count(DISK, COLD, ("io-cold-1m", "800 files of 1 MB, 64 connections", cold::files_1m)),
    count(DISK, COLD, ("io-cold-1g", "4 files of 1 GB, 4 connections", cold::files_1g)),
    count(MEMORY, OURS, ("io-idle", "Memory of 10,000 idle connections", counted::idle)),
];

#[rustfmt::skip] // A table is read by its columns.
const GOALS: &[Goal] = &[
    goal("io_uring, keep-alive, × floor", 0.98, Ratio("io-keepalive", RING.name)),
    goal("io_uring, 500 connections, × floor", 0.98, Ratio("io-connections-500", RING.name)),
    goal("io_uring, 10,000 connections, × floor", 0.98, Ratio("io-connections-10k", RING.name)),
    goal("io_uring, keep-alive, × floor of io_uring", 1.1, Beside("io-keepalive", RING.name, FLOOR_URING.name)),
    goal("io_uring, 500 connections, × floor of io_uring", 1.1, Beside("io-connections-500", RING.name, FLOOR_URING.name)),
    goal("io_uring, one connection, × epoll", 1.03, Beside("io-single", RING.name, EPOLL.name)),
    goal("io_uring, pipelined, × epoll", 1.0, Beside("io-pipelined", RING.name, EPOLL.name)),
    goal("io_uring, 10 KB file, × epoll", 1.0, Beside("io-file-10k", RING.name, EPOLL.name)),
    goal("io_uring, 80 KB file, × epoll", 1.0, Beside("io-file-80k", RING.name, EPOLL.name)),
    goal("io_uring, 1 MB file, × epoll", 1.0, Beside("io-file-1m", RING.name, EPOLL.name)),
    goal("io_uring, 1 GB file, × epoll", 1.0, Beside("io-file-1g", RING.name, EPOLL.name)),
    goal("io_uring, 13 bytes from an upstream, × epoll", 1.0, Beside("io-proxy-13", RING.name, EPOLL.name)),
    goal("io_uring, 100 KB from an upstream, × epoll", 1.0, Beside("io-proxy-100k", RING.name, EPOLL.name)),
    goal("io_uring, POST of 10 KB, × epoll", 1.0, Beside("io-post-10k", RING.name, EPOLL.name)),
    goal("io_uring, POST of 1 MB, × epoll", 1.0, Beside("io-post-1m", RING.name, EPOLL.name)),
    goal("io_uring, POST of 1 MB over TLS, × epoll", 1.0, Beside("io-tls-post-1m", RING.name, EPOLL.name)),
    goal("io_uring, POST of 1 MB over HTTP/2, × epoll", 1.0, Beside("io-h2-post-1m", RING.name, EPOLL.name)),
    goal("io_uring, a connection for each request, × epoll", 1.0, Beside("io-connect", RING.name, EPOLL.name)),
    goal("memory of an idle connection on io_uring, bytes", 1024.0, Counted("io-idle", RING.name, 0)),
];
