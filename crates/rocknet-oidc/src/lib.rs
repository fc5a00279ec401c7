//! Login by OpenID Connect (OpenID Connect Core 1.0, RFC 6749, RFC 7636): the messages that a browser, a provider and
//! this server exchange, as pure functions.
//!
//! ```text
//! PendingLogin ─▶ authorization URL, and a cookie ─▶ browser ─▶ provider ─▶ callback with code and state
//!                                                                              │
//! LoginSession ◀─ ClaimNames ◀─ Claims ◀─ id_token::verify ◀─ TokenResponse ◀─ TokenRequest
//!      └─▶ KeyRing::seal ─▶ cookies::write
//! ```
//! The crate opens no socket and reads no clock: times are arguments, in seconds of Unix time. Random numbers come from
//! the generator of the system.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod cookies;
#[doc(hidden)]
pub mod fuzzing;
pub mod id_token;

mod claims;
mod cookie_kind;
mod encoding;
mod identity_rules;
mod key_ring;
mod pending_login;
mod provider_metadata;
mod session;
mod signing_keys;
mod token_endpoint;

pub use claims::{ClaimError, ClaimNames, Claims};
pub use cookie_kind::CookieKind;
pub use encoding::{is_same_secret, random_text};
pub use identity_rules::IdentityRules;
pub use key_ring::{KeyRing, MAX_LIFETIME_S};
pub use pending_login::{AuthorizationRequest, LOGIN_TIME_S, PendingLogin};
pub use provider_metadata::{MetadataError, ProviderMetadata, SecretMethod, discovery_url, is_endpoint};
pub use session::LoginSession;
pub use signing_keys::SigningKeys;
pub use token_endpoint::{TokenError, TokenRequest, TokenResponse};
