//! FastCGI, compared with nginx: an application of negligible cost, which shows the server's own cost, and php-fpm.

use super::Group;
use crate::bench::goals::Figure::{Beside, Cost};
use crate::bench::goals::{Goal, goal};
use crate::bench::lane::{Lane, NGINX, ROCKNET, by_fastcgi, with_php};
use crate::bench::load::Load;
use crate::bench::row::Page::{Hello, Script};
use crate::bench::row::{Row, load};

pub const GROUP: Group = Group {
    name: "fastcgi",
    title: "FastCGI",
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

/// nginx is the unit, because there is no floor program for a gateway.
const CONSTANT: &[Lane] = &[by_fastcgi(NGINX), by_fastcgi(ROCKNET), by_fastcgi(RING)];
const PHP: &[Lane] = &[with_php(NGINX), with_php(ROCKNET), with_php(RING)];

#[rustfmt::skip] // A table is read by its columns.
const ROWS: &[Row] = &[
    load("An application that costs next to nothing", CONSTANT, ("fastcgi-13", "13 bytes, 64 connections", Load::wrk(64), Hello)),
    load("php-fpm", PHP, ("php-13", "13 bytes by a script, 16 connections", Load::wrk(16), Script)),
];

const US: &str = ROCKNET.name;

#[rustfmt::skip] // A table is read by its columns.
const GOALS: &[Goal] = &[
    goal("13 bytes, × nginx", 0.9, Beside("fastcgi-13", US, NGINX.name)),
    goal("13 bytes by a script, µs a request", 30.0, Cost("php-13", US)),
    goal("13 bytes by a script, × nginx", 0.9, Beside("php-13", US, NGINX.name)),
];
