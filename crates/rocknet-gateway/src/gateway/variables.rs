//! Writes a request as CGI variables (RFC 3875 §4.1), plus the additional variables that applications expect.

use std::borrow::Cow;

use rocknet_io::socket::Address;
use rocknet_proto::cgi::VariableError;
use rocknet_proto::fastcgi::Params;
use rocknet_proto::fields::KnownField;
use rocknet_proto::request::{Request, TargetForm};
use rocknet_proto::semantics::authority::{Authority, HOST_BUFFER};

use rocknet_files::script::Script;
use rocknet_handler::exchange::{Client, TlsInfo};

/// Destination of variables.
pub trait VariableSink {
    /// Adds a variable.
    ///
    /// # Errors
    ///
    /// Returns an error if the protocol cannot encode it.
    fn put(&mut self, name: &[u8], value: &[u8]) -> Result<(), VariableError>;
}

impl VariableSink for Params<'_> {
    fn put(&mut self, name: &[u8], value: &[u8]) -> Result<(), VariableError> {
        self.push(name, value)
    }
}

/// Data for the variables that is not in the request head.
pub struct RequestContext<'a> {
    /// Name of the site.
    pub site: &'a str,
    /// Address of the listener.
    pub address: &'a Address,
    /// Address of the client.
    pub client: Client,
    /// TLS parameters of the connection; `None` for a connection without TLS.
    pub secure: Option<&'a TlsInfo>,
    /// User whom the server or an authorization service has authenticated, if any.
    pub user: Option<&'a str>,
    /// True if the server has verified the password of the user itself, so that no application needs it.
    pub has_verified_password: bool,
}

/// Header fields for which [`write_fields`] writes no variable from the field list: connection fields, `Expect`, fields
/// whose variables are written separately, and `Proxy`. The field `Proxy` would become `HTTP_PROXY`, from which
/// programs read the proxy to use (CVE-2016-5385).
const NOT_PASSED: [&str; 12] = [
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Script or application that the variables describe.
#[derive(Clone, Copy)]
pub enum VariableSource<'a> {
    /// A script file.
    Script(&'a Script),
    /// An application without a file.
    Application {
        /// Path prefix of the application; empty if it is the whole site.
        name: &'a str,
        /// Part of the path after `name`.
        path_info: &'a str,
        /// Document root of the site, if it has one.
        root: Option<&'a [u8]>,
    },
}

/// Writes all variables. `length`: length of the received request body in bytes; `None` if there is no body.
///
/// # Errors
///
/// Returns an error if the protocol cannot encode a variable.
pub fn write(
    params: &mut impl VariableSink,
    request: &Request<'_>,
    source: VariableSource<'_>,
    context: &RequestContext<'_>,
    length: Option<u64>,
) -> Result<(), VariableError> {
    let query = query(request, source);
    let uri: Cow<'_, [u8]> = match (request.form, request.query) {
        (TargetForm::Absolute, Some(query)) => [request.path, b"?", query].concat().into(),
        (TargetForm::Absolute, None) => request.path.into(),
        _ => request.target.into(),
    };
    for (name, value) in [
        ("GATEWAY_INTERFACE", &b"CGI/1.1"[..]),
        ("SERVER_SOFTWARE", b"RockNet"),
        ("SERVER_PROTOCOL", request.version.as_str().as_bytes()),
        ("REQUEST_METHOD", request.method_name),
        ("REQUEST_URI", &uri),
        ("QUERY_STRING", &query),
    ] {
        params.put(name.as_bytes(), value)?;
    }
    match source {
        VariableSource::Script(script) => write_script_variables(params, script)?,
        VariableSource::Application { name, path_info, root } => {
            params.put(b"SCRIPT_NAME", name.as_bytes())?;
            params.put(b"PATH_INFO", path_info.as_bytes())?;
            params.put(b"DOCUMENT_URI", &[name.as_bytes(), path_info.as_bytes()].concat())?;
            if let Some(root) = root {
                params.put(b"DOCUMENT_ROOT", root)?;
            }
        }
    }
    write_body_variables(params, request, length)?;
    write_connection_variables(params, request, context)?;
    if let Some(user) = context.user {
        // If an authorization service or a client certificate identifies the user, `Authorization` may be for the
        // application.
        if context.has_verified_password && has_basic_credentials(request) {
            params.put(b"AUTH_TYPE", b"Basic")?;
        }
        params.put(b"REMOTE_USER", user.as_bytes())?;
    }
    write_fields(params, request, context.has_verified_password)
}

