//! Certificates of the sites of a running server, which the command `certs` prints one per line.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::status::MAX_SHOWN;
use crate::text;

/// A certificate of a site.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CertificateSummary {
    /// Name of the site.
    pub site: String,
    /// DNS names and addresses of the certificate; empty if the site has none yet.
    pub names: Vec<String>,
    /// Issuer, as its distinguished name in text form.
    pub issuer: String,
    /// Source: `files`, `local` or `acme`.
    pub source: String,
    /// Beginning of the validity, in seconds since the beginning of 1970.
    pub not_before: u64,
    /// End of the validity, in seconds since the beginning of 1970.
    pub not_after: u64,
    /// Whole days until the end of the validity; negative after it.
    pub days_left: i64,
    /// Reason why the site has no certificate, or why the present one cannot be renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// Formats certificates, one line for each.
#[derive(Debug, Clone, Copy)]
pub struct CertificateList<'a>(pub &'a [CertificateSummary]);

impl fmt::Display for CertificateList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return writeln!(f, "no site uses TLS");
        }
        for certificate in self.0 {
            let site = text::sanitized(&certificate.site, MAX_SHOWN);
            let fault = certificate
                .fault
                .as_ref()
                .map(|fault| text::sanitized(fault, MAX_SHOWN));
            if certificate.names.is_empty() {
                writeln!(
                    f,
                    "{site}  {}  no certificate: {}",
                    certificate.source,
                    fault.unwrap_or_default()
                )?;
                continue;
            }
            let names = text::sanitized(&certificate.names.join(", "), MAX_SHOWN);
            let issuer = text::sanitized(&certificate.issuer, MAX_SHOWN);
            let left = match certificate.days_left {
                days if days < 0 => "expired".to_owned(),
                1 => "1 day left".to_owned(),
                days => format!("{days} days left"),
            };
            write!(f, "{site}  {}  {names}  {left}  {issuer}", certificate.source)?;
            match fault {
                Some(fault) => writeln!(f, "  cannot be renewed: {fault}")?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_listed() {
        let certificate = CertificateSummary {
            site: "a.test".into(),
            names: vec!["a.test".into(), "*.a.test".into()],
            issuer: "CN=R\u{1b}1".into(),
            source: "acme".into(),
            days_left: 60,
            ..CertificateSummary::default()
        };
        let expired = CertificateSummary {
            days_left: -1,
            fault: Some("no route to host".into()),
            ..certificate.clone()
        };
        let missing = CertificateSummary {
            names: Vec::new(),
            fault: Some("cannot be read".into()),
            source: "files".into(),
            ..certificate.clone()
        };
        assert_eq!(
            CertificateList(&[certificate, expired, missing]).to_string(),
            "a.test  acme  a.test, *.a.test  60 days left  CN=R?1\n\
             a.test  acme  a.test, *.a.test  expired  CN=R?1  cannot be renewed: no route to host\n\
             a.test  files  no certificate: cannot be read\n"
        );
        assert_eq!(CertificateList(&[]).to_string(), "no site uses TLS\n");
    }
}
