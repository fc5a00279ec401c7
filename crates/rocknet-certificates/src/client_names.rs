//! Names of client certificates, in the form that certificate rules (`auth = { certificate = … }`) compare.

use ::aws_lc_rs::digest;
use rocknet_config::model::{AttributeValue, ClientNames, DistinguishedName, NameAttribute, RelativeName};
use x509_parser::asn1_rs::{Tag, ToDer};
use x509_parser::prelude::{
    AttributeTypeAndValue, FromDer, GeneralName, RelativeDistinguishedName, X509Certificate, X509Name,
};

/// Maximum number of alternative names of a client certificate. With more, none of its names is used.
const MAX_NAMES: usize = 1_000;

/// Returns the names of a DER certificate; `None` if it cannot be parsed or has more than `MAX_NAMES` alternative
/// names. Alternative names with control characters are left out, because a program that ends texts at a NUL byte would
/// read `a.test\0.b.test` as `a.test`. Names other than DNS names, email addresses and URIs are left out too.
pub fn client_names(der: &[u8]) -> Option<ClientNames> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let mut names = ClientNames {
        subject: distinguished_name(certificate.subject()),
        issuer: distinguished_name(certificate.issuer()),
        serial: serial(certificate.raw_serial()),
        ..ClientNames::default()
    };
    names
        .fingerprint
        .copy_from_slice(digest::digest(&digest::SHA256, der).as_ref());
    let Some(alternatives) = certificate.subject_alternative_name().ok()? else {
        return Some(names);
    };
    let alternatives = &alternatives.value.general_names;
    if alternatives.len() > MAX_NAMES {
        return None;
    }
    for name in alternatives {
        let (list, text) = match name {
            GeneralName::DNSName(text) => (&mut names.dns, text.to_ascii_lowercase()),
            GeneralName::RFC822Name(text) => (&mut names.email, (*text).to_owned()),
            GeneralName::URI(text) => (&mut names.uri, (*text).to_owned()),
            _ => continue,
        };
        // All three are ASCII (RFC 5280 §4.2.1.6).
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
            list.push(text);
        }
    }
    Some(names)
}

/// Returns a serial number in hexadecimal digits, as OpenSSL writes it.
fn serial(bytes: &[u8]) -> String {
    // A first byte of zero only marks the number as positive.
    let bytes = bytes
        .strip_prefix(&[0])
        .filter(|rest| !rest.is_empty())
        .unwrap_or(bytes);
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

fn distinguished_name(name: &X509Name<'_>) -> DistinguishedName {
    let part = |part: &RelativeDistinguishedName<'_>| RelativeName::new(part.iter().map(attribute).collect());
    DistinguishedName::new(name.iter_rdn().map(part).collect())
}

fn attribute(attribute: &AttributeTypeAndValue<'_>) -> NameAttribute {
    let text = match attribute.attr_value().tag() {
        Tag::BmpString => utf16(attribute.as_slice()),
        _ => attribute.as_str().ok().map(str::to_owned),
    };
    let value = match text.filter(|text| !text.contains(char::is_control)) {
        Some(text) => AttributeValue::Text(text.into()),
        None => {
            let encoded = attribute.attr_value().to_der_vec();
            AttributeValue::Encoded(encoded.unwrap_or_else(|_| attribute.as_slice().to_vec()).into())
        }
    };
    NameAttribute {
        kind: attribute.attr_type().to_id_string().into(),
        value,
    }
}

/// Decodes a string of two bytes for each character.
fn utf16(bytes: &[u8]) -> Option<String> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let units = pairs.iter().map(|pair| u16::from_be_bytes(*pair));
    char::decode_utf16(units)
        .collect::<Result<String, _>>()
        .ok()
        .filter(|_| rest.is_empty())
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, DnValue, KeyPair};

    use super::*;

    /// Returns the subject of a certificate with this common name.
    fn subject(common_name: DnValue) -> DistinguishedName {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, common_name);
        let certificate = params.self_signed(&key).expect("a certificate");
        client_names(certificate.der()).expect("names").subject
    }

    #[test]
    fn subjects_that_differ_in_control_characters_have_different_texts() {
        for (common_name, expected) in [
            ("bob", "CN=bob"),
            ("?", "CN=?"),
            ("bob\0", "CN=#0c04626f6200"),
            ("bob\x01", "CN=#0c04626f6201"),
        ] {
            let subject = subject(DnValue::Utf8String(common_name.to_owned()));
            assert_eq!(subject.to_string(), expected, "{common_name:?}");
            assert_eq!(
                subject.is_same(&subject.clone()),
                !expected.contains('#'),
                "{common_name:?}"
            );
        }
    }
}
