//! Proxied requests, compared with nginx and HAProxy.

use super::Group;
use crate::bench::goals::Figure::{Beside, Cost};
use crate::bench::goals::{Goal, goal};
use crate::bench::lane::{HAPROXY, Lane, NGINX, ROCKNET, Variant};
use crate::bench::load::Load;
use crate::bench::row::Page::{File, Hello};
use crate::bench::row::{KIB, Row, load};

pub const GROUP: Group = Group {
    name: "proxy",
    title: "Proxy",
    rows: ROWS,
    goals: GOALS,
};

/// RockNet on io_uring. Without an open ring (`holds`) it has fallen back to epoll, and gets no figures.
const RING: Lane = Lane {
    name: "rocknet-io_uring",
    environment: &[("ROCKNET_BACKEND", "io_uring")],
    holds: Some("anon_inode:[io_uring]"),
    ..ROCKNET
};

/// nginx is the unit, because there is no floor program for a proxy.
const fn lanes(variant: Variant) -> [Lane; 4] {
    [
        Lane { variant, ..NGINX },
        Lane { variant, ..ROCKNET },
        Lane { variant, ..RING },
        Lane { variant, ..HAPROXY },
    ]
}
const ONE: &[Lane] = &lanes(Variant::Proxied(1));
const EIGHT: &[Lane] = &lanes(Variant::Proxied(8));
/// Eight addresses of one upstream process. Eight processes on the load's core would keep the proxy waiting, and each
/// wake-up costs the proxy 3 µs.
const SPREAD: &[Lane] = &lanes(Variant::Spread(8));

const SMALL: &str = "Small responses";
const LARGE: &str = "Large responses";

#[rustfmt::skip] // A table is read by its columns.
const ROWS: &[Row] = &[
    load(SMALL, ONE, ("proxy-13", "13 bytes, 64 connections, one upstream", Load::wrk(64), Hello)),
    load(SMALL, EIGHT, ("proxy-13-of-8", "13 bytes, 64 connections, eight upstreams", Load::wrk(64), Hello)),
    load(SMALL, SPREAD, ("proxy-13-spread", "13 bytes, 64 connections, one upstream with eight addresses", Load::wrk(64), Hello)),
    load(LARGE, ONE, ("proxy-100k", "100 KB, 64 connections, one upstream", Load::wrk(64), File(100 * KIB))),
    load(LARGE, EIGHT, ("proxy-100k-of-8", "100 KB, 64 connections, eight upstreams", Load::wrk(64), File(100 * KIB))),
];

const US: &str = ROCKNET.name;

#[rustfmt::skip] // A table is read by its columns.
const GOALS: &[Goal] = &[
    goal("13 bytes, µs a request", 11.0, Cost("proxy-13", US)),
    goal("13 bytes, × nginx", 0.85, Beside("proxy-13", US, NGINX.name)),
    goal("13 bytes of eight, × nginx", 0.85, Beside("proxy-13-of-8", US, NGINX.name)),
    goal("13 bytes of eight addresses, × nginx", 0.85, Beside("proxy-13-spread", US, NGINX.name)),
    goal("13 bytes, × HAProxy", 1.0, Beside("proxy-13", US, HAPROXY.name)),
    goal("100 KB, × nginx", 0.85, Beside("proxy-100k", US, NGINX.name)),
    goal("100 KB of eight, × nginx", 0.85, Beside("proxy-100k-of-8", US, NGINX.name)),
    goal("100 KB, × HAProxy", 1.0, Beside("proxy-100k", US, HAPROXY.name)),
];
