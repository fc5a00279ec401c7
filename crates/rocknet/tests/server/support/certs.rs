//! Generates authorities and certificates for the tests.

use std::os::unix::fs::PermissionsExt;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, IsCa, Issuer, KeyIdMethod, KeyPair,
    PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, RevokedCertParams, SerialNumber,
};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::Folder;

/// Certificate authority.
pub struct Authority {
    /// Certificate in PEM format.
    pub pem: String,
    der: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
    /// Certificates from this authority up to the root, without the root.
    chain: Vec<CertificateDer<'static>>,
}

/// Certificate of a server or client, with its key. `cert` and `key` are in PEM format.
pub struct Leaf {
    pub cert: String,
    pub key: String,
    pub der: CertificateDer<'static>,
    /// Certificates of intermediate authorities, which a client sends after its own.
    pub chain: Vec<CertificateDer<'static>>,
    key_der: Vec<u8>,
}

/// Algorithm of a key.
#[derive(Clone, Copy)]
pub enum Kind {
    Ecdsa,
    Rsa,
}

impl Authority {
    pub fn new(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let cert = params.self_signed(&key).expect("a certificate");
        Authority {
            pem: cert.pem(),
            der: cert.der().clone(),
            issuer: Issuer::new(params, key),
            chain: Vec::new(),
        }
    }

    /// Issues the certificate of an intermediate authority, with what `edit` changes.
    pub fn intermediate(&self, edit: impl FnOnce(&mut CertificateParams)) -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "intermediate");
        edit(&mut params);
        let key = KeyPair::generate().expect("a key");
        let cert = params.signed_by(&key, &self.issuer).expect("a certificate");
        let own = cert.der().clone();
        Authority {
            pem: cert.pem(),
            chain: std::iter::once(own.clone()).chain(self.chain.clone()).collect(),
            der: own,
            issuer: Issuer::new(params, key),
        }
    }

    /// Issues a certificate that does not expire during the tests.
    pub fn leaf(&self, kind: Kind, names: &[&str]) -> Leaf {
        self.leaf_until(kind, names, 4096)
    }

    /// Issues a certificate that expired in 2001.
    pub fn expired(&self, names: &[&str]) -> Leaf {
        self.leaf_until(Kind::Ecdsa, names, 2001)
    }

    /// Issues a certificate that expires in `year`.
    fn leaf_until(&self, kind: Kind, names: &[&str], year: i32) -> Leaf {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names.clone()).expect("names");
        params.distinguished_name.push(DnType::CommonName, names[0].clone());
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        self.sign(kind, &params)
    }

    /// Issues a certificate for a client, with the serial number 7 and what `edit` changes.
    pub fn client(&self, edit: impl FnOnce(&mut CertificateParams)) -> Leaf {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.serial_number = Some(SerialNumber::from(7));
        edit(&mut params);
        self.sign(Kind::Ecdsa, &params)
    }

    /// Returns a list of revoked certificates in PEM that is valid until `year`.
    pub fn revocation_list(&self, serials: &[u64], year: i32) -> String {
        self.revocation_list_with(serials, |params| params.next_update = rcgen::date_time_ymd(year, 1, 1))
    }

    /// Returns a list of revoked certificates in PEM with changed parameters.
    pub fn revocation_list_with(
        &self,
        serials: &[u64],
        change: impl FnOnce(&mut CertificateRevocationListParams),
    ) -> String {
        let revoked = |serial: &u64| RevokedCertParams {
            serial_number: SerialNumber::from(*serial),
            revocation_time: rcgen::date_time_ymd(2001, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let mut params = CertificateRevocationListParams {
            this_update: rcgen::date_time_ymd(2001, 1, 1),
            next_update: rcgen::date_time_ymd(4096, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: serials.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        change(&mut params);
        let list = params.signed_by(&self.issuer).expect("a list");
        list.pem().expect("a list in PEM")
    }

    fn sign(&self, kind: Kind, params: &CertificateParams) -> Leaf {
        let key = KeyPair::generate_for(match kind {
            Kind::Ecdsa => &PKCS_ECDSA_P256_SHA256,
            Kind::Rsa => &PKCS_RSA_SHA256,
        })
        .expect("a key");
        let cert = params.signed_by(&key, &self.issuer).expect("a certificate");
        Leaf {
            cert: cert.pem(),
            key: key.serialize_pem(),
            der: cert.der().clone(),
            chain: self.chain.clone(),
            key_der: key.serialize_der(),
        }
    }

    pub fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).expect("a root");
        roots
    }
}

impl Leaf {
    /// Writes `NAME.pem` and `NAME.key`. Only the owner can read the key.
    pub fn write(&self, folder: &Folder, name: &str) {
        folder.write(&format!("{name}.pem"), &self.cert);
        write_key(folder, &format!("{name}.key"), &self.key);
    }

    pub fn private_key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::try_from(self.key_der.clone()).expect("a key")
    }
}

/// Writes a private key that only its owner can read.
pub fn write_key(folder: &Folder, name: &str, content: &str) {
    folder.write(name, content);
    set_mode(folder, name, 0o600);
}

pub fn set_mode(folder: &Folder, name: &str, mode: u32) {
    let rights = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(folder.path(name), rights).expect("rights");
}
