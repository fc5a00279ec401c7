//! Sockets, files and time: the one home of system calls and of `unsafe`. Knows nothing of HTTP.

pub mod byte_budget;
#[cfg(unix)]
pub mod child;
#[cfg(unix)]
pub mod confined_fs;
#[cfg(unix)]
pub mod descriptors;
pub mod epoll;
#[cfg(all(unix, not(target_vendor = "apple")))]
pub mod fd_channel;
#[cfg(target_vendor = "apple")]
#[path = "fd_channel/unsupported.rs"]
pub mod fd_channel;
#[cfg(unix)]
pub mod file;
#[cfg(target_os = "linux")]
pub mod io_uring;
#[cfg(test)]
mod isolated_test;
pub mod link;
pub mod machine;
pub mod owned_thread;
pub mod pipe;
#[cfg(unix)]
pub mod port_owner;
#[cfg(unix)]
pub mod privileges;
pub mod program;
pub mod queue;
pub mod read_ahead;
pub mod runtime;
#[cfg(unix)]
pub mod sealed_file;
pub mod sim;
#[cfg(unix)]
pub mod socket;
#[cfg(unix)]
pub mod stream;
#[cfg(unix)]
pub mod temp_file;
pub mod terminal;
pub mod thread_priority;
pub mod ticker;
#[cfg(unix)]
pub mod tls;
#[cfg(target_os = "linux")]
pub mod udp;
pub mod uptime;
pub mod wheel;
