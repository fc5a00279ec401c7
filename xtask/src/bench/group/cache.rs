//! Cached responses of an upstream and of PHP, compared with files in memory, nginx and Varnish.

use super::Group;
use crate::bench::counted;
use crate::bench::goals::Figure::{Beside, CountedBeside};
use crate::bench::goals::{Goal, goal};
use crate::bench::lane::{Lane, NGINX, ROCKNET, VARNISH, cached, http2, over_tls, with_cached_php};
use crate::bench::load::Load;
use crate::bench::row::Page::{File, Hello};
use crate::bench::row::{KIB, Row, count, load};

pub const GROUP: Group = Group {
    name: "cache",
    title: "Response cache",
    rows: ROWS,
    goals: GOALS,
};

/// RockNet with the same content as a file, which is the unit.
const STATIC: Lane = Lane {
    name: "rocknet-file",
    ..ROCKNET
};
const CLEAR: &[Lane] = &[STATIC, cached(ROCKNET), cached(NGINX), cached(VARNISH)];
/// Varnish supports no TLS.
const TLS: &[Lane] = &[
    over_tls(http2(STATIC)),
    over_tls(http2(cached(ROCKNET))),
    over_tls(http2(cached(NGINX))),
];
const OURS: &[Lane] = &[STATIC, cached(ROCKNET)];
/// RockNet with a PHP script on a site with a limit of another path, as `examples/wordpress` has it.
const SCRIPT: Lane = Lane {
    name: "rocknet-php",
    ..with_cached_php(ROCKNET)
};
const WITH_SCRIPT: &[Lane] = &[STATIC, SCRIPT];

const HTTP1: &str = "HTTP/1.1";
const HTTP2: &str = "HTTP/2 over TLS";
const COUNTED: &str = "Counted";

#[rustfmt::skip] // A table is read by its columns.
const ROWS: &[Row] = &[
    load(HTTP1, CLEAR, ("cache-13", "13 bytes, 64 connections", Load::wrk(64), Hello)),
    load(HTTP1, CLEAR, ("cache-10k", "10 KB, 64 connections", Load::wrk(64), File(10 * KIB))),
    load(HTTP2, TLS, ("cache-h2-13", "13 bytes, 16 connections of 32 streams", Load::h2load(16, 32), Hello)),
    load(HTTP2, TLS, ("cache-h2-10k", "10 KB, 16 connections of 32 streams", Load::h2load(16, 32), File(10 * KIB))),
    count(COUNTED, OURS, ("cache-instructions", "Instructions per keep-alive request, by callgrind", counted::instructions)),
    count(COUNTED, WITH_SCRIPT, ("cache-php-instructions", "Instructions per keep-alive request for a page of PHP beside a limit of another path, by callgrind", counted::instructions)),
];

const US: &str = ROCKNET.name;

#[rustfmt::skip] // A table is read by its columns.
const GOALS: &[Goal] = &[
    goal("13 bytes, × a file", 1.1, Beside("cache-13", US, STATIC.name)),
    goal("13 bytes, × nginx", 1.0, Beside("cache-13", US, NGINX.name)),
    goal("13 bytes, × Varnish", 1.0, Beside("cache-13", US, VARNISH.name)),
    goal("10 KB, × a file", 1.1, Beside("cache-10k", US, STATIC.name)),
    goal("10 KB, × nginx", 1.0, Beside("cache-10k", US, NGINX.name)),
    goal("10 KB, × Varnish", 1.0, Beside("cache-10k", US, VARNISH.name)),
    goal("HTTP/2 over TLS, 13 bytes, × a file", 1.1, Beside("cache-h2-13", US, STATIC.name)),
    goal("HTTP/2 over TLS, 13 bytes, × nginx", 1.0, Beside("cache-h2-13", US, NGINX.name)),
    goal("HTTP/2 over TLS, 10 KB, × nginx", 1.0, Beside("cache-h2-10k", US, NGINX.name)),
    goal("instructions, × a file", 1.1, CountedBeside("cache-instructions", US, STATIC.name, 0)),
    goal("instructions of a page of PHP beside a limit, × a file", 1.1, CountedBeside("cache-php-instructions", SCRIPT.name, STATIC.name, 0)),
];
