//! A CA of this machine: made once, kept ten years, its key never leaves the state folder.

use std::fmt;
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::names;
use crate::CertificateError;
use crate::storage::{Access, Storage};

/// How far the word of a CA goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaKind {
    /// Names of this machine and its network alone: clients hold it to that, so whoever stole its key could not pose as
    /// a public site. This one `rocknet trust` installs.
    Private,
    /// Any name, for public sites tried out on a developer's machine. Trusted only where that is asked for.
    AnyName,
}

/// What everybody may know of a CA.
#[derive(Debug, Clone)]
pub struct CaCertificate {
    pub der: CertificateDer<'static>,
    pub pem: String,
    pub not_after: SystemTime,
}

/// A CA that can sign.
pub struct LocalCa {
    root: CaCertificate,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate for a site, with its key.
pub struct Leaf {
    /// The leaf alone: clients that trust the root have it.
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
}

/// Why there is no local CA, or no certificate of it.
#[derive(Debug)]
pub enum CaError {
    /// The state folder does not take or give what belongs there.
    Storage(io::Error),
    /// Another process has been making the CA for all the time we waited.
    Busy,
    Make(rcgen::Error),
    /// What was signed does not serve.
    Unusable(CertificateError),
}

impl CaKind {
    pub const ALL: [CaKind; 2] = [CaKind::Private, CaKind::AnyName];

    /// The piece of the storage that holds the certificate.
    pub fn certificate_item(self) -> &'static str {
        match self {
            CaKind::Private => "local/ca.pem",
            CaKind::AnyName => "local/ca-any-name.pem",
        }
    }

    fn key_item(self) -> &'static str {
        match self {
            CaKind::Private => "local/ca.key",
            CaKind::AnyName => "local/ca-any-name.key",
        }
    }

    /// What people see in the lists of their systems and browsers.
    pub fn title(self) -> &'static str {
        match self {
            CaKind::Private => "RockNet local CA",
            CaKind::AnyName => "RockNet local CA for any name",
        }
    }
}

impl CaCertificate {
    /// The certificate in the storage, if there is one that can be read.
    pub fn find(storage: &dyn Storage, kind: CaKind) -> Result<Option<CaCertificate>, CaError> {
        let bytes = storage.read(kind.certificate_item()).map_err(CaError::Storage)?;
        Ok(bytes.and_then(|bytes| CaCertificate::parse(String::from_utf8(bytes).ok()?)))
    }

    fn parse(pem: String) -> Option<CaCertificate> {
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).ok()?;
        let (_, parsed) = X509Certificate::from_der(&der).ok()?;
        let not_after = u64::try_from(parsed.validity().not_after.timestamp()).ok()?;
        Some(CaCertificate {
            der,
            pem,
            not_after: UNIX_EPOCH + Duration::from_secs(not_after),
        })
    }
}

impl LocalCa {
    /// The CA of the storage; a new one where there is none, or none that will outlive what it would sign.
    pub fn open_or_make(storage: &dyn Storage, kind: CaKind, now: SystemTime) -> Result<LocalCa, CaError> {
        if let Some(ca) = LocalCa::open(storage, kind, now)? {
            return Ok(ca);
        }
        // A server and `rocknet trust` may come here at once, and both are to know the same CA.
        let mut tries = 0;
        let _lock = loop {
            match storage.lock("local/ca").map_err(CaError::Storage)? {
                Some(lock) => break lock,
                None if tries == LOCK_TRIES => return Err(CaError::Busy),
                None => std::thread::sleep(LOCK_PAUSE),
            }
            tries += 1;
        };
        match LocalCa::open(storage, kind, now)? {
            Some(ca) => Ok(ca),
            None => LocalCa::make(storage, kind, now),
        }
    }

    fn open(storage: &dyn Storage, kind: CaKind, now: SystemTime) -> Result<Option<LocalCa>, CaError> {
        let Some(root) = CaCertificate::find(storage, kind)?.filter(|root| now + LEAF_LIFETIME < root.not_after) else {
            return Ok(None);
        };
        let key = storage.read(kind.key_item()).map_err(CaError::Storage)?;
        let key = key.and_then(|bytes| KeyPair::from_pem(std::str::from_utf8(&bytes).ok()?).ok());
        let Some(key) = key.filter(|key| matches_certificate(key, &root)) else {
            return Ok(None);
        };
        let issuer = Issuer::from_ca_cert_der(&root.der, key).map_err(CaError::Make)?;
        Ok(Some(LocalCa { root, issuer }))
    }

