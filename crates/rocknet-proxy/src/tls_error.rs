//! Explanations of failed TLS handshakes with upstreams: the reason and advice for the operator.

use std::io::{self, ErrorKind};

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

/// Reason for a failed handshake: the upstream did not select HTTP/2 by ALPN.
pub const NO_HTTP2: &str = "the upstream does not offer HTTP/2";

/// Returns the reason why a handshake failed, for the log.
pub fn reason(error: &io::Error) -> String {
    if error.kind() == ErrorKind::TimedOut {
        return "it did not finish in time".to_owned();
    }
    let Some(inner) = rustls_error(error) else {
        return match error.kind() {
            ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset => {
                "the upstream closed the connection".to_owned()
            }
            _ => error.to_string(),
        };
    };
    match inner {
        Error::InvalidCertificate(error) => match error {
            CertificateError::UnknownIssuer => "its certificate is not signed by a trusted authority".to_owned(),
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "its certificate has expired".to_owned()
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "its certificate is not valid yet".to_owned()
            }
            CertificateError::NotValidForName => "its certificate is for another name".to_owned(),
            CertificateError::NotValidForNameContext { expected, presented } => format!(
                "its certificate is not for {}, but for {}",
                expected.to_str(),
                if presented.is_empty() {
                    "no name".to_owned()
                } else {
                    presented.join(", ")
                }
            ),
            error => format!("its certificate is not valid: {error}"),
        },
        Error::AlertReceived(alert) if is_about_client_certificate(*alert) => {
            "the upstream requires a client certificate that it trusts".to_owned()
        }
        Error::AlertReceived(AlertDescription::UnrecognisedName) => {
            "the upstream does not know the server name".to_owned()
        }
        Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            "the upstream does not speak the version of HTTP that was offered".to_owned()
        }
        Error::AlertReceived(alert) => format!("the upstream sent the alert {alert:?}"),
        Error::InvalidMessage(message) if is_not_tls(message) => "the upstream does not speak TLS".to_owned(),
        error => error.to_string(),
    }
}

/// Returns the reason why a handshake failed, with advice for the operator.
pub fn hint(error: &io::Error, upstream: &str) -> String {
    let reason = reason(error);
    let advice = match rustls_error(error) {
        Some(Error::InvalidCertificate(error)) => match error {
            CertificateError::UnknownIssuer => {
                "Name the file of its authority with `ca` of the proxy, or have the upstream send its whole chain."
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => "Renew it at the upstream.",
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "Check the clock of this machine."
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "Set `server_name` of the proxy to a name in the certificate."
            }
            _ => "The upstream needs another certificate.",
        },
        Some(Error::AlertReceived(alert)) if is_about_client_certificate(*alert) => {
            "Set `cert` and `key` of the proxy to a client certificate that the upstream accepts."
        }
        Some(Error::AlertReceived(AlertDescription::UnrecognisedName)) => {
            "Set `server_name` of the proxy to a name that the upstream knows."
        }
        Some(Error::AlertReceived(AlertDescription::NoApplicationProtocol)) => {
            "Check `http2` of the proxy against the versions that the upstream speaks."
        }
        None if error.to_string() == NO_HTTP2 => {
            "Check `http2` of the proxy against the versions that the upstream speaks."
        }
        // An alert comes from a server that speaks TLS.
        Some(Error::AlertReceived(_)) => {
            "Check which TLS versions and cipher suites the upstream permits, and its log."
        }
        _ => "Check that the port is for HTTPS. For a server without TLS, write http:// before the address.",
    };
    format!("{upstream} was reached, but the TLS handshake failed: {reason}. {advice}")
}

/// Returns true if the upstream rejected the client certificate of this server, or requires one. In both cases, the
/// upstream has not processed any request.
pub fn is_client_rejected(error: &io::Error) -> bool {
    matches!(rustls_error(error), Some(Error::AlertReceived(alert)) if is_about_client_certificate(*alert))
}

fn rustls_error(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}

fn is_about_client_certificate(alert: AlertDescription) -> bool {
    use AlertDescription as Alert;
    matches!(
        alert,
        Alert::CertificateRequired
            | Alert::NoCertificate
            | Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied
    )
}

/// Returns true for the errors that rustls reports if the received bytes are no TLS record, such as a response in clear
/// text.
fn is_not_tls(message: &InvalidMessage) -> bool {
    matches!(
        message,
        InvalidMessage::InvalidContentType
            | InvalidMessage::UnknownProtocolVersion
            | InvalidMessage::MessageTooLarge
            | InvalidMessage::InvalidEmptyPayload
    )
}