/// Returns true if the request has a user and password (RFC 7617).
fn has_basic_credentials(request: &Request<'_>) -> bool {
    let credentials = request.fields.get(KnownField::Authorization).unwrap_or_default();
    let scheme = credentials.split(|byte| *byte == b' ').next().unwrap_or_default();
    scheme.eq_ignore_ascii_case(b"Basic")
}

/// Returns the query of the request, after the query that the key `try` or `fallback` of the configuration adds for a
/// script.
fn query<'a>(request: &Request<'a>, source: VariableSource<'a>) -> Cow<'a, [u8]> {
    let own = request.query.unwrap_or_default();
    match source {
        VariableSource::Script(script) if !script.query.is_empty() => match own {
            [] => script.query.as_bytes().into(),
            own => [script.query.as_bytes(), b"&", own].concat().into(),
        },
        _ => own.into(),
    }
}

fn write_script_variables(params: &mut impl VariableSink, script: &Script) -> Result<(), VariableError> {
    let root = script.root.as_encoded_bytes();
    let document_uri = [&*script.name, &*script.path_info].concat();
    for (name, value) in [
        ("SCRIPT_FILENAME", &script.file()[..]),
        ("SCRIPT_NAME", script.name.as_bytes()),
        ("DOCUMENT_URI", document_uri.as_bytes()),
        ("DOCUMENT_ROOT", root),
        // php-cgi refuses to run without `REDIRECT_STATUS`.
        ("REDIRECT_STATUS", b"200"),
    ] {
        params.put(name.as_bytes(), value)?;
    }
    // Apache sets the same two variables below an `Alias`.
    if let Some(alias) = &script.alias {
        params.put(b"CONTEXT_PREFIX", alias.prefix.as_bytes())?;
        params.put(b"CONTEXT_DOCUMENT_ROOT", alias.folder.as_encoded_bytes())?;
    }
    if !script.path_info.is_empty() {
        params.put(b"PATH_INFO", script.path_info.as_bytes())?;
        params.put(b"PATH_TRANSLATED", &[root, script.path_info.as_bytes()].concat())?;
    }
    Ok(())
}

fn write_body_variables(
    params: &mut impl VariableSink,
    request: &Request<'_>,
    length: Option<u64>,
) -> Result<(), VariableError> {
    if let Some(media_type) = request.fields.get(KnownField::ContentType) {
        params.put(b"CONTENT_TYPE", media_type)?;
    }
    match (length, request.fields.get(KnownField::ContentLength)) {
        (Some(length), _) => params.put(b"CONTENT_LENGTH", length.to_string().as_bytes()),
        // No body, and the client sent `Content-Length: 0`.
        (None, Some(length_field)) => params.put(b"CONTENT_LENGTH", length_field),
        (None, None) => Ok(()),
    }
}

