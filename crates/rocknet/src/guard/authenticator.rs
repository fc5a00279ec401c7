//! Authenticators: ways other than passwords to identify the clients of a route.

use std::sync::Arc;

use rocknet_handler::guard::{Admitted, Check, GuardContext};

/// Identifies the clients of a route.
pub(super) trait Authenticator: Send + Sync {
    /// Decides about a request.
    fn check(self: Arc<Self>, context: &GuardContext<'_>) -> Check;

    /// Returns the admission of a client whose address was sufficient (`satisfy = "any"`). The authenticator did not
    /// identify the client, so the client must not appear as identified to applications.
    fn anonymous(&self, _context: &GuardContext<'_>, admitted: Admitted) -> Admitted {
        admitted
    }

    /// Returns the user of a request that is admitted without a call of [`check`](Self::check) and gets no fields. The
    /// outer `None`: `check` has to decide. The inner `None`: there is no user.
    fn admit_cached(&self, _context: &GuardContext<'_>) -> Option<Option<Arc<str>>> {
        None
    }

    /// Returns true if [`anonymous`](Self::anonymous) can change a request, for instance by removing fields of the
    /// client. The worker cache then leaves requests that an address admits to the slow path, which applies the change.
    fn changes_anonymous_requests(&self) -> bool {
        true
    }
}
