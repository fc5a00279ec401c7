//! HTTP/1.1 over TLS, with a certificate made for the run.

use super::Group;
use crate::bench::goals::Figure::Beside;
use crate::bench::goals::{Goal, goal};
use crate::bench::lane::{H2O, Lane, NGINX, ROCKNET, over_tls};
use crate::bench::load::Load;
use crate::bench::row::Page::{File, Hello};
use crate::bench::row::{GIB, MIB, Row, load};

pub const GROUP: Group = Group {
    name: "tls",
    title: "TLS",
    rows: ROWS,
    goals: GOALS,
};

/// No program is the floor of TLS: nginx is the unit.
const EVERYONE: &[Lane] = &[over_tls(NGINX), over_tls(ROCKNET), over_tls(H2O)];

const KEPT: &str = "Kept connections";
const SHAKEN: &str = "Handshakes";

#[rustfmt::skip] // A table is read by its columns.
const ROWS: &[Row] = &[
    load(KEPT, EVERYONE, ("tls-keepalive", "13 bytes, 64 keep-alive connections", Load::wrk(64), Hello)),
    load(KEPT, EVERYONE, ("tls-file-1m", "1 MB file, 64 connections", Load::wrk(64), File(MIB))),
    load(KEPT, EVERYONE, ("tls-file-1g", "1 GB file, 4 connections, cost per MiB", Load::bulk(4), File(GIB))),
    load(SHAKEN, EVERYONE, ("tls-full", "ab: 5,000 full handshakes, 10 at once, ECDSA P-256", Load::ab(5_000, 10), Hello)),
];

const US: &str = ROCKNET.name;

#[rustfmt::skip] // A table is read by its columns.
const GOALS: &[Goal] = &[
    goal("TLS keep-alive, × nginx", 1.0, Beside("tls-keepalive", US, NGINX.name)),
    goal("TLS keep-alive, × H2O", 1.0, Beside("tls-keepalive", US, H2O.name)),
    goal("full handshake, × nginx", 1.0, Beside("tls-full", US, NGINX.name)),
    goal("1 MB over TLS, × nginx", 1.0, Beside("tls-file-1m", US, NGINX.name)),
    goal("1 GB over TLS, × nginx", 1.0, Beside("tls-file-1g", US, NGINX.name)),
];
