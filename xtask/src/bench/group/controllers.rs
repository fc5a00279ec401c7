//! Cost of a controller: the same 13 bytes from a file, from a function on the connection's thread, from the thread
//! pool, and from a separate process.

use super::Group;
use crate::bench::counted;
use crate::bench::goals::Figure::More;
use crate::bench::goals::{Goal, goal};
use crate::bench::lane::{Lane, ROCKNET, Variant};
use crate::bench::load::Load;
use crate::bench::row::Page::Hello;
use crate::bench::row::{Row, count, load};

pub const GROUP: Group = Group {
    name: "controllers",
    title: "Controllers",
    rows: ROWS,
    goals: GOALS,
};

const NETWORK: Lane = Lane {
    name: "rocknet-network",
    variant: Variant::Controller {
        runs: "run_on = \"network\"",
    },
    ..ROCKNET
};
const WORKER: Lane = Lane {
    name: "rocknet-worker",
    variant: Variant::Controller {
        runs: "run_on = \"worker\"",
    },
    ..ROCKNET
};
const ISOLATED: Lane = Lane {
    name: "rocknet-isolated",
    variant: Variant::Controller { runs: "isolate = true" },
    ..ROCKNET
};
const ALL: &[Lane] = &[ROCKNET, NETWORK, WORKER, ISOLATED];

#[rustfmt::skip] // A table is read by its columns.
const ROWS: &[Row] = &[
    load("Small responses", ALL, ("controller", "13 bytes, 64 keep-alive connections", Load::wrk(64), Hello)),
    load("Small responses", ALL, ("controller-pipelined", "13 bytes, 64 connections, 16 requests in one write", Load::pipelined(64), Hello)),
    count("Counted", &[ROCKNET, NETWORK], ("controller-instructions", "Instructions per keep-alive request, by callgrind", counted::instructions)),
];

const GOALS: &[Goal] = &[goal(
    "controller on the connection's thread, µs per request more than a file",
    0.3,
    More("controller", NETWORK.name, ROCKNET.name),
)];
