//! Sockets, files and time: the one home of system calls and of `unsafe`. Knows nothing of HTTP.

pub mod read_ahead;
#[cfg(test)]
mod isolated_test;
pub mod byte_budget;
#[cfg(unix)]
pub mod child;
#[cfg(unix)]
pub mod confined_fs;
#[cfg(all(unix, not(target_vendor = "apple")))]
pub mod courier;
#[cfg(target_vendor = "apple")]
#[path = "courier/absent.rs"]
pub mod courier;
#[cfg(unix)]
pub mod descriptors;
#[cfg(unix)]
pub mod file;
#[cfg(unix)]
pub mod holder;
pub mod link;
pub mod machine;
pub mod niceness;
#[cfg(unix)]
mod outgoing;
#[cfg(not(unix))]
#[path = "outgoing/portable.rs"]
mod outgoing;
pub mod owned_thread;
pub mod pipe;
pub mod program;
pub mod queue;
#[cfg(unix)]
pub mod rights;
#[cfg(target_os = "linux")]
pub mod ring;
pub mod runtime;
pub mod sim;
#[cfg(unix)]
pub mod socket;
#[cfg(unix)]
pub mod stream;
#[cfg(unix)]
pub mod tcp;
#[cfg(unix)]
pub mod temporary;
pub mod terminal;
pub mod ticker;
#[cfg(unix)]
pub mod tls;
#[cfg(target_os = "linux")]
pub mod udp;
#[cfg(unix)]
pub mod unnamed;
pub mod uptime;
pub mod wheel;
