//! TLS of the programs: a server with a certificate from files, and a client that accepts any certificate.

use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const ALPN: &[u8] = b"h3";

/// Returns the TLS settings of a server with this certificate chain and key.
pub fn server(chain: &Path, key: &Path) -> Result<Arc<QuicServerConfig>, Box<dyn Error>> {
    let chain = CertificateDer::pem_file_iter(chain)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(key)?;
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    // Tickets are encrypted, as by most servers, instead of stored.
    config.ticketer = aws_lc_rs::Ticketer::new()?;
    Ok(Arc::new(QuicServerConfig::try_from(config)?))
}

/// TLS settings of a client, with a count of its full handshakes.
pub struct ClientTls {
    pub config: Arc<QuicClientConfig>,
    full_handshakes: Arc<AtomicU64>,
}

impl ClientTls {
    /// Makes the settings of a client that resumes sessions if `resumes` is true.
    pub fn new(resumes: bool) -> Result<Self, Box<dyn Error>> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let full_handshakes = Arc::<AtomicU64>::default();
        let verifier = AcceptAnyCertificate {
            provider: Arc::clone(&provider),
            count: Arc::clone(&full_handshakes),
        };
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        config.alpn_protocols = vec![ALPN.to_vec()];
        if !resumes {
            config.resumption = Resumption::disabled();
        }
        Ok(Self {
            config: Arc::new(QuicClientConfig::try_from(config)?),
            full_handshakes,
        })
    }

    /// Returns the number of handshakes in which a server has sent a certificate. A resumed session needs none.
    pub fn full_handshakes(&self) -> u64 {
        self.full_handshakes.load(Ordering::Relaxed)
    }
}

/// Verifier that accepts any certificate: the certificates of the bench are self-signed.
#[derive(Debug)]
struct AcceptAnyCertificate {
    provider: Arc<CryptoProvider>,
    count: Arc<AtomicU64>,
}

impl ServerCertVerifier for AcceptAnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
