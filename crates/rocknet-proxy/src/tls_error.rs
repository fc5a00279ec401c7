//! Why a handshake with an upstream failed, in words: which certificate trouble it was, and what mends it.

use std::io::{self, ErrorKind};

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

/// Said of a server that takes no offer of HTTP/2.
pub const NO_HTTP2: &str = "it does not agree to speak HTTP/2";

/// What went wrong.
pub fn reason(error: &io::Error) -> String {
    if error.kind() == ErrorKind::TimedOut {
        return "it did not come to an end in time".to_owned();
    }
    let Some(inner) = rustls_error(error) else {
        return match error.kind() {
            ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset => "the connection was closed in it".to_owned(),
            _ => error.to_string(),
        };
    };
    match inner {
        Error::InvalidCertificate(error) => match error {
            CertificateError::UnknownIssuer => "nobody who is trusted has signed its certificate".to_owned(),
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
        Error::AlertReceived(alert) if wants_certificate(*alert) => {
            "it takes only clients with a certificate that it trusts".to_owned()
        }
        Error::AlertReceived(AlertDescription::UnrecognisedName) => "it has no such name".to_owned(),
        Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            "it does not speak the version of HTTP that it is asked in".to_owned()
        }
        Error::AlertReceived(alert) => format!("it refused with {alert:?}"),
        Error::InvalidMessage(message) if is_not_tls(message) => "what it says is no TLS".to_owned(),
        error => error.to_string(),
    }
}

/// What the operator can do about it.
pub fn hint(error: &io::Error, upstream: &str) -> String {
    let reason = reason(error);
    let advice = match rustls_error(error) {
        Some(Error::InvalidCertificate(error)) => match error {
            CertificateError::UnknownIssuer => {
                "Name the file of its authority with `ca` in the proxy, or have it show the whole chain."
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => "Renew it there.",
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => "Is the clock here right?",
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "Write the name that it is for as `server_name` of the proxy."
            }
            _ => "It has to show another one.",
        },
        Some(Error::AlertReceived(alert)) if wants_certificate(*alert) => {
            "Name one with `cert` and `key` of the proxy."
        }
        Some(Error::AlertReceived(AlertDescription::UnrecognisedName)) => {
            "Write a name that it has as `server_name` of the proxy."
        }
        Some(Error::AlertReceived(AlertDescription::NoApplicationProtocol)) => {
            "See `http2` of the proxy, and what that server speaks."
        }
        None if error.to_string() == NO_HTTP2 => "See `http2` of the proxy, and what that server speaks.",
        _ => "Is that a port of HTTPS? In the clear, write http:// before it.",
    };
    format!("{upstream} was reached, but there was no handshake: {reason}. {advice}")
}

/// Whether the server has refused us, before it looked at what it was asked.
pub fn is_client_rejected(error: &io::Error) -> bool {
    matches!(rustls_error(error), Some(Error::AlertReceived(alert)) if wants_certificate(*alert))
}

fn rustls_error(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}

fn wants_certificate(alert: AlertDescription) -> bool {
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

fn is_not_tls(message: &InvalidMessage) -> bool {
    matches!(
        message,
        InvalidMessage::InvalidContentType
            | InvalidMessage::UnknownProtocolVersion
            | InvalidMessage::MessageTooLarge
            | InvalidMessage::InvalidEmptyPayload
    )
}
