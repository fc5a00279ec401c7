//! Access over TCP: by a token with full permission, by a token that permits only reading, or by a password.

use base64ct::{Base64, Encoding};
use rocknet_access::{self as access, Access, Check, Decision, State};
use rocknet_config::model::{Auth, PasswordAuth, PasswordHash, Priority, Settings};
use rocknet_control::api::{ApiError, Permission};
use rocknet_handler::exchange::{Client, Exchange};

use crate::guard::AllowedHosts;
use crate::tokens::{Failures, Tokens};

/// User name for the password.
const USER: &str = "admin";

/// Credentials that a server accepts at a TCP address, and the hosts by which clients may address it.
pub struct TcpAccess {
    tokens: Tokens,
    /// Verifies the password; `None` if no password is configured.
    password: Option<Access>,
    /// Counter of requests without valid credentials.
    pub(crate) failures: Failures,
    pub(crate) hosts: AllowedHosts,
}

impl TcpAccess {
    /// Accepts `tokens`, and a password if its hash is given. `key`: random key of the fingerprints that identify
    /// verified passwords.
    pub fn new(tokens: Tokens, password: Option<PasswordHash>, hosts: AllowedHosts, key: [u8; 32]) -> TcpAccess {
        let basic = |hash| {
            let settings = Settings {
                auth: Some(Auth::Passwords(PasswordAuth {
                    realm: "RockNet".to_owned(),
                    users: [(USER.to_owned(), hash)].into(),
                    file: None,
                })),
                ..Settings::default()
            };
            // `Access::new` fails only without users, and there is one.
            Access::new(&settings, &State::new(key)).ok().flatten()
        };
        TcpAccess {
            tokens,
            password: password.and_then(basic),
            failures: Failures::default(),
            hosts,
        }
    }

    /// Returns the permission of a value of `Authorization`: the permission of a token (RFC 6750 §2.1), or full
    /// permission for the user `admin` with the password (RFC 7617). Returns `None` for any other value.
    ///
    /// # Errors
    ///
    /// Status 429 after too many wrong passwords of a client, 503 if too many passwords are being verified.
    pub(crate) async fn permission(
        &self,
        exchange: &Exchange,
        authorization: &[u8],
    ) -> Result<Option<Permission>, ApiError> {
        if let Some(permission) = self.tokens.permission(authorization) {
            return Ok(Some(permission));
        }
        let Some(password) = &self.password else {
            return Ok(None);
        };
        let client = match exchange.peer {
            Client::Ip { address, .. } => access::Client::Ip(address),
            Client::Local => access::Client::Unix,
        };
        let services = &exchange.services;
        let decision = match password.check(services.clock.uptime_ms(), client, Some(authorization)) {
            Check::Decided(decision) => decision,
            // A verification takes tens of milliseconds, so the thread pool runs it. The pool may be full.
            Check::Verify(pending) => {
                let job = services.pool.spawn(Priority::Low, move || pending.run());
                job.await.unwrap_or(Decision::Unavailable { retry_after_s: 1 })
            }
            // Does not occur, because the settings of `password` name no external authenticator.
            Check::Authenticate => Decision::Forbidden,
        };
        match decision {
            Decision::Granted { .. } => Ok(Some(Permission::Full)),
            Decision::Challenge { .. } | Decision::Forbidden => Ok(None),
            Decision::Throttled { retry_after_s } => {
                let message = format!("too many wrong passwords; wait {retry_after_s} seconds");
                Err(ApiError::new(429, message))
            }
            Decision::Unavailable { .. } => Err(ApiError::new(503, "too many passwords are being verified; try again")),
        }
    }

    /// Returns the permission of a token or password that a user has typed; `None` if the text is neither.
    ///
    /// # Errors
    ///
    /// Fails in the same cases as [`TcpAccess::permission`].
    pub(crate) async fn permission_of_text(
        &self,
        exchange: &Exchange,
        text: &str,
    ) -> Result<Option<Permission>, ApiError> {
        let token = format!("Bearer {}", text.trim());
        if let Some(permission) = self.tokens.permission(token.as_bytes()) {
            return Ok(Some(permission));
        }
        if text.len() > access::credentials::MAX_PASSWORD_BYTES {
            return Ok(None);
        }
        let basic = format!("Basic {}", Base64::encode_string(format!("{USER}:{text}").as_bytes()));
        self.permission(exchange, basic.as_bytes()).await
    }
}
