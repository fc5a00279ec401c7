//! HTTP/1.1 over TLS, with certificates created for the run.

use super::Group;
use crate::bench::counted;
use crate::bench::goals::Figure::{Beside, Counted};
use crate::bench::goals::{Goal, goal};
use crate::bench::lane::{APACHE, CADDY, H2O, Lane, NGINX, ROCKNET, Variant, by_rsa, over_tls};
use crate::bench::load::Load;
use crate::bench::row::Page::{File, Hello};
use crate::bench::row::{GIB, MIB, Row, count, load};

pub const GROUP: Group = Group {
    name: "tls",
    title: "TLS",
    rows: ROWS,
    goals: GOALS,
};

/// nginx is the unit, because no floor program supports TLS.
const ALL_SERVERS: &[Lane] = &[
    over_tls(NGINX),
    over_tls(ROCKNET),
    over_tls(H2O),
    over_tls(APACHE),
    over_tls(CADDY),
];
const BY_RSA: &[Lane] = &[
    by_rsa(NGINX),
    by_rsa(ROCKNET),
    by_rsa(H2O),
    by_rsa(APACHE),
    by_rsa(CADDY),
];
const ONE: Lane = certificates("rocknet-1-certificate", 1);
const MANY: Lane = certificates("rocknet-10000-certificates", 10_000);

const fn certificates(name: &'static str, count: u32) -> Lane {
    Lane {
        name,
        variant: Variant::Certificates(count),
        ..over_tls(ROCKNET)
    }
}

const KEPT: &str = "Kept connections";
const SHAKEN: &str = "Handshakes";
const SETTINGS: &str = "Settings";
const COUNTED: &str = "Counted";

#[rustfmt::skip] // A table is read by its columns.
const ROWS: &[Row] = &[
    load(KEPT, ALL_SERVERS, ("tls-keepalive", "13 bytes, 64 keep-alive connections", Load::wrk(64), Hello)),
    load(KEPT, ALL_SERVERS, ("tls-file-1m", "1 MB file, 64 connections", Load::wrk(64), File(MIB))),
    load(KEPT, ALL_SERVERS, ("tls-file-1g", "1 GB file, 4 connections, cost per MiB", Load::bulk(4), File(GIB))),
    load(SHAKEN, ALL_SERVERS, ("tls-full-ecdsa", "ab: 5,000 full handshakes, 10 at once, ECDSA P-256", Load::ab(5_000, 10), Hello)),
    load(SHAKEN, BY_RSA, ("tls-full-rsa", "ab: 5,000 full handshakes, 10 at once, RSA 2048", Load::ab(5_000, 10), Hello)),
    // The key does not matter for a resumed handshake, so one kind is enough.
    load(SHAKEN, ALL_SERVERS, ("tls-resumed", "openssl s_time: resumed handshakes of TLS 1.3, one after another", Load::Resume, Hello)),
    load(SETTINGS, &[ONE, MANY], ("tls-certificates", "ab: 5,000 full handshakes by name, 1 and 10,000 certificates", Load::ab(5_000, 10), Hello)),
    count(COUNTED, ALL_SERVERS, ("tls-start", "From start to the first response, and memory then", counted::start)),
    count(COUNTED, ALL_SERVERS, ("tls-idle", "Memory of 10,000 idle keep-alive connections", counted::idle)),
];

const US: &str = ROCKNET.name;

#[rustfmt::skip] // A table is read by its columns.
const GOALS: &[Goal] = &[
    goal("TLS keep-alive, × nginx", 1.0, Beside("tls-keepalive", US, NGINX.name)),
    goal("TLS keep-alive, × H2O", 1.0, Beside("tls-keepalive", US, H2O.name)),
    goal("full handshake by ECDSA, × nginx", 1.0, Beside("tls-full-ecdsa", US, NGINX.name)),
    goal("full handshake by RSA, × nginx", 1.0, Beside("tls-full-rsa", US, NGINX.name)),
    goal("resumed handshake, × nginx", 1.0, Beside("tls-resumed", US, NGINX.name)),
    goal("1 MB over TLS, × nginx", 1.0, Beside("tls-file-1m", US, NGINX.name)),
    goal("1 GB over TLS, × nginx", 1.0, Beside("tls-file-1g", US, NGINX.name)),
    // The cost must not depend on the number of certificates, as far as one core and its CPU caches can show.
    goal("10,000 certificates, × one certificate", 1.05, Beside("tls-certificates", MANY.name, ONE.name)),
    goal("memory of an idle TLS connection, bytes", 12.0 * 1024.0, Counted("tls-idle", US, 0)),
];
