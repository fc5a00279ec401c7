//! Sockets, files and time: the one home of system calls and of `unsafe`. Knows nothing of HTTP.
