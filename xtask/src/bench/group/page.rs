//! A page on a slow link: urgent responses must be sent first, even if they are requested late.

use super::Group;
use crate::bench::browser::page;
use crate::bench::goals::Figure::{Counted, CountedBeside};
use crate::bench::goals::{Goal, goal};
use crate::bench::lane::{H2O, Lane, NGINX, ROCKNET, http2, over_tls};
use crate::bench::late::late;
use crate::bench::row::{Row, count};

pub const GROUP: Group = Group {
    name: "page",
    title: "A page on a slow link",
    rows: ROWS,
    goals: GOALS,
};

/// RockNet on io_uring. Without an open ring (`holds`) it has fallen back to epoll, and gets no figures.
const URING: Lane = Lane {
    name: "rocknet-io_uring",
    environment: &[("ROCKNET_BACKEND", "io_uring")],
    holds: Some("anon_inode:[io_uring]"),
    ..http2(ROCKNET)
};
const CLEAR: &[Lane] = &[http2(H2O), http2(ROCKNET), URING, http2(NGINX)];
const TLS: &[Lane] = &[over_tls(http2(H2O)), over_tls(http2(ROCKNET)), over_tls(http2(NGINX))];

#[rustfmt::skip] // A table is read by its columns.
const ROWS: &[Row] = &[
    count("Counted", CLEAR, ("page-late", "A late high-priority response", late)),
    count("Counted", TLS, ("page-browser", "A page of 60 resources in Chromium", page)),
];

const US: &str = ROCKNET.name;

#[rustfmt::skip] // A table is read by its columns.
const GOALS: &[Goal] = &[
    goal("late response, × H2O", 0.25, CountedBeside("page-late", US, H2O.name, 0)),
    goal("late response by io_uring, × H2O", 0.25, CountedBeside("page-late", URING.name, H2O.name, 0)),
    goal("DOMContentLoaded with a cold cache, ÷ warm", 1.05, Counted("page-browser", US, 2)),
];
