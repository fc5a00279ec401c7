//! Write batch that does nothing, for systems whose sockets are not supported yet.

pub(crate) struct BatchGuard;

pub(crate) fn install() -> BatchGuard {
    BatchGuard
}

pub(crate) fn flush_on_park() {}