    fn make(storage: &dyn Storage, kind: CaKind, now: SystemTime) -> Result<LocalCa, CaError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(CaError::Make)?;
        let mut params = CertificateParams::default();
        set_validity(&mut params, now - CLOCK_SLACK, now + CA_LIFETIME);
        let mut name = DistinguishedName::new();
        name.push(DnType::OrganizationName, "RockNet");
        // Two machines of one person have two CAs: clients that tell them by name must not mix them up.
        let short: String = key
            .public_key_raw()
            .iter()
            .rev()
            .take(4)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        name.push(DnType::CommonName, format!("{} {short}", kind.title()));
        params.distinguished_name = name;
        // It signs leaves and no further CA.
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        if kind == CaKind::Private {
            params.name_constraints = Some(names::constraints());
        }
        let certificate = params.self_signed(&key).map_err(CaError::Make)?;
        let root = CaCertificate {
            der: certificate.der().clone(),
            pem: certificate.pem(),
            not_after: now + CA_LIFETIME,
        };
        // The key first: a certificate without its key would be taken for a CA that somebody has broken.
        storage
            .write(kind.key_item(), key.serialize_pem().as_bytes(), Access::Owner)
            .and_then(|()| storage.write(kind.certificate_item(), root.pem.as_bytes(), Access::Everyone))
            .map_err(CaError::Storage)?;
        Ok(LocalCa {
            root,
            issuer: Issuer::new(params, key),
        })
    }

    pub fn root(&self) -> &CaCertificate {
        &self.root
    }

    /// A certificate for host names, wildcards and addresses.
    pub fn sign(&self, names: &[String], now: SystemTime) -> Result<Leaf, CaError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(CaError::Make)?;
        let mut params = CertificateParams::new(names).map_err(CaError::Make)?;
        set_validity(&mut params, now - CLOCK_SLACK, now + LEAF_LIFETIME);
        // No name stands in the subject: some clients would hold it to be one of the site's.
        params.distinguished_name = DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::OrganizationName, "RockNet local site");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &self.issuer).map_err(CaError::Make)?;
        Ok(Leaf {
            chain: vec![certificate.der().clone()],
            key: PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
        })
    }
}

/// Whether a key is the one its certificate was made for: a crash between the two writes leaves a pair that is none.
fn matches_certificate(key: &KeyPair, root: &CaCertificate) -> bool {
    X509Certificate::from_der(&root.der)
        .is_ok_and(|(_, parsed)| parsed.public_key().subject_public_key.data.as_ref() == key.public_key_raw())
}

/// To the second, as certificates have it.
fn set_validity(params: &mut CertificateParams, from: SystemTime, to: SystemTime) {
    let since_epoch = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + Duration::from_secs(since_epoch(from));
    params.not_after = epoch + Duration::from_secs(since_epoch(to));
}

/// Clients whose clock is a little behind are to believe what was just signed.
const CLOCK_SLACK: Duration = Duration::from_secs(3600);

/// Ten years: nobody wants to install a root again on every machine, and nobody keeps one longer than a computer.
const CA_LIFETIME: Duration = Duration::from_secs(3650 * 86_400);

/// Apple's clients take at most 397 days; browsers move toward 47. Signing anew costs nothing.
pub const LEAF_LIFETIME: Duration = Duration::from_secs(90 * 86_400);

/// Making a CA takes a few milliseconds; two seconds are waited for who does.
const LOCK_TRIES: u32 = 40;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

impl fmt::Display for CaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CaError::Storage(error) => write!(f, "the local CA cannot be kept in the state folder: {error}"),
            CaError::Busy => f.write_str("another process is making the local CA; try again"),
            CaError::Make(error) => write!(f, "the local CA cannot sign: {error}"),
            CaError::Unusable(error) => write!(f, "the local CA signed what does not serve: {error}"),
        }
    }
}

impl std::error::Error for CaError {}

#[cfg(test)]
mod tests;
