//! HTTP/2 with and without TLS, compared with the servers that support it.

use super::Group;
use crate::bench::counted;
use crate::bench::goals::Figure::{Beside, Cost, Counted, Ratio};
use crate::bench::goals::{Goal, goal};
use crate::bench::lane::{APACHE, CADDY, FLOOR_H2, H2O, Lane, NGINX, ROCKNET, ROCKNET_HANDLER, http2, over_tls};
use crate::bench::load::Load;
use crate::bench::row::Page::{File, Hello, Post};
use crate::bench::row::{KIB, MIB, Row, count, load};

pub const GROUP: Group = Group {
    name: "h2",
    title: "HTTP/2",
    rows: ROWS,
    goals: GOALS,
};

const SMALL: &[Lane] = &[
    FLOOR_H2,
    http2(ROCKNET),
    http2(H2O),
    http2(NGINX),
    http2(APACHE),
    http2(CADDY),
];
/// H2O is the unit of rows without the floor. The floor is left out because it has no flow-control windows and reads no
/// request bodies.
const CLEAR: &[Lane] = &[http2(H2O), http2(ROCKNET), http2(NGINX), http2(APACHE), http2(CADDY)];
const TLS: &[Lane] = &[
    over_tls(http2(H2O)),
    over_tls(http2(ROCKNET)),
    over_tls(http2(NGINX)),
    over_tls(http2(APACHE)),
    over_tls(http2(CADDY)),
];

/// nginx is left out: it responds before it has read the request body, and h2load then treats the connection as
/// closed.
const POSTS: &[Lane] = &[http2(H2O), http2(ROCKNET_HANDLER), http2(APACHE), http2(CADDY)];
const TLS_POSTS: &[Lane] = &[
    over_tls(http2(H2O)),
    over_tls(http2(ROCKNET_HANDLER)),
    over_tls(http2(APACHE)),
    over_tls(http2(CADDY)),
];

const IN_CLEAR: &str = "Without TLS";
const CONTENT: &str = "Content";
const OVER_TLS: &str = "Over TLS";
const COUNTED: &str = "Counted";

#[rustfmt::skip] // A table is read by its columns.
const ROWS: &[Row] = &[
    load(IN_CLEAR, SMALL, ("h2-streams", "13 bytes, 16 connections of 32 streams", Load::h2load(16, 32), Hello)),
    load(IN_CLEAR, SMALL, ("h2-single", "13 bytes, 64 connections of 1 stream", Load::h2load(64, 1), Hello)),
    load(CONTENT, CLEAR, ("h2-file-10k", "10 KB file, 16 connections of 32 streams", Load::h2load(16, 32), File(10 * KIB))),
    load(CONTENT, CLEAR, ("h2-file-1m", "1 MB file, 16 connections of 8 streams", Load::h2load(16, 8), File(MIB))),
    load(CONTENT, POSTS, ("h2-post-64k", "POST of 64 KB, 16 connections of 8 streams", Load::h2load(16, 8), Post(64 * KIB))),
    load(OVER_TLS, TLS, ("h2-tls-streams", "13 bytes, 16 connections of 32 streams", Load::h2load(16, 32), Hello)),
    load(OVER_TLS, TLS, ("h2-tls-single", "13 bytes, 64 connections of 1 stream", Load::h2load(64, 1), Hello)),
    load(OVER_TLS, TLS, ("h2-tls-file-10k", "10 KB file, 16 connections of 32 streams", Load::h2load(16, 32), File(10 * KIB))),
    load(OVER_TLS, TLS, ("h2-tls-file-1m", "1 MB file, 16 connections of 8 streams", Load::h2load(16, 8), File(MIB))),
    load(OVER_TLS, TLS_POSTS, ("h2-tls-post-64k", "POST of 64 KB, 16 connections of 8 streams", Load::h2load(16, 8), Post(64 * KIB))),
    count(COUNTED, CLEAR, ("h2-idle", "Memory of 10,000 idle connections", counted::idle)),
];

const US: &str = ROCKNET.name;

#[rustfmt::skip] // A table is read by its columns.
const GOALS: &[Goal] = &[
    goal("32 streams, µs a request", 1.0, Cost("h2-streams", US)),
    goal("32 streams, × floor", 1.4, Ratio("h2-streams", US)),
    goal("32 streams, × H2O", 1.0, Beside("h2-streams", US, H2O.name)),
    goal("1 stream, × floor", 1.1, Ratio("h2-single", US)),
    goal("10 KB file, × H2O", 1.0, Beside("h2-file-10k", US, H2O.name)),
    goal("1 MB file, × H2O", 1.0, Beside("h2-file-1m", US, H2O.name)),
    goal("POST of 64 KB, × H2O", 1.0, Beside("h2-post-64k", ROCKNET_HANDLER.name, H2O.name)),
    goal("TLS, 32 streams, × H2O", 1.0, Beside("h2-tls-streams", US, H2O.name)),
    goal("TLS, 1 stream, × H2O", 1.0, Beside("h2-tls-single", US, H2O.name)),
    goal("TLS, 10 KB file, × H2O", 1.0, Beside("h2-tls-file-10k", US, H2O.name)),
    goal("TLS, 1 MB file, × H2O", 1.0, Beside("h2-tls-file-1m", US, H2O.name)),
    goal("memory of an idle connection, bytes", 4096.0, Counted("h2-idle", US, 0)),
];
