//! Effect of priorities: the latency of a route while another route is flooded.

use super::Group;
use crate::bench::flood::{listings, queue};
use crate::bench::goals::Figure::Counted;
use crate::bench::goals::{Goal, goal};
use crate::bench::lane::{Lane, ROCKNET, Variant};
use crate::bench::row::{Row, count};

pub const GROUP: Group = Group {
    name: "priority",
    title: "Priorities",
    rows: ROWS,
    goals: GOALS,
};

/// Two routes that list folders, one of high and one of low priority.
const WITH: Lane = Lane {
    name: "rocknet",
    variant: Variant::Listings { ranked: true },
    ..ROCKNET
};
/// The same routes without priorities.
const WITHOUT: Lane = Lane {
    name: "rocknet-without",
    variant: Variant::Listings { ranked: false },
    ..ROCKNET
};

/// Two routes that wait for one upstream, one of high and one of low priority.
const QUEUED: Lane = Lane {
    name: "rocknet",
    variant: Variant::Queued { ranked: true },
    ..ROCKNET
};
/// The routes to one upstream without priorities.
const QUEUED_WITHOUT: Lane = Lane {
    name: "rocknet-without",
    variant: Variant::Queued { ranked: false },
    ..ROCKNET
};

#[rustfmt::skip] // A table is read by its columns.
const ROWS: &[Row] = &[
    count("Counted", &[WITH, WITHOUT], ("priority-listings", "p99 of a route beside a flooded one", listings)),
    count("Counted", &[QUEUED, QUEUED_WITHOUT], ("priority-queue", "p99 of a route beside a flooded one, both proxied to one upstream", queue)),
];

const GOALS: &[Goal] = &[
    goal(
        "p99 of a high-priority route during a flood on a low-priority one, ÷ alone",
        2.0,
        Counted("priority-listings", WITH.name, 2),
    ),
    goal(
        "the same for routes that share an upstream, ÷ alone",
        2.0,
        Counted("priority-queue", QUEUED.name, 2),
    ),
];