/// Writes the variables of the connection: the server's name and address, the client's address, and TLS.
fn write_connection_variables(
    params: &mut impl VariableSink,
    request: &Request<'_>,
    context: &RequestContext<'_>,
) -> Result<(), VariableError> {
    let authority = Authority::parse(request.authority);
    let mut buffer = [0; HOST_BUFFER];
    let host = authority.as_ref().map(|authority| authority.lower_host(&mut buffer));
    // The host of the request is used only if the name of the site is not a host name, but a pattern for example.
    let name = if is_name(context.site) {
        context.site
    } else {
        host.unwrap_or("localhost")
    };
    params.put(b"SERVER_NAME", name.as_bytes())?;
    let default_port = if context.secure.is_some() { 443 } else { 80 };
    let port_of_authority = || authority.as_ref().and_then(|authority| authority.port);
    let port = context
        .address
        .port()
        .filter(|port| *port != 0)
        .or_else(port_of_authority)
        .unwrap_or(default_port);
    params.put(b"SERVER_PORT", port.to_string().as_bytes())?;
    if let Address::Tcp { ip: Some(ip), .. } = context.address {
        params.put(b"SERVER_ADDR", ip.to_string().as_bytes())?;
    }
    match context.client {
        Client::Ip { address, port } => {
            params.put(b"REMOTE_ADDR", address.to_canonical().to_string().as_bytes())?;
            // The port is 0 if a trusted proxy named the client, because most proxies do not pass the port.
            if port != 0 {
                params.put(b"REMOTE_PORT", port.to_string().as_bytes())?;
            }
        }
        // A client of a Unix socket has no address, but scripts expect one. The client is on this machine.
        Client::Local => params.put(b"REMOTE_ADDR", b"127.0.0.1")?,
    }
    params.put(
        b"REQUEST_SCHEME",
        if context.secure.is_some() { b"https" } else { b"http" },
    )?;
    if let Some(secure) = context.secure {
        params.put(b"HTTPS", b"on")?;
        if let Some(client) = &secure.client {
            params.put(b"SSL_CLIENT_VERIFY", b"SUCCESS")?;
            params.put(b"SSL_CLIENT_S_DN", client.subject.as_bytes())?;
            if let Some(names) = &client.names {
                params.put(b"SSL_CLIENT_I_DN", names.issuer.to_string().as_bytes())?;
                params.put(b"SSL_CLIENT_M_SERIAL", names.serial.as_bytes())?;
            }
        }
    }
    Ok(())
}

/// Returns true if the site is one host name with a dot, such as `example.com`. Ports, patterns and names without a
/// dot, such as `localhost`, do not count.
fn is_name(site: &str) -> bool {
    site.contains('.') && !site.contains(['*', ':'])
}

/// Writes the header fields. `is_verified`: true if the server has verified the password; `Authorization` is then not
/// passed (RFC 3875 §4.1.18).
fn write_fields(params: &mut impl VariableSink, request: &Request<'_>, is_verified: bool) -> Result<(), VariableError> {
    if !request.authority.is_empty() {
        params.put(b"HTTP_HOST", request.authority)?;
    }
    let mut variable = Vec::new();
    for (number, (name, _)) in request.fields.iter().enumerate() {
        // Only letters, digits and hyphens pass. Otherwise a client could imitate a field: `X_Real_IP` has the same
        // variable as `X-Real-IP`, and PHP replaces some other bytes by underscores too.
        let is_plain = name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
        let is_passed = !NOT_PASSED
            .iter()
            .any(|other| name.eq_ignore_ascii_case(other.as_bytes()));
        let is_password = is_verified && name.eq_ignore_ascii_case(b"Authorization");
        // A name that occurred before was written at its first occurrence, with all its values.
        let mut before = request.fields.iter().take(number);
        if !is_plain || !is_passed || is_password || before.any(|(other, _)| other.eq_ignore_ascii_case(name)) {
            continue;
        }
        variable.clear();
        variable.extend_from_slice(b"HTTP_");
        variable.extend(
            name.iter()
                .map(|byte| if *byte == b'-' { b'_' } else { byte.to_ascii_uppercase() }),
        );
        let separator: &[u8] = if name.eq_ignore_ascii_case(b"Cookie") {
            b"; "
        } else {
            b", "
        };
        let mut values = request.fields.by_name(name);
        match (values.next(), values.next()) {
            (Some(value), None) => params.put(&variable, value)?,
            _ => {
                let values: Vec<&[u8]> = request.fields.by_name(name).collect();
                params.put(&variable, &values.join(separator))?;
            }
        }
    }
    Ok(())
}
