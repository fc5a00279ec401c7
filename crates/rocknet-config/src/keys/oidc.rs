//! Keys of `auth` for the login by a provider of OpenID Connect.
//!
//! A minimum or maximum without a comment only rejects values that are surely mistakes.

use super::{Key, Kind, Section};
use crate::binding::quoted;
use crate::model::Oidc;
use crate::units;

const AUTH: &[Section] = &[Section::Auth];

const NAMES: Kind = Kind::Several(&Kind::Text("name"));

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "oidc",
        AUTH,
        Kind::Either(&[Kind::Boolean, Kind::Text("URL of the issuer")]),
        "Issuer: URL of a provider of OpenID Connect such as Keycloak, Authelia, Entra ID, Google or Auth0, exactly as the \
         provider writes it. Browsers without a session are redirected to the provider to log in; other requests \
         get 401. The provider has to know the address `https://HOST/.rocknet/oidc/callback`. In a route, `oidc = true` \
         takes all settings of its site, and further keys replace single ones. docs/oidc.md has examples.",
    )
    .example("oidc = \"https://id.example.com/\"\nclient_id = \"app\"")
    .foreign_names(&["openid", "oauth2_proxy", "openid_connect", "oidc_issuer_url", "OIDCProviderMetadataURL"]),
    Key::new(
        "client_id",
        AUTH,
        Kind::Text("identifier"),
        "Identifier of this server at the provider.",
    )
    .example("client_id = \"app\"")
    .foreign_names(&["OIDCClientID"]),
    Key::new(
        "client_secret",
        AUTH,
        Kind::Text("secret"),
        "Secret that the provider has given to this server. `\"${file:PATH}\"` keeps it out of the configuration. Without \
         it, the server is a public client, which proves itself by PKCE alone.",
    )
    .example("client_secret = \"VGhlIHNlY3JldA\"")
    .foreign_names(&["OIDCClientSecret", "client_secret_file"]),
    Key::new(
        "scopes",
        AUTH,
        Kind::Several(&Kind::Text("scope")),
        "Scopes that are requested. They decide which claims the provider sends. Many providers send groups only with a \
         scope such as `groups`. `openid` is always requested.",
    )
    .default(|| format!("[{}]", Oidc::SCOPES.map(quoted).join(", ")))
    .example("scopes = [\"openid\", \"profile\", \"email\", \"groups\"]")
    .foreign_names(&["scope", "OIDCScope"]),
    Key::new(
        "callback",
        AUTH,
        Kind::Text("path"),
        "Path to which the provider redirects browsers after a login. Its full address has to be registered at the \
         provider.",
    )
    .default(|| quoted(Oidc::CALLBACK))
    .example("callback = \"/oauth2/callback\"")
    .foreign_names(&["redirect_uri", "redirect_url", "OIDCRedirectURI"]),
    Key::new(
        "logout",
        AUTH,
        Kind::Text("path"),
        "Path that ends the session, and that of the provider if it has an `end_session_endpoint`. A link of another site \
         shows a page that asks first.",
    )
    .default(|| quoted(Oidc::LOGOUT))
    .example("logout = \"/logout\""),
    Key::new(
        "after_logout",
        AUTH,
        Kind::Text("URL"),
        "URL to which browsers are sent after a logout. It has to be registered at the provider, if the provider has an \
         `end_session_endpoint`.",
    )
    .example("after_logout = \"https://www.example.com/\"")
    .foreign_names(&["post_logout_redirect_uri", "OIDCDefaultLoggedOutURL"]),
    Key::new(
        "user_claim",
        AUTH,
        Kind::Text("claim"),
        "Claim with the name of the user, for `Remote-User`, the access log, `{user}` and `REMOTE_USER`. `sub` is the only \
         claim that no other user can ever have; `preferred_username` and `email` can be read more easily.",
    )
    .default(|| quoted(Oidc::USER_CLAIM))
    .example("user_claim = \"preferred_username\"")
    .foreign_names(&["OIDCRemoteUserClaim", "username_claim"]),
    Key::new(
        "groups_claim",
        AUTH,
        Kind::Text("claim"),
        "Claim with the groups of the user: a text or a list of texts. A dot leads into an object.",
    )
    .default(|| quoted(Oidc::GROUPS_CLAIM))
    .example("groups_claim = \"realm_access.roles\"")
    .foreign_names(&["oidc_groups_claim", "roles_claim"]),
    Key::new(
        "groups",
        AUTH,
        NAMES,
        "Groups of which a user needs one; other users get 403. If `users` or `emails` is set too, the user has to meet \
         each of these keys.",
    )
    .example("groups = [\"admins\"]")
    .foreign_names(&["allowed_groups"]),
    Key::new(
        "emails",
        AUTH,
        Kind::Several(&Kind::Text("address or @domain")),
        "Email addresses of the users who may enter. `@example.com` stands for all addresses of a domain. An address \
         counts only if the provider has verified it (`email_verified`).",
    )
    .example("emails = [\"@example.com\", \"ann@example.org\"]")
    .foreign_names(&["email_domain", "email_domains", "authenticated_emails"]),
    Key::new(
        "trust_email",
        AUTH,
        Kind::Boolean,
        "Accepts email addresses without `email_verified`. Only for providers whose users cannot choose their address; \
         otherwise a user can take that of another one.",
    )
    .default(|| "false".to_owned())
    .example("trust_email = true")
    .foreign_names(&["insecure_oidc_allow_unverified_email"]),
    Key::new(
        "lifetime",
        AUTH,
        Kind::Duration {
            min_ms: 60_000,
            max_ms: 30 * 24 * 3_600_000,
        },
        "Maximum time of a session. After it, the user has to log in again. A change at the provider, such as a removed \
         group, takes effect at that time.",
    )
    .default(|| quoted(&units::format_duration(Oidc::LIFETIME)))
    .example("lifetime = \"8h\"")
    .foreign_names(&["cookie_expire", "OIDCSessionMaxDuration"]),
    Key::new(
        "idle",
        AUTH,
        Kind::Duration {
            min_ms: 10_000,
            max_ms: 30 * 24 * 3_600_000,
        },
        "Maximum time between two requests of a session. After it, the user has to log in again.",
    )
    .default(|| quoted(&units::format_duration(Oidc::IDLE)))
    .example("idle = \"30m\"")
    .foreign_names(&["OIDCSessionInactivityTimeout"]),
];
