//! Keys of the proxy for connections to its servers: name resolution, paths, HTTP/2 and TLS.
//!
//! A minimum or maximum without a comment only rejects values that are surely mistakes.

use std::time::Duration;

use super::target::Target;
use super::{Key, Kind, Section};
use crate::binding::{Rendered, Scalar, bound};
use crate::choice::Choice;
use crate::model::{Host, Resolve};

/// Kind of the keys that name files with certificates or private keys.
const FILE: Kind = Kind::Text("PEM file");

const DAY_MS: u64 = 86_400_000;

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "resolve",
        &[Section::Proxy],
        Kind::Either(&[
            Kind::Choice(Resolve::WORDS),
            Kind::Duration {
                min_ms: 100,
                max_ms: DAY_MS,
            },
        ]),
        "Time at which the names of servers are resolved again. `\"ttl\"`: when the TTL of the DNS answer has expired, \
         but not before 1 second and not after 5 minutes. If the TTL is unknown, as for names in `/etc/hosts`, every \
         10 seconds. A duration: at this interval.",
    )
    .sets(&[Target::Proxy(bound!(
        read: |_, written, proxy| {
            let (kind, node) = (written.kind, &written.entry.node);
            let every = || Duration::read(kind, node).map(Resolve::Every);
            if let Some(resolve) = Resolve::read(kind, node).or_else(every) {
                proxy.resolve = resolve;
            }
        },
        render: |proxy, kind| match proxy.resolve {
            Resolve::Every(time) => time.render(kind),
            word => word.render(kind),
        }
    ))])
    .example("resolve = \"30s\"")
    .foreign_names(&["resolver", "dynamic", "resolvers"]),
    Key::new(
        "strip",
        &[Section::Proxy],
        Kind::Text("path below the site"),
        "Prefix that is removed from paths before requests are forwarded: with `\"/api\"`, a request for `/api/users` \
         is forwarded as `/users`. Paths in redirects and cookies of the response get the prefix again (`redirects`, \
         `cookie_paths`).",
    )
    .sets(&[Target::Proxy(bound!(render: |proxy, kind| proxy.strip.render(kind)))])
    .example("strip = \"/api\"")
    .foreign_names(&["strip_prefix", "uri strip_prefix", "handle_path"]),
    Key::new(
        "http2",
        &[Section::Proxy],
        Kind::Boolean,
        "Sends requests in HTTP/2 to servers under `https://` and at Unix sockets, as gRPC requires. `h2c://` always \
         uses HTTP/2. A server that does not speak HTTP/2 counts as failed; there is no fallback to HTTP/1.1.",
    )
    .sets(&[Target::Proxy(bound!(
        render: |proxy, kind| {
            // Servers at `https://` URLs and Unix sockets use HTTP/2 only if the key `http2` is set. Servers at
            // `h2c://` URLs use HTTP/2 without the key, so they are not considered.
            let needs_key = |host: &Host, is_secure| is_secure || matches!(host, Host::Unix(_));
            let mut servers = proxy.to.iter().map(|server| &server.upstream);
            servers
                .any(|it| it.http2 && needs_key(&it.host, it.is_secure))
                .render(kind)
        }
    ))])
    .example("to = \"https://grpc.internal\"\nhttp2 = true")
    .foreign_names(&["proxy_http_version", "versions", "grpc_pass"]),
    Key::new(
        "ca",
        &[Section::Proxy],
        Kind::Several(&FILE),
        "Certificate authorities that verify servers under `https://`, in place of those of the system. The files are \
         read at start and at a reload.",
    )
    .sets(&[Target::Proxy(bound!(
        render: |proxy, _| Rendered::some_paths(&proxy.tls.ca)
    ))])
    .example("ca = \"internal-ca.pem\"")
    .foreign_names(&[
        "proxy_ssl_trusted_certificate",
        "tls_trust_pool",
        "ca-file",
        "SSLProxyCACertificateFile",
    ]),
    Key::new(
        "server_name",
        &[Section::Proxy],
        Kind::Text("name or address"),
        "Server name in the TLS handshake (SNI), which the certificate of servers under `https://` must be valid for. \
         Without this setting, it is the host of each URL.",
    )
    .sets(&[Target::Proxy(bound!(
        render: |proxy, kind| proxy.tls.server_name.render(kind)
    ))])
    .example("server_name = \"app.internal\"")
    .foreign_names(&["proxy_ssl_name", "tls_server_name", "sni"]),
    Key::new(
        "verify",
        &[Section::Proxy],
        Kind::Boolean,
        "Verifies the certificates of servers under `https://`. `false` is dangerous: an attacker in the network can \
         read and change everything.",
    )
    .sets(&[Target::Proxy(bound!(
        render: |proxy, kind| proxy.tls.verify.render(kind)
    ))])
    .example("verify = false")
    .foreign_names(&["proxy_ssl_verify", "tls_insecure_skip_verify", "SSLProxyVerify"]),
    Key::new(
        "cert",
        &[Section::Proxy],
        FILE,
        "Client certificate, with its chain, for servers under `https://` that request one.",
    )
    .sets(&[Target::Proxy(bound!(
        render: |proxy, _| Rendered::some_paths(proxy.tls.client.iter().map(|(cert, _)| cert))
    ))])
    .example("cert = \"rocknet.pem\"")
    .foreign_names(&[
        "proxy_ssl_certificate",
        "tls_client_auth",
        "SSLProxyMachineCertificateFile",
    ]),
    Key::new(
        "key",
        &[Section::Proxy],
        FILE,
        "Private key of `cert`. Without this setting, the private key is read from the file of the certificate.",
    )
    .sets(&[Target::Proxy(bound!(
        render: |proxy, _| Rendered::some_paths(proxy.tls.client.iter().map(|(_, key)| key))
    ))])
    .example("cert = \"rocknet.pem\"\nkey = \"rocknet.key\"")
    .foreign_names(&["proxy_ssl_certificate_key"]),
];
