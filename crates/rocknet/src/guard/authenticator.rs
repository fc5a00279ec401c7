//! Authenticators: ways to identify clients that the addresses and passwords of a route leave undecided.

use std::sync::Arc;

use rocknet_handler::guard::{Admitted, Check, GuardContext};

/// Identifies the clients of a route.
pub(super) trait Authenticator: Send + Sync {
    /// Decides about a request.
    fn check(self: Arc<Self>, context: &GuardContext<'_>) -> Check;

    /// Returns the admission of a client whose address or password was sufficient. The authenticator did not identify
    /// the client, so the client must not appear as identified to applications.
    fn anonymous(&self, _context: &GuardContext<'_>, admitted: Admitted) -> Admitted {
        admitted
    }

    /// Returns the user of a request that is admitted without a call of [`check`](Self::check) and gets no fields. The
    /// outer `None`: `check` has to decide. The inner `None`: there is no user.
    fn admit_cached(&self, _context: &GuardContext<'_>) -> Option<Option<Arc<str>>> {
        None
    }

    /// Returns true if admitted requests get fields of an identity, or lose some, even if [`check`](Self::check) was
    /// not called.
    fn changes_requests(&self) -> bool {
        true
    }
}
