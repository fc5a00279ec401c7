//! Variables of nginx, Apache and Caddy, and the equivalent placeholders.

use std::borrow::Cow;

use super::error::TemplateError;

/// Variables of nginx, without `$`, and the placeholders for them.
const NGINX: &[(&str, &str)] = &[
    ("remote_addr", "client.ip"),
    ("binary_remote_addr", "client.ip"),
    ("remote_port", "client.port"),
    ("realip_remote_addr", "peer.ip"),
    ("remote_user", "user"),
    ("host", "host"),
    ("http_host", "authority"),
    ("server_name", "site"),
    ("scheme", "scheme"),
    ("request_method", "method"),
    ("request_uri", "target"),
    ("uri", "path"),
    ("document_uri", "path"),
    ("args", "query"),
    ("query_string", "query"),
    ("request_id", "request.id"),
    ("server_protocol", "protocol"),
    ("ssl_protocol", "tls.version"),
    ("ssl_cipher", "tls.cipher"),
    ("ssl_server_name", "tls.server_name"),
    ("ssl_client_s_dn", "tls.client.subject"),
    ("ssl_client_verify", "tls.client.verify"),
    ("ssl_client_i_dn", "tls.client.issuer"),
    ("ssl_client_serial", "tls.client.serial"),
    ("ssl_client_escaped_cert", "tls.client.pem"),
    ("status", "status"),
    ("body_bytes_sent", "bytes.sent"),
    ("bytes_sent", "bytes.sent"),
    ("request_length", "bytes.received"),
    ("request_time", "duration"),
    ("upstream_addr", "upstream"),
    ("upstream_cache_status", "cache.status"),
    ("upstream_response_time", "upstream.duration"),
    ("upstream_header_time", "upstream.duration"),
    ("msec", "time.unix"),
    ("time_local", "time.clf"),
    ("time_iso8601", "time"),
];

/// Variables of nginx, without `$`, that are in common use and have no placeholder.
const NGINX_ONLY: &[&str] = &[
    "upstream_status",
    "request_filename",
    "document_root",
    "realpath_root",
    "proxy_add_x_forwarded_for",
    "proxy_host",
    "server_addr",
    "server_port",
    "hostname",
    "nginx_version",
    "connection",
    "connection_requests",
    "request_completion",
    "request_body",
    "is_args",
    "pipe",
    "gzip_ratio",
    "sent_http_content_type",
    "ssl_session_id",
];

/// Beginnings of variables of nginx that are followed by a name in lower case, and the placeholders for them.
const NGINX_FAMILIES: &[(&str, &str)] = &[
    ("http_", "request.header."),
    ("cookie_", "request.cookie."),
    ("arg_", "query."),
];

/// Variables of Apache, as in `%{NAME}`, and the placeholders for them.
const APACHE: &[(&str, &str)] = &[
    ("REMOTE_ADDR", "client.ip"),
    ("REMOTE_PORT", "client.port"),
    ("REMOTE_USER", "user"),
    ("HTTP_HOST", "authority"),
    ("SERVER_NAME", "host"),
    ("REQUEST_SCHEME", "scheme"),
    ("REQUEST_METHOD", "method"),
    ("REQUEST_URI", "path"),
    ("THE_REQUEST", "target"),
    ("QUERY_STRING", "query"),
    ("SERVER_PROTOCOL", "protocol"),
    ("UNIQUE_ID", "request.id"),
    ("SSL_PROTOCOL", "tls.version"),
    ("SSL_CIPHER", "tls.cipher"),
    ("SSL_TLS_SNI", "tls.server_name"),
    ("SSL_CLIENT_S_DN", "tls.client.subject"),
    ("SSL_CLIENT_I_DN", "tls.client.issuer"),
    ("SSL_CLIENT_M_SERIAL", "tls.client.serial"),
];

/// Placeholders of Caddy, without braces, and the placeholders for them.
const CADDY: &[(&str, &str)] = &[
    ("remote_host", "client.ip"),
    ("remote_port", "client.port"),
    ("client_ip", "client.ip"),
    ("http.request.remote.host", "client.ip"),
    ("http.request.remote.port", "client.port"),
    ("http.vars.client_ip", "client.ip"),
    ("hostport", "authority"),
    ("http.request.hostport", "authority"),
    ("http.request.host", "host"),
    ("http.request.method", "method"),
    ("http.request.scheme", "scheme"),
    ("http.request.proto", "protocol"),
    ("uri", "target"),
    ("http.request.uri", "target"),
    ("http.request.orig_uri", "target"),
    ("http.request.uri.path", "path"),
    ("http.request.uri.query", "query"),
    ("http.request.uuid", "request.id"),
    ("uuid", "request.id"),
    ("tls_version", "tls.version"),
    ("http.request.tls.version", "tls.version"),
    ("tls_cipher", "tls.cipher"),
    ("http.request.tls.cipher_suite", "tls.cipher"),
    ("http.request.tls.server_name", "tls.server_name"),
    ("tls_client_subject", "tls.client.subject"),
    ("http.request.tls.client.subject", "tls.client.subject"),
    ("http.request.tls.client.issuer", "tls.client.issuer"),
    ("http.request.tls.client.fingerprint", "tls.client.fingerprint"),
    ("http.auth.user.id", "user"),
    ("upstream_hostport", "upstream"),
    ("http.reverse_proxy.upstream.hostport", "upstream"),
];

