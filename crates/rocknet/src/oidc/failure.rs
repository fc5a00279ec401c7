//! Failures of providers.

use std::fmt;

use rocknet_proto::status::Status;

/// Failure of a provider, with the status of the response to the browser.
#[derive(Debug, Clone)]
pub struct ProviderFailure {
    /// Status of the response.
    pub status: Status,
    reason: String,
}

impl ProviderFailure {
    /// The provider cannot be reached.
    pub fn unreachable(reason: impl fmt::Display) -> ProviderFailure {
        ProviderFailure {
            status: Status::BAD_GATEWAY,
            reason: format!("it cannot be reached: {reason}"),
        }
    }

    /// The response of the provider is invalid.
    pub fn invalid(reason: impl fmt::Display) -> ProviderFailure {
        ProviderFailure {
            status: Status::BAD_GATEWAY,
            reason: reason.to_string(),
        }
    }

    /// The provider does not respond in time.
    pub fn timed_out() -> ProviderFailure {
        ProviderFailure {
            status: Status::GATEWAY_TIMEOUT,
            reason: "it takes longer than `timeout`".to_owned(),
        }
    }

    /// There are too many requests to providers.
    pub fn busy() -> ProviderFailure {
        ProviderFailure {
            status: Status::SERVICE_UNAVAILABLE,
            reason: "too many logins are in progress".to_owned(),
        }
    }
}

impl fmt::Display for ProviderFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}
