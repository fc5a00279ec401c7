//! TLS for the small client. It accepts any certificate, because the certificates of a run are self-signed.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme, StreamOwned};
use std::io;
use std::net::TcpStream;
use std::sync::{Arc, LazyLock};

/// Opens a TLS connection with the server name `name` and completes the handshake.
pub fn open(mut socket: TcpStream, name: &str) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
    static SETTINGS: LazyLock<Result<Arc<ClientConfig>, Error>> = LazyLock::new(settings);
    let settings = SETTINGS.as_ref().map_err(io::Error::other)?;
    let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
    let mut tls = ClientConnection::new(Arc::clone(settings), name).map_err(io::Error::other)?;
    while tls.is_handshaking() {
        tls.complete_io(&mut socket)?;
    }
    Ok(StreamOwned::new(tls, socket))
}

fn settings() -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut settings = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AcceptAnyCertificate(provider)))
        .with_no_client_auth();
    settings.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Each connection must be new to the server, so sessions are not resumed.
    settings.resumption = rustls::client::Resumption::disabled();
    Ok(Arc::new(settings))
}

/// Verifier that accepts any certificate: the bench started the server itself.
#[derive(Debug)]
struct AcceptAnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