/// Beginnings of placeholders of Caddy that are followed by a name, and the placeholders for them.
const CADDY_FAMILIES: &[(&str, &str)] = &[
    ("header.", "request.header."),
    ("http.request.header.", "request.header."),
    ("cookie.", "request.cookie."),
    ("http.request.cookie.", "request.cookie."),
    ("http.request.uri.query.", "query."),
];

/// Returns the placeholder for a variable of nginx, both without marks: `client.ip` for `remote_addr`. A name of a
/// header field gets its dashes back.
pub fn of_nginx(name: &str) -> Option<String> {
    let exact = find(NGINX, name).map(str::to_owned);
    exact.or_else(|| {
        NGINX_FAMILIES.iter().find_map(|(before, equivalent)| {
            let rest = name.strip_prefix(before).filter(|rest| !rest.is_empty())?;
            Some(match *before {
                "http_" => format!("{equivalent}{}", field_name(rest)),
                _ => format!("{equivalent}{rest}"),
            })
        })
    })
}

/// Returns the placeholder for a variable of Apache, both without marks: `client.ip` for `REMOTE_ADDR`.
pub fn of_apache(name: &str) -> Option<String> {
    let exact = find(APACHE, name).map(str::to_owned);
    exact.or_else(|| {
        let rest = name.strip_prefix("HTTP_").filter(|rest| !rest.is_empty())?;
        Some(format!("request.header.{}", field_name(rest)))
    })
}

/// Returns the placeholder for a placeholder of Caddy, both without braces: `client.ip` for `remote_host`.
pub fn of_caddy(name: &str) -> Option<String> {
    let exact = find(CADDY, name).map(str::to_owned);
    exact.or_else(|| {
        CADDY_FAMILIES.iter().find_map(|(before, equivalent)| {
            let rest = name.strip_prefix(before).filter(|rest| !rest.is_empty())?;
            Some(format!("{equivalent}{rest}"))
        })
    })
}

/// Checks a text for variables of nginx (`$remote_addr`) and Apache (`%{REMOTE_ADDR}`). After a doubled mark, as in
/// `$$remote_addr`, the name is ordinary text, and one mark is removed. Any other text with `$` or `%` is left alone.
/// Called before the placeholders in the text are parsed.
///
/// # Errors
///
/// Returns the error for the first variable, with the equivalent placeholder if there is one.
pub(super) fn unescaped(text: &str) -> Result<Cow<'_, str>, TemplateError> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(['$', '%']) {
        let mark = &rest[at..=at];
        let after = rest[at..].trim_start_matches(mark);
        // Number of equal marks in a row, and number of bytes up to the last of them.
        let (marks, before) = (rest.len() - at - after.len(), rest.len() - after.len());
        let found = match mark {
            "$" => nginx_variable(after),
            _ => apache_variable(after),
        };
        let kept = match found {
            Some(error) if marks == 1 => return Err(error),
            Some(_) => before - 1,
            None => before,
        };
        out.push_str(&rest[..kept]);
        rest = after;
    }
    if out.len() + rest.len() == text.len() {
        return Ok(Cow::Borrowed(text));
    }
    out.push_str(rest);
    Ok(Cow::Owned(out))
}

/// Returns the error for a variable of nginx. `after`: the text after `$`.
fn nginx_variable(after: &str) -> Option<TemplateError> {
    let name = after.strip_prefix('{').unwrap_or(after);
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let name = &name[..end.unwrap_or(name.len())];
    // In the configuration file, `$${` stands for `${`, because `${NAME}` is a variable of the environment. Of the
    // remaining `${{name}}`, the doubled braces keep `{name}` from being a placeholder.
    let literal = match after.starts_with('{') {
        true => format!("`$${{{{{name}}}}}`"),
        false => format!("`$${name}`"),
    };
    if let Some(equivalent) = of_nginx(name) {
        return Some(TemplateError {
            message: format!("`${name}` is a variable of nginx"),
            help: format!("write {{{equivalent}}}, or {literal} for the text itself"),
        });
    }
    NGINX_ONLY.contains(&name).then(|| TemplateError {
        message: format!("`${name}` is a variable of nginx that has no placeholder"),
        help: format!("docs/placeholders.md lists the values that exist; write {literal} for the text itself"),
    })
}

/// Returns the error for a variable of Apache. `after`: the text after `%`.
fn apache_variable(after: &str) -> Option<TemplateError> {
    let name = after.strip_prefix('{')?;
    let name = &name[..name.find('}')?];
    let equivalent = of_apache(name)?;
    Some(TemplateError {
        message: format!("`%{{{name}}}` is a variable of Apache"),
        // Single braces suffice here, because names of placeholders begin with a lower-case letter.
        help: format!("write {{{equivalent}}}, or `%%{{{name}}}` for the text itself"),
    })
}

fn find(table: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    table
        .iter()
        .find(|(written, _)| *written == name)
        .map(|(_, equivalent)| *equivalent)
}

/// Returns a name of a header field for one in which `_` replaces `-`: `User-Agent` for `user_agent`.
fn field_name(name: &str) -> String {
    let words = name.split('_').map(|word| {
        let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        format!("{}{}", first.to_ascii_uppercase(), rest.to_ascii_lowercase())
    });
    words.collect::<Vec<_>>().join("-")
}
