//! HTTP/3, compared with the floor, which is a bare event loop, with a reference server made of the usual crates of
//! Rust, and with Caddy.

use super::Group;
use super::io::RING;
use crate::bench::counted;
use crate::bench::garbage::garbage;
use crate::bench::goals::Figure::{Beside, Counted, Ratio};
use crate::bench::goals::{Goal, goal};
use crate::bench::lane::{CADDY, FLOOR_H3, Lane, REFERENCE_H3, ROCKNET, http3};
use crate::bench::load::Load;
use crate::bench::row::Page::{File, Hello};
use crate::bench::row::{GIB, MIB, Row, count, load};

pub const GROUP: Group = Group {
    name: "h3",
    title: "HTTP/3",
    rows: ROWS,
    goals: GOALS,
};

const SMALL: &[Lane] = &[FLOOR_H3, http3(ROCKNET), http3(RING), REFERENCE_H3, http3(CADDY)];
/// The reference server is the unit of files, because the floor sends only 13 bytes.
const FILES: &[Lane] = &[REFERENCE_H3, http3(ROCKNET), http3(RING), http3(CADDY)];

const RESPONSES: &str = "Small responses";
const CONTENT: &str = "Files";
const SHAKEN: &str = "Handshakes";
const COUNTED: &str = "Counted";

const FULL: Load = Load::H3Handshakes { resumed: false };
const RESUMED: Load = Load::H3Handshakes { resumed: true };

#[rustfmt::skip] // A table is read by its columns.
const ROWS: &[Row] = &[
    load(RESPONSES, SMALL, ("h3-streams", "13 bytes, 16 connections of 32 streams", Load::h3(16, 32), Hello)),
    load(RESPONSES, SMALL, ("h3-single", "13 bytes, 64 connections of 1 stream", Load::h3(64, 1), Hello)),
    load(RESPONSES, SMALL, ("h3-connections-5k", "13 bytes, 5,000 connections of 1 stream", Load::h3(5_000, 1), Hello)),
    load(RESPONSES, SMALL, ("h3-oha", "13 bytes, 16 connections of 32 streams, loaded by oha", OHA, Hello)),
    load(CONTENT, FILES, ("h3-file-1m", "1 MB file, 16 connections, cost per MiB", Load::h3_bulk(16), File(MIB))),
    load(CONTENT, FILES, ("h3-file-1g", "1 GB file, 4 connections, cost per MiB", Load::h3_bulk(4), File(GIB))),
    load(SHAKEN, SMALL, ("h3-full", "a full handshake for each request, 8 at once, ECDSA P-256", FULL, Hello)),
    load(SHAKEN, SMALL, ("h3-resumed", "a resumed handshake for each request, 8 at once", RESUMED, Hello)),
    count(COUNTED, FILES, ("h3-idle", "Memory of 10,000 idle connections", counted::idle)),
    count(COUNTED, SMALL, ("h3-garbage", "Latency beside 100,000 garbage datagrams per second", garbage)),
];

/// Another load generator, as a check of ours. After a load it waits for the idle timeout of its connections, 30 s.
const OHA: Load = Load::Oha {
    connections: 16,
    streams: 32,
};

const US: &str = ROCKNET.name;

#[rustfmt::skip] // A table is read by its columns.
const GOALS: &[Goal] = &[
    goal("32 streams, × reference server", 0.85, Beside("h3-streams", US, REFERENCE_H3.name)),
    goal("32 streams, × floor", 1.25, Ratio("h3-streams", US)),
    goal("1 stream, × reference server", 0.5, Beside("h3-single", US, REFERENCE_H3.name)),
    goal("1 stream, × floor", 1.25, Ratio("h3-single", US)),
    goal("1 MB file, × Caddy", 0.333, Beside("h3-file-1m", US, CADDY.name)),
    goal("1 GB file, × Caddy", 0.333, Beside("h3-file-1g", US, CADDY.name)),
    goal("p50 beside garbage, ms", 2.0, Counted("h3-garbage", US, 0)),
    goal("memory of an idle connection, bytes", 12.0 * 1024.0, Counted("h3-idle", US, 0)),
];
