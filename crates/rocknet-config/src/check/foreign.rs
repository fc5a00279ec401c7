//! Advice for operators who write keywords of other servers that are not keys of RockNet.
//!
//! A keyword with one equivalent key is listed in `Key::foreign_names` of that key. `WORDS` and `PREFIXES` list the
//! keywords whose advice needs a sentence.

/// Advice for a keyword of another server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Advice {
    /// Help text that names the equivalent in RockNet.
    Equivalent(&'static str),
    /// Feature of a later version that will be the equivalent, as a noun phrase: `a later version will have …`.
    Later(&'static str),
    /// Help text that names the nearest alternative, because RockNet has no equivalent.
    Unsupported(&'static str),
}

use Advice::{Equivalent, Later, Unsupported};

/// Returns the advice for a whole keyword; `None` if `WORDS` does not list it. Upper and lower case are not
/// distinguished.
pub(super) fn find(word: &str) -> Option<Advice> {
    search(WORDS, |keyword| keyword.eq_ignore_ascii_case(word))
}

/// Returns the advice for a keyword with a known prefix, such as `ssl_`. The caller uses it if [`find`] has no advice.
pub(super) fn find_prefix(word: &str) -> Option<Advice> {
    search(PREFIXES, |start| {
        word.get(..start.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(start))
    })
}

/// Returns the text of the advice for a keyword of another server; `None` if the keyword is not known.
pub(crate) fn advice(word: &str) -> Option<String> {
    find(word).or_else(|| find_prefix(word)).map(|advice| match advice {
        Equivalent(text) | Unsupported(text) => text.to_owned(),
        Later(feature) => format!("not available yet: a later version will have {feature}"),
    })
}

/// Returns the advice of the first row with a word for which `fits` returns true; `None` if there is no such row.
fn search(table: &[(&[&str], Advice)], fits: impl Fn(&str) -> bool) -> Option<Advice> {
    let row = table.iter().find(|(words, _)| words.iter().any(|word| fits(word)));
    row.map(|(_, advice)| *advice)
}

// Advice with a long text, or for several rows.
const ROUTE: Advice = Equivalent("write a route, [site.\"example.com\".route.\"/path/*\"], and its settings below it");
const RULE: Advice = Equivalent(
    "write a rule, [[site.\"example.com\".rule]], with path = \"/old/*\" and rewrite = \"/new/{*}\"; to redirect clients \
     write redirects = { \"/old/*\" = \"/new/{*}\" }",
);
const AUTOMATIC: Advice = Equivalent("remove it: RockNet does this automatically");
const RATE: Advice = Equivalent(
    "write limit = { rate = \"10/s\" }, { connections = 20 } or { bandwidth = \"1MiB/s\" } in the site or route",
);
const METRICS: Advice = Equivalent(
    "remove it, and write listen = \"127.0.0.1:7625\" below [admin]: that address has the dashboard, and metrics at /metrics",
);
const PASSWORDS: Advice = Equivalent(
    "write auth = { bob = \"…\" } with a hash from rocknet hash-password, or auth = { file = \"htpasswd\" }",
);
const ADDRESSES: Advice =
    Equivalent("write allow = [\"10.0.0.0/8\"], which denies all others, or deny = [\"192.0.2.0/24\"]");
const COUNTRIES: Advice = Unsupported("remove it; the networks of a country can be listed in `allow` or `deny`");
const HTTP3: Advice = Later("settings of QUIC");
const TYPES: Advice =
    Equivalent("most types are built in; write further ones as types = { \".model\" = \"model/gltf-binary\" }");
const AUTH_SUBREQUESTS: Advice = Equivalent(
    "write auth = { forward = \"http://127.0.0.1:9091/verify\" } with the URL of the authorization service; \
     see docs/forward-auth.md",
);
const SIGNED_URLS: Advice = Equivalent("write auth = { signed = true }; see docs/signed-urls.md");
const BODY_CHANGES: Advice = Unsupported("remove it: response bodies are not changed; an application can change them");
const CODE: Advice = Equivalent("run your own code by `controller`, `cgi`, `fastcgi` or `proxy`");
const HTACCESS: Advice = Equivalent(
    "remove it: files in folders (.htaccess) do not change settings; write their content here, as keys, routes and rules",
);
const MODULES: Advice = Equivalent("remove it: all features are built in; your own code is loaded by `controller`");
const EXPIRES: Advice =
    Equivalent("write headers = { Cache-Control = \"max-age=86400\" }, or in a route such as \"*.css\" for some files");
const VARIABLES: Advice =
    Equivalent("there are no variables: write a rule for each case, with `path`, `host`, `header` or `query`");
const SITE: Advice = Equivalent("write a table for each site: [site.\"example.com\"]");
const UPSTREAM: Advice =
    Equivalent("name the servers in the proxy of a site: proxy = [\"http://10.0.0.2:3000\", \"http://10.0.0.3:3000\"]");
const PHP_INI: Advice = Equivalent(
    "write it into `ini` of `php`: php = { ini = { memory_limit = \"256M\" } }; or into .user.ini beside the scripts",
);
const SCRIPTS: Advice = Equivalent("write php = \"auto\" for PHP, cgi = \"/cgi-bin\" for other programs");
const SITE_NAMES: Advice =
    Equivalent("write the name in the header, [site.\"www.example.com\"], and further names in `aliases`");

/// Groups of keywords, each with the advice for every keyword of the group.
const WORDS: &[(&[&str], Advice)] = &[
    (
        &["alias", "AliasMatch"],
        Equivalent("write it in a route: [site.\"example.com\".route.\"/files/*\"] and alias = \"/srv/data\""),
    ),
    (
        &[
            "expires",
            "ExpiresActive",
            "ExpiresByType",
            "ExpiresDefault",
            "cache_control",
            "max_age",
        ],
        EXPIRES,
    ),
    (&["server_name", "ServerName", "hostname"], SITE_NAMES),
    (
        &["file_server", "static", "static_files"],
        Equivalent("write root = \"/var/www\"; browse = true lists folders"),
    ),
    (
        &[
            "location",
            "LocationMatch",
            "handle",
            "handle_path",
            "Directory",
            "DirectoryMatch",
            "Files",
            "FilesMatch",
            "routes",
        ],
        ROUTE,
    ),
    (
        &[
            "AllowOverride",
            "AllowOverrideList",
            "AccessFileName",
            "htaccess",
            ".htaccess",
        ],
        HTACCESS,
    ),
    (
        &[
            "rate_limit",
            "ratelimit",
            "rate-limit",
            "throttle",
            "limit_req",
            "limit_req_zone",
        ],
        Equivalent("write limit = { rate = \"10/s\", burst = 20 } in the site or route"),
    ),
    (&["limit_conn", "limit_conn_zone", "limit_rate"], RATE),
    (
        &[
            "metrics",
            "prometheus",
            "stub_status",
            "server_status",
            "ExtendedStatus",
            "status_page",
            "dashboard",
        ],
        METRICS,
    ),
    (
        &["forward_auth", "auth_request", "forwardauth", "jwt", "oauth2"],
        AUTH_SUBREQUESTS,
    ),
    (&["secure_link", "secure_link_md5", "secure_link_secret"], SIGNED_URLS),
    (
        &[
            "auth_basic_user_file",
            "AuthName",
            "AuthUserFile",
            "AuthGroupFile",
            "AuthBasicProvider",
            "htpasswd",
        ],
        PASSWORDS,
    ),
    (&["auth_basic", "basicauth", "basic_auth", "AuthType"], PASSWORDS),
    (
        &[
            "Require",
            "Order",
            "Satisfy",
            "remote_ip",
            "ip_whitelist",
            "ip_allow",
            "ip_deny",
        ],
        ADDRESSES,
    ),
    (&["TypesConfig"], TYPES),
    (
        &["charset", "AddDefaultCharset", "AddCharset"],
        Equivalent("remove it: texts are sent as UTF-8"),
    ),
    (
        &["http"],
        Equivalent("remove it: [server] and [site.\"example.com\"] are top-level tables of the file"),
    ),
    (&["upstream", "upstreams", "services", "backends"], UPSTREAM),
    (
        &[
            "frontend",
            "frontends",
            "VirtualHost",
            "virtualhosts",
            "virtual_hosts",
            "vhost",
            "vhosts",
            "hosts",
        ],
        SITE,
    ),
    (&["entrypoints"], Equivalent("write listen = [80, 443] in a site")),
    (
        &[
            "sendfile",
            "EnableSendfile",
            "tcp_nopush",
            "tcp_nodelay",
            "aio",
            "directio",
            "etag",
            "FileETag",
            "merge_slashes",
            "KeepAlive",
        ],
        AUTOMATIC,
    ),
    (
        &["server_tokens", "ServerTokens", "ServerSignature", "server.tag"],
        Equivalent("remove it: the version is not sent; headers = { Server = \"\" } removes the field"),
    ),
    (
        &["default_server"],
        Equivalent("name the site [site.default]: it serves every name that no other site has"),
    ),
    (
        &[
            "sub_filter",
            "replace",
            "templates",
            "ssi",
            "Substitute",
            "AddOutputFilter",
            "SetOutputFilter",
            "image_filter",
            "minify",
        ],
        BODY_CHANGES,
    ),
    (
        &["dav", "dav_methods", "webdav"],
        Unsupported("remove it; an application behind `proxy` or `fastcgi` can speak WebDAV"),
    ),
    (&["perl", "lua", "njs", "wasm", "plugins", "middlewares"], CODE),
    (
        &[
            "map",
            "geo",
            "set",
            "split_clients",
            "vars",
            "SetEnvIf",
            "matcher",
            "matchers",
        ],
        VARIABLES,
    ),
    (
        &[
            "if",
            "rewrite",
            "RewriteRule",
            "RewriteCond",
            "RewriteEngine",
            "RewriteBase",
            "RewriteMap",
            "uri",
            "url.rewrite-once",
        ],
        RULE,
    ),
    (
        &["return", "abort"],
        Equivalent(
            "write a rule, [[site.\"example.com\".rule]], with `path` and respond = 404, or redirects = { \"/old\" = \"/new\" }",
        ),
    ),
    (
        &["Options"],
        Equivalent(
            "write browse = true (Indexes), symlinks = \"all\" (FollowSymLinks) or cgi = \"/cgi-bin\" (ExecCGI)",
        ),
    ),
    (&["AddHandler", "SetHandler", "Action", "ScriptSock"], SCRIPTS),
    (
        &["IfModule", "IfDefine", "LoadModule", "load_module", "server.modules"],
        MODULES,
    ),
    (
        &["UserDir", "public_html"],
        Unsupported("write a site for each user, with the user's folder as its `root`"),
    ),
    (&["php_value", "php_admin_value", "php_flag", "php_admin_flag"], PHP_INI),
    (
        &["ServerAdmin"],
        Equivalent(
            "remove it; the contact address for certificate authorities is in [tls]: email = \"me@example.com\"",
        ),
    ),
    (
        &["import", "Include", "IncludeOptional", "include_shell"],
        Equivalent("write include = [\"sites/*.toml\"] at the top of the file"),
    ),
    (
        &["websocket", "websockets", "upgrade"],
        Equivalent("remove it: proxies forward WebSocket automatically"),
    ),
    (
        &["tracing", "opentelemetry", "otel"],
        Equivalent("write the section [tracing] with endpoint = \"http://127.0.0.1:4318\""),
    ),
    (
        &["valid_referers", "hotlink"],
        Equivalent(
            "write a rule, [[site.\"example.com\".rule]], with header = { Referer = \"https://evil.example/*\" } and respond = 403",
        ),
    ),
    (
        &["daemon", "Daemonize", "pid", "PidFile"],
        Equivalent("remove it: RockNet runs in the foreground, under a service manager"),
    ),
];

/// Advice for prefixes of keywords, which is used if the whole keyword has no advice.
const PREFIXES: &[(&[&str], Advice)] = &[
    (
        &["ssl_", "SSL"],
        Equivalent(
            "remove it: RockNet selects ciphers and resumes sessions; `tls` of a site takes cert, key, min and client_ca",
        ),
    ),
    (&["limit_"], RATE),
    (&["auth_", "Auth"], PASSWORDS),
    (
        &["proxy_cache"],
        Equivalent("write cache = true in the site or route; what is stored follows Cache-Control of the responses"),
    ),
    (
        &["proxy_", "Proxy", "Balancer"],
        Equivalent("write settings of a proxy in its table: proxy = { to = \"http://127.0.0.1:3000\", … }"),
    ),
    (
        &["fastcgi_", "uwsgi_", "scgi_"],
        Equivalent(
            "write php = \"auto\" for PHP; for other applications fastcgi = { to = \"127.0.0.1:9000\", … }, or `scgi` or `uwsgi`",
        ),
    ),
    (
        &["gzip_", "brotli_", "zstd_"],
        Equivalent("write compress = true or false: RockNet selects the coding and its level"),
    ),
    (
        &["autoindex_", "Index"],
        Equivalent("write browse = true to list folders"),
    ),
    (&["Rewrite", "rewrite_"], RULE),
    (&["Expires"], EXPIRES),
    (
        &["dav_", "Dav"],
        Unsupported("remove it; an application behind `proxy` or `fastcgi` can speak WebDAV"),
    ),
    (&["http3_", "quic_"], HTTP3),
    (&["include_types"], TYPES),
    (&["perl_", "lua_", "js_", "content_by_", "access_by_"], CODE),
    (&["geoip", "GeoIP"], COUNTRIES),
    (
        &["cache_"],
        Equivalent("write cache = { memory = \"256MiB\" } at the top of the file"),
    ),
];

#[cfg(test)]
mod tests;
