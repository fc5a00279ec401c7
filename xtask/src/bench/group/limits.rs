//! Limits of requests on a route whose responses are ready: by client, by another key, and of requests in progress.

use super::Group;
use crate::bench::counted;
use crate::bench::goals::Figure::More;
use crate::bench::goals::{Goal, goal};
use crate::bench::lane::{Lane, ROCKNET, Variant};
use crate::bench::load::Load;
use crate::bench::row::Page::Hello;
use crate::bench::row::{Row, count, load};

pub const GROUP: Group = Group {
    name: "limits",
    title: "Limits",
    rows: ROWS,
    goals: GOALS,
};

// No request of the load is refused by these limits.
const BY_CLIENT: Lane = limited("rocknet-client", "\"1000000/s\"");
const BY_KEY: Lane = limited(
    "rocknet-key",
    "{ rate = \"1000000/s\", key = \"{request.header.Host}\" }",
);
const CONNECTIONS: Lane = limited("rocknet-connections", "{ connections = 1000 }");
const LANES: &[Lane] = &[ROCKNET, BY_CLIENT, BY_KEY, CONNECTIONS];

const fn limited(name: &'static str, limit: &'static str) -> Lane {
    Lane {
        name,
        variant: Variant::Limited { limit },
        ..ROCKNET
    }
}

#[rustfmt::skip] // A table is read by its columns.
const ROWS: &[Row] = &[
    load("HTTP/1.1", LANES, ("limits-13", "13 bytes, 64 keep-alive connections", Load::wrk(64), Hello)),
    count("Counted", LANES, ("limits-instructions", "Instructions per keep-alive request, by callgrind", counted::instructions)),
];

const ROW: &str = "limits-13";

#[rustfmt::skip] // A table is read by its columns.
const GOALS: &[Goal] = &[
    goal("limit by client, µs a request", 0.1, More(ROW, BY_CLIENT.name, ROCKNET.name)),
    goal("limit by a header field, µs a request", 0.1, More(ROW, BY_KEY.name, ROCKNET.name)),
    goal("limit of requests in progress, µs a request", 0.1, More(ROW, CONNECTIONS.name, ROCKNET.name)),
];
