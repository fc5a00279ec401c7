//! Keys of access control: client addresses, users and passwords.
//!
//! A minimum or maximum without a comment only rejects values that are surely mistakes.

use super::certificate_rule;
use super::target::Target;
use super::{Key, Kind, Section};
use crate::binding::{Rendered, SettingGroup, bound, field, quoted};
use crate::choice::Choice;
use crate::model::{Auth, ClientRange, DEFAULT_REALM, ForwardAuth, Oidc, PasswordAuth, Satisfy, SignedUrls};
use crate::units;
use crate::value::settings;

/// Sections of the keys that sites and routes accept.
const BOTH: &[Section] = &[Section::Site, Section::Route];

const ADDRESSES: Kind = Kind::Several(&Kind::Text("address, network, \"private\", \"unix\" or \"all\""));

const USERS: Kind = Kind::Map {
    name: "user",
    value: &Kind::Text("hash of the password"),
};

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "allow",
        BOTH,
        ADDRESSES,
        "Client addresses that are allowed; all others get 403. Each is an address, a network such as `10.0.0.0/8`, \
         `\"private\"` (loopback, private and link-local networks: `127.0.0.0/8`, `10.0.0.0/8`, `172.16.0.0/12`, \
         `192.168.0.0/16`, `169.254.0.0/16`, `::1`, `fc00::/7`, `fe80::/10`), `\"unix\"` (clients of a Unix socket) \
         or `\"all\"`. Behind a proxy of `server.trusted_proxies`, the address that the proxy names counts. An \
         address that is also in `deny` is denied. The list of a route replaces that of its site, so `allow = \
         \"all\"` lifts the restriction.",
    )
    .group(SettingGroup::Access)
    .sets(&[Target::Settings(bound!(
        read: settings::allow,
        render: |settings, _| match &settings.access.allow[..] {
            [] => Rendered::text("all"),
            allow => ranges(allow),
        }
    ))])
    .example("allow = [\"10.0.0.0/8\", \"2001:db8::/32\"]")
    .foreign_names(&["Require", "ip_allow", "ip_whitelist", "remote_ip"]),
    Key::new(
        "deny",
        BOTH,
        ADDRESSES,
        "Client addresses that get 403, written as in `allow`. Without `allow`, all others are allowed. The list of a \
         route replaces that of its site, so `deny = []` lifts the restriction.",
    )
    .group(SettingGroup::Access)
    .sets(&[Target::Settings(bound!(read: settings::deny, render: |settings, _| ranges(&settings.access.deny)))])
    .example("deny = \"203.0.113.0/24\"")
    .foreign_names(&["ip_deny"]),
    Key::new(
        "auth",
        BOTH,
        Kind::Either(&[Kind::Boolean, Kind::Table(Section::Auth), USERS]),
        "Users and their password hashes, for HTTP Basic authentication: a request without a valid user and password \
         gets 401. `rocknet hash-password` creates a hash; argon2, bcrypt, SHA-crypt and apr1 are accepted. A table \
         with one of the keys `realm`, `users`, `file`, `forward`, `signed`, `certificate` or `oidc` is the long \
         form; in any other table each key is a user. With `forward`, an authorization service decides about each \
         request, as with `auth_request` of nginx and `forward_auth` of Caddy. With `signed`, only signed URLs are \
         admitted. With `certificate`, clients need a certificate of a certificate authority in `client_ca` of `tls`. \
         With `oidc`, users log in at a provider of OpenID Connect. The users of a route replace those of its site, \
         so a route can admit fewer users. In a route, `auth = false` turns authentication off. After 10 different \
         wrong passwords within a minute, the client's address gets 429 for the rest of that minute.",
    )
    .group(SettingGroup::Access)
    .sets(&[Target::Settings(bound!(
        read: settings::auth,
        render: |settings, _| Rendered::or_off(settings.auth.as_ref().map(auth))
    ))])
    .example("auth = { bob = \"$argon2id$v=19$m=19456,t=2,p=1$q5Kkn0Zr7l1sYkR0b2VQxg$Zk1cJ4m0o5eT8uN2xq7sWQvB3yH6dLrPfGaEiCjXtUo\" }")
    .foreign_names(&["auth_basic", "basicauth", "basic_auth", "AuthType"]),
    Key::new(
        "satisfy",
        BOTH,
        Kind::Choice(Satisfy::WORDS),
        "Restrictions that a client has to meet if `allow` is set together with `auth`: all of them, or any. With \
         `\"any\"`, a client in `allow` needs no password, and all others need one, also those in `deny`. Without \
         `allow`, or with `allow = \"all\"`, it has no effect: each client needs a password.",
    )
    .group(SettingGroup::Access)
    .sets(&[Target::Settings(field!(satisfy))])
    .example("satisfy = \"any\"")
    .foreign_names(&["Satisfy"]),
    Key::new(
        "realm",
        &[Section::Auth],
        Kind::Text("text that browsers may show"),
        "Realm of the protected resources. Browsers send the same password to every page of a site with the same \
         realm.",
    )
    .default(|| quoted(DEFAULT_REALM))
    .example("realm = \"staff only\"")
    .foreign_names(&["AuthName"]),
    Key::new(
        "users",
        &[Section::Auth],
        Kind::Either(&[USERS, Kind::List(&Kind::Text("name"))]),
        "Users and their password hashes. With `oidc`, a list of the users who may enter.",
    )
    .example("users = { ann = \"$2y$10$Vm9xkTqW3uL5pYc8nZr1deJ0aHsG7bKfXoQiRwEtCvBnMzLyPuSdK\" }"),
    Key::new(
        "file",
        &[Section::Auth],
        Kind::Text("file"),
        "File with `user:hash` on each line, as Apache's `htpasswd` and `rocknet hash-password --user` write it. A \
         changed file is read again without a reload. A user in `users` takes precedence over the same user in the \
         file.",
    )
    .example("file = \"/etc/rocknet/htpasswd\"")
    .foreign_names(&["auth_basic_user_file", "AuthUserFile", "htpasswd"]),
    Key::new(
        "forward",
        &[Section::Auth],
        Kind::Text("URL of the authorization service"),
        "Authorization service that decides about each request: a server such as oauth2-proxy, Authelia or \
         authentik. It receives a GET request with the header fields of the request and with `X-Forwarded-Method`, \
         `-Proto`, `-Host`, `-Uri` and `-For`. With a response from 200 to 299 the request is admitted; any other \
         response is sent to the client, such as a redirect to a login page. If the service does not respond, no \
         request is admitted. docs/forward-auth.md has examples.",
    )
    .example("forward = \"http://127.0.0.1:9091/api/authz/forward-auth\"")
    .foreign_names(&["auth_request", "forward_auth", "forwardAuth"]),
    Key::new(
        "headers",
        &[Section::Auth],
        Kind::Several(&Kind::Text("field name")),
        "Names of the fields that are copied from the response of the authorization service to the request, for \
         upstreams and applications. Fields of the client with these names are removed.",
    )
    .default(|| format!("[{}]", ForwardAuth::HEADERS.map(quoted).join(", ")))
    .example("forward = \"http://127.0.0.1:4180/oauth2/auth\"\nheaders = [\"X-Auth-Request-User\", \"X-Auth-Request-Email\"]")
    .foreign_names(&["auth_request_set", "copy_headers", "authResponseHeaders"]),
    Key::new(
        "user_field",
        &[Section::Auth],
        Kind::Text("field name"),
        "Name of the field in the response of the authorization service that contains the user, for the access log, \
         `{user}` and `REMOTE_USER`.",
    )
    .default(|| quoted(ForwardAuth::USER_FIELD))
    .example("forward = \"http://127.0.0.1:4180/oauth2/auth\"\nuser_field = \"X-Auth-Request-User\""),
    Key::new(
        "sign_in",
        &[Section::Auth],
        Kind::Text("path or URL"),
        "Page to which a client is redirected (302) if the authorization service responds with 401, with \
         placeholders such as `{scheme}`, `{host}` and `{target}`. Cookies of that response are sent, too. \
         `\"{location}\"` stands for the field `Location` of that response. Without the key, the client gets the \
         response.",
    )
    .example("forward = \"http://127.0.0.1:4180/oauth2/auth\"\nsign_in = \"/oauth2/sign_in?rd={scheme}://{host}{target}\"")
    .foreign_names(&["error_page"]),
    Key::new(
        "timeout",
        &[Section::Auth],
        Kind::Duration { min_ms: 1, max_ms: 300_000 },
        "Time in which the authorization service of `forward`, or the provider of `oidc`, has to respond. After it, \
         the client gets 504.",
    )
    .default(|| "\"10s\"".to_owned())
    .example("forward = \"http://127.0.0.1:9091/verify\"\ntimeout = \"3s\""),
];

