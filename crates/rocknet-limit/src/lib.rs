//! Request limits: the arithmetic of rates, and bounded tables of the clients that are counted.
//!
//! A [`ConnectionTable`] counts the requests in progress of each key, and a [`BandwidthTable`] divides a bandwidth
//! among them.
//!
//! A [`RateTable`] has one bucket for each key of a limit, such as a client. [`RateTable::take`] decides about a
//! request by [`Rate::take`], the generic cell rate algorithm: one number for each key, and no timer.
//!
//! A [`bans::BanTable`] has the banned clients, and [`offenders::Offenders`] the clients with the most offences.
//!
//! A [`KeySeed`] hashes keys. A [`transfer::Transfer`] has tables that a process passes to its successor.
//!
//! The crate starts no thread, opens no socket and reads no clock: times are arguments.
#![forbid(unsafe_code)]

pub mod bandwidth;
pub mod bans;
pub mod connections;
#[doc(hidden)]
pub mod fuzzing;
pub mod gcra;
pub mod key_seed;
pub mod offenders;
pub mod table;
pub mod transfer;

pub use bandwidth::{BandwidthPart, BandwidthTable};
pub use connections::{ConnectionPermit, ConnectionTable};
pub use gcra::{Rate, Taken};
pub use key_seed::{KeyHasher, KeySeed};
pub use table::{Budget, RateTable};
