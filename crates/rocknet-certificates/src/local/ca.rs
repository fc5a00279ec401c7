//! The local CA: created once, valid for ten years, with a key that never leaves the state folder.

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

/// The names for which a local CA may sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaKind {
    /// Only names of this machine and its network. Clients enforce this limit by name constraints, so a stolen key
    /// cannot be used to impersonate a public site. `rocknet trust` installs this CA.
    Private,
    /// Any name, for public sites that are tested on a developer's machine. Installed only on explicit request.
    AnyName,
}

/// The public part of a CA.
#[derive(Debug, Clone)]
pub struct CaCertificate {
    /// The certificate in DER.
    pub der: CertificateDer<'static>,
    /// The certificate in PEM.
    pub pem: String,
    /// End of the certificate's validity period.
    pub not_after: SystemTime,
}

/// A local CA with its signing key.
pub struct LocalCa {
    root: CaCertificate,
    issuer: Issuer<'static, KeyPair>,
}

/// A leaf certificate with its key.
pub struct Leaf {
    /// Contains only the leaf, because clients that trust the CA already have its root.
    pub chain: Vec<CertificateDer<'static>>,
    /// Private key.
    pub key: PrivateKeyDer<'static>,
}

/// The reason why the local CA cannot be used or cannot sign.
#[derive(Debug)]
pub enum CaError {
    /// The state folder cannot be read or written.
    Storage(io::Error),
    /// Another process is creating the CA and has not finished in time.
    Busy,
    /// A key or certificate cannot be created.
    Make(rcgen::Error),
    /// The signed certificate cannot be used.
    Unusable(CertificateError),
}

impl CaKind {
    /// All kinds, in the order of their discriminants.
    pub const ALL: [CaKind; 2] = [CaKind::Private, CaKind::AnyName];

    /// Returns the name of the storage item that contains the certificate.
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

    /// Returns the name shown in certificate lists of systems and browsers.
    pub fn title(self) -> &'static str {
        match self {
            CaKind::Private => "RockNet local CA",
            CaKind::AnyName => "RockNet local CA for any name",
        }
    }
}

impl CaCertificate {
    /// Reads the certificate from the storage; `None` if no certificate is stored or it cannot be parsed.
    ///
    /// # Errors
    /// Returns the error of the storage.
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
    /// Opens the CA. Creates a CA if no CA is stored, or if the stored CA is damaged or would expire before a new leaf.
    ///
    /// # Errors
    /// Returns the reason why the CA cannot be opened or created.
    pub fn open_or_make(storage: &dyn Storage, kind: CaKind, now: SystemTime) -> Result<LocalCa, CaError> {
        if let Some(ca) = LocalCa::open(storage, kind, now)? {
            return Ok(ca);
        }
        // A server and `rocknet trust` may create the CA at the same time, and both must use the same CA.
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

    /// Opens the stored CA; `None` if no CA is stored that can sign a leaf.
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

    /// Creates a CA and stores it in place of an earlier one.
    fn make(storage: &dyn Storage, kind: CaKind, now: SystemTime) -> Result<LocalCa, CaError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(CaError::Make)?;
        let mut params = CertificateParams::default();
        set_validity(&mut params, now - CLOCK_SLACK, now + CA_LIFETIME);
        let mut name = DistinguishedName::new();
        name.push(DnType::OrganizationName, "RockNet");
        // Clients that identify CAs by name must distinguish the CAs of two machines, so the name contains the last
        // four bytes of the public key.
        let short: String = key
            .public_key_raw()
            .iter()
            .rev()
            .take(4)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        name.push(DnType::CommonName, format!("{} {short}", kind.title()));
        params.distinguished_name = name;
        // The CA may sign leaf certificates but no intermediate CA.
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
        // The key is written first, because a certificate without its key would look like a damaged CA.
        storage
            .write(kind.key_item(), key.serialize_pem().as_bytes(), Access::Owner)
            .and_then(|()| storage.write(kind.certificate_item(), root.pem.as_bytes(), Access::Everyone))
            .map_err(CaError::Storage)?;
        Ok(LocalCa {
            root,
            issuer: Issuer::new(params, key),
        })
    }

    /// Returns the certificate of the CA.
    pub fn root(&self) -> &CaCertificate {
        &self.root
    }

    /// Signs a certificate for host names, wildcards and addresses.
    ///
    /// # Errors
    /// Returns the reason why no certificate can be created.
    pub fn sign(&self, names: &[String], now: SystemTime) -> Result<Leaf, CaError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(CaError::Make)?;
        let mut params = CertificateParams::new(names).map_err(CaError::Make)?;
        set_validity(&mut params, now - CLOCK_SLACK, now + LEAF_LIFETIME);
        // The subject has no host name, because some clients would treat the common name as one.
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

/// Returns true if the key belongs to the certificate. If a damaged CA is replaced, a crash between the writes of the
/// new key and the new certificate leaves a mismatched pair.
fn matches_certificate(key: &KeyPair, root: &CaCertificate) -> bool {
    X509Certificate::from_der(&root.der)
        .is_ok_and(|(_, parsed)| parsed.public_key().subject_public_key.data.as_ref() == key.public_key_raw())
}

/// Sets the validity period, which certificates store in seconds.
fn set_validity(params: &mut CertificateParams, from: SystemTime, to: SystemTime) {
    let since_epoch = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + Duration::from_secs(since_epoch(from));
    params.not_after = epoch + Duration::from_secs(since_epoch(to));
}

/// Duration by which validity periods start in the past, so that clients with a slow clock accept new certificates.
const CLOCK_SLACK: Duration = Duration::from_secs(3600);

/// Lifetime of a CA: ten years, about the life of a computer, so that a root is rarely installed again.
const CA_LIFETIME: Duration = Duration::from_secs(3650 * 86_400);

/// Lifetime of a leaf. Apple's clients accept at most 825 days from a CA that the user has installed, and 398 days from
/// a public CA. Frequent renewal is cheap.
pub const LEAF_LIFETIME: Duration = Duration::from_secs(90 * 86_400);

/// Attempts to lock the CA and the pause between them: two seconds in total. Creating a CA takes a few milliseconds.
const LOCK_TRIES: u32 = 40;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

impl fmt::Display for CaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CaError::Storage(error) => write!(f, "the state folder of the local CA cannot be read or written: {error}"),
            CaError::Busy => f.write_str("another process is creating the local CA; try again"),
            CaError::Make(error) => write!(f, "a key or certificate of the local CA cannot be created: {error}"),
            CaError::Unusable(error) => write!(f, "the certificate signed by the local CA cannot be used: {error}"),
        }
    }
}

impl std::error::Error for CaError {}

#[cfg(test)]
mod tests;