/// Renders client addresses as they are written in `allow` and `deny`.
fn ranges(ranges: &[ClientRange]) -> Rendered {
    Rendered::texts(ranges.iter().map(ToString::to_string))
}

/// Renders the authorization service of an `auth`.
fn forward_auth(forward: &ForwardAuth) -> Rendered {
    let names: Vec<_> = forward.headers.iter().map(|name| quoted(name)).collect();
    let sign_in = forward
        .sign_in
        .as_ref()
        .map(|sign_in| format!("sign_in = {}, ", quoted(sign_in.text())));
    Rendered::Value(format!(
        "{{ forward = {}, headers = [{}], user_field = {}, {}timeout = {} }}",
        quoted(&forward.to_string()),
        names.join(", "),
        quoted(&forward.user_field),
        sign_in.unwrap_or_default(),
        quoted(&units::format_duration(forward.timeout)),
    ))
}

/// Renders the origin of the keys of signed URLs.
fn signed_urls(signed: &SignedUrls) -> Rendered {
    Rendered::Value(match signed {
        SignedUrls::Generated => "{ signed = true }".to_owned(),
        SignedUrls::File(path) => format!("{{ signed = {} }}", quoted(&path.to_string_lossy())),
    })
}

/// Renders the provider of an `auth`, without its secret.
fn oidc(oidc: &Oidc) -> Rendered {
    let list = |names: &[String]| {
        let names: Vec<_> = names.iter().map(|name| quoted(name)).collect();
        format!("[{}]", names.join(", "))
    };
    let mut words = vec![
        format!("oidc = {}", quoted(&oidc.issuer)),
        format!("client_id = {}", quoted(&oidc.client_id)),
    ];
    if oidc.client_secret.is_some() {
        words.push("client_secret = …".to_owned());
    }
    words.push(format!("scopes = {}", list(&oidc.scopes)));
    words.push(format!("callback = {}", quoted(&oidc.callback)));
    words.push(format!("logout = {}", quoted(&oidc.logout)));
    words.extend(
        oidc.after_logout
            .iter()
            .map(|url| format!("after_logout = {}", quoted(url))),
    );
    words.push(format!("user_claim = {}", quoted(&oidc.user_claim)));
    words.push(format!("groups_claim = {}", quoted(&oidc.groups_claim)));
    for (key, names) in [
        ("users", &oidc.users),
        ("emails", &oidc.emails),
        ("groups", &oidc.groups),
    ] {
        if !names.is_empty() {
            words.push(format!("{key} = {}", list(names)));
        }
    }
    words.push(format!("trust_email = {}", oidc.trust_email));
    for (key, time) in [
        ("lifetime", oidc.lifetime),
        ("idle", oidc.idle),
        ("timeout", oidc.timeout),
    ] {
        words.push(format!("{key} = {}", quoted(&units::format_duration(time))));
    }
    Rendered::Value(format!("{{ {} }}", words.join(", ")))
}

/// Renders the authentication of clients, without secrets.
fn auth(auth: &Auth) -> Rendered {
    match auth {
        Auth::Passwords(passwords) => self::passwords(passwords),
        Auth::Forward(forward) => forward_auth(forward),
        Auth::Signed(signed) => signed_urls(signed),
        Auth::Certificate(rule) => certificate_rule::rendered(rule),
        Auth::Oidc(provider) => oidc(provider),
    }
}

/// Renders users without their hashes.
fn passwords(auth: &PasswordAuth) -> Rendered {
    let mut words = vec![format!("realm = {}", quoted(&auth.realm))];
    if !auth.users.is_empty() {
        let names: Vec<_> = auth.users.keys().map(|name| format!("{} = …", quoted(name))).collect();
        words.push(format!("users = {{ {} }}", names.join(", ")));
    }
    if let Some(file) = &auth.file {
        words.push(format!("file = {}", quoted(&file.to_string_lossy())));
    }
    Rendered::Value(format!("{{ {} }}", words.join(", ")))
}
