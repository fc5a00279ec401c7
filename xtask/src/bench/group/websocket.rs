//! WebSocket through a proxy: the cost of a message, and the memory of an idle tunnel.

use super::Group;
use crate::bench::goals::Figure::{Beside, Counted};
use crate::bench::goals::{Goal, goal};
use crate::bench::lane::{HAPROXY, Lane, NGINX, ROCKNET, Variant};
use crate::bench::load::Load;
use crate::bench::row::Page::Hello;
use crate::bench::row::{Row, count, load};
use crate::bench::tunnels;

pub const GROUP: Group = Group {
    name: "websocket",
    title: "WebSocket",
    rows: ROWS,
    goals: GOALS,
};

const fn tunnelled(lane: Lane) -> Lane {
    Lane {
        variant: Variant::Tunnels,
        ..lane
    }
}

/// RockNet on io_uring. Without an open ring (`holds`) it has fallen back to epoll, and gets no figures.
const RING: Lane = Lane {
    name: "rocknet-io_uring",
    environment: &[("ROCKNET_BACKEND", "io_uring")],
    holds: Some("anon_inode:[io_uring]"),
    ..ROCKNET
};

/// nginx is the unit, because there is no floor program for a proxy.
const ALL: &[Lane] = &[
    tunnelled(NGINX),
    tunnelled(ROCKNET),
    tunnelled(RING),
    tunnelled(HAPROXY),
];

const SMALL: Load = Load::Echo {
    tunnels: 64,
    size: 32,
    bulk: false,
};
const LARGE: Load = Load::Echo {
    tunnels: 8,
    size: 64 * 1024,
    bulk: true,
};

#[rustfmt::skip] // A table is read by its columns.
const ROWS: &[Row] = &[
    load("Messages", ALL, ("websocket-32", "32 bytes echoed, 64 tunnels", SMALL, Hello)),
    load("Large messages", ALL, ("websocket-64k", "64 KiB echoed, 8 tunnels", LARGE, Hello)),
    count("Counted", ALL, ("websocket-idle", "Memory of idle tunnels", tunnels::idle)),
];

const US: &str = ROCKNET.name;

#[rustfmt::skip] // A table is read by its columns.
const GOALS: &[Goal] = &[
    goal("32 bytes echoed, × HAProxy", 1.0, Beside("websocket-32", US, HAPROXY.name)),
    goal("64 KiB echoed, × HAProxy", 1.0, Beside("websocket-64k", US, HAPROXY.name)),
    goal("an idle tunnel, bytes", 6.0 * 1024.0, Counted("websocket-idle", US, 0)),
];
