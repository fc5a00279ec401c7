//! A page of 60 resources over a slow network: HTTP/3, HTTP/2 and HTTP/1.1, compared with Caddy.

use super::Group;
use crate::bench::goals::Figure::CountedBeside;
use crate::bench::goals::{Goal, goal};
use crate::bench::lane::{CADDY, Lane, ROCKNET, Variant, http2, http3, over_tls};
use crate::bench::row::{Row, count};
use crate::bench::slow_network::{drawn_visits, explained_visits, visits};

pub const GROUP: Group = Group {
    name: "slow-network",
    title: "A page over a slow network",
    rows: ROWS,
    goals: GOALS,
};

/// Returns `lane` with another name, reachable from the network namespace of the browser.
const fn public(name: &'static str, lane: Lane) -> Lane {
    Lane {
        name,
        variant: Variant::Public,
        ..lane
    }
}

const LANES: &[Lane] = &[
    public("rocknet-h3", http3(ROCKNET)),
    public("caddy-h3", http3(CADDY)),
    public("rocknet-h2", over_tls(http2(ROCKNET))),
    public("caddy-h2", over_tls(http2(CADDY))),
    public("rocknet-h1", over_tls(ROCKNET)),
    public("caddy-h1", over_tls(CADDY)),
];

const NEAR: &str = "Round trip of 20 ms";
const FAR: &str = "Round trip of 100 ms";

#[rustfmt::skip] // A table is read by its columns.
const ROWS: &[Row] = &[
    count(NEAR, LANES, ("slow-20-0", "20 ms, no loss", explained_visits::<20, 0>)),
    count(NEAR, LANES, ("slow-20-1", "20 ms, 1 % of loss", visits::<20, 1>)),
    count(NEAR, LANES, ("slow-20-5", "20 ms, 5 % of loss", visits::<20, 5>)),
    count(FAR, LANES, ("slow-100-0", "100 ms, no loss", visits::<100, 0>)),
    count(FAR, LANES, ("slow-100-1", "100 ms, 1 % of loss", drawn_visits::<100, 1>)),
    count(FAR, LANES, ("slow-100-5", "100 ms, 5 % of loss", visits::<100, 5>)),
];

const US: &str = "rocknet-h3";
const CADDY_H3: &str = "caddy-h3";

// Column 0 is the time of the last style sheet, and column 2 the time of the load event.
#[rustfmt::skip] // A table is read by its columns.
const GOALS: &[Goal] = &[
    goal("HTTP/3, 20 ms, no loss: load, × Caddy", 1.05, CountedBeside("slow-20-0", US, CADDY_H3, 2)),
    goal("HTTP/3, 100 ms, no loss: load, × Caddy", 1.05, CountedBeside("slow-100-0", US, CADDY_H3, 2)),
    goal("HTTP/3, 100 ms, 1 %: styles, × Caddy", 1.05, CountedBeside("slow-100-1", US, CADDY_H3, 0)),
    goal("HTTP/3, 100 ms, 1 %: load, × Caddy", 1.05, CountedBeside("slow-100-1", US, CADDY_H3, 2)),
];
