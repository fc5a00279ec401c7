//! Write batch that does nothing, for systems whose sockets are not supported yet.

/// Guard without effect.
pub(crate) struct BatchGuard;

/// Returns a guard without effect.
pub(crate) fn install() -> BatchGuard {
    BatchGuard
}

/// Does nothing, because no batch exists.
pub(crate) fn flush_on_park() {}
