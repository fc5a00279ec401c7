//! Provider of OpenID Connect for tests: an upstream whose tokens a test can falsify.

use std::collections::HashMap;
use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use aws_lc_rs::{digest, hmac};
use serde_json::{Map, Value, json};

use crate::support::upstream::{Next, ReceivedRequest, Upstream, write_to};

/// Identifier and secret of the server at the provider.
pub const CLIENT: (&str, &str) = ("app", "the secret");

/// Provider with one user.
pub struct Provider {
    pub upstream: Upstream,
    state: Arc<Mutex<State>>,
}

/// Behaviour of the provider.
pub struct State {
    key: EcdsaKeyPair,
    /// Identifier of the key.
    pub key_id: String,
    /// Algorithm in the header of tokens.
    pub algorithm: &'static str,
    /// Claims that replace those of a valid token; null removes a claim.
    pub claims: Map<String, Value>,
    /// Response of the userinfo endpoint.
    pub userinfo: Value,
    /// Status of that response.
    pub userinfo_status: u16,
    /// Status of all responses, if it is not 200.
    pub status: u16,
    /// Issuer in the metadata, if it is another one.
    pub issuer: Option<String>,
    /// Members that are added to the metadata.
    pub metadata: Map<String, Value>,
    /// Host in the address of the callback.
    pub host: &'static str,
    /// Logins whose code was not used yet.
    codes: HashMap<String, ConfirmedLogin>,
}

/// Login that the user has confirmed.
struct ConfirmedLogin {
    nonce: String,
    challenge: String,
    redirect_uri: String,
}

impl Provider {
    pub fn start() -> Provider {
        let state = Arc::new(Mutex::new(State {
            key: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key"),
            key_id: "one".to_owned(),
            algorithm: "ES256",
            claims: Map::new(),
            userinfo: json!({ "sub": "user-1" }),
            userinfo_status: 200,
            status: 200,
            issuer: None,
            metadata: Map::new(),
            host: "localhost",
            codes: HashMap::new(),
        }));
        let shared = Arc::clone(&state);
        let upstream = Upstream::start(move |request, stream| {
            respond(&mut shared.lock().expect("not poisoned"), request, stream);
            Next::Keep
        });
        Provider { upstream, state }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("not poisoned")
    }

    pub fn issuer(&self) -> String {
        self.upstream.url()
    }

    /// Sets a claim of the next tokens.
    pub fn claim(&self, name: &str, value: Value) {
        self.state().claims.insert(name.to_owned(), value);
    }

    /// Logs the user in, and returns the path and query of the callback. `location`: the redirect of the server.
    pub fn log_in(&self, location: &str) -> String {
        let (endpoint, query) = location.split_once('?').expect("a query");
        assert_eq!(endpoint, format!("{}/auth", self.issuer()));
        let query: HashMap<String, String> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        assert_eq!((&*query["response_type"], &*query["client_id"]), ("code", CLIENT.0));
        assert_eq!(query["code_challenge_method"], "S256");
        assert!(query["scope"].split(' ').any(|scope| scope == "openid"));
        let mut state = self.state();
        let code = format!("code-{}", state.codes.len());
        let login = ConfirmedLogin {
            nonce: query["nonce"].clone(),
            challenge: query["code_challenge"].clone(),
            redirect_uri: query["redirect_uri"].clone(),
        };
        let (_, address) = login.redirect_uri.split_once("://").expect("a URL");
        let path = address.strip_prefix(state.host).expect("the host of the site");
        let callback = format!("{path}?code={code}&state={}", query["state"]);
        state.codes.insert(code, login);
        callback
    }

    /// Returns the number of requests to an endpoint.
    pub fn requests(&self, path: &str) -> usize {
        let all = self.upstream.all();
        all.iter()
            .filter(|request| request.line.split(' ').nth(1) == Some(path))
            .count()
    }
}

/// Encodes bytes as base64url without padding.
pub fn base64url(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(*three.get(at).unwrap_or(&0)));
        for at in 0..=three.len() {
            text.push(char::from(DIGITS[(bits >> (18 - 6 * at) & 63) as usize]));
        }
    }
    text
}

fn respond(state: &mut State, request: &ReceivedRequest, stream: &mut TcpStream) {
    let path = request.line.split(' ').nth(1).expect("a path");
    let own = format!("http://{}", request.field("Host").expect("a host"));
    let (status, body) = match path {
        "/.well-known/openid-configuration" => (200, metadata(state, &own)),
        "/keys" => (200, keys(state)),
        "/token" => token(state, request, &own),
        "/userinfo" if request.field("Authorization") == Some("Bearer access") => {
            (state.userinfo_status, state.userinfo.clone())
        }
        _ => (404, Value::Null),
    };
    let status = if state.status == 200 { status } else { state.status };
    let body = body.to_string();
    let length = body.len();
    write_to(
        stream,
        format!("HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"),
    );
}

fn metadata(state: &State, own: &str) -> Value {
    let mut metadata = json!({
        "issuer": state.issuer.as_deref().unwrap_or(own),
        "authorization_endpoint": format!("{own}/auth"),
        "token_endpoint": format!("{own}/token"),
        "jwks_uri": format!("{own}/keys"),
        "userinfo_endpoint": format!("{own}/userinfo"),
    });
    let members = metadata.as_object_mut().expect("an object");
    members.extend(state.metadata.clone());
    metadata
}

fn keys(state: &State) -> Value {
    let point = state.key.public_key().as_ref();
    json!({ "keys": [{
        "kty": "EC", "crv": "P-256", "use": "sig", "kid": state.key_id,
        "x": base64url(&point[1..33]), "y": base64url(&point[33..]),
    }] })
}

/// Exchanges a code, once, for the holder of the secret and of the verifier.
fn token(state: &mut State, request: &ReceivedRequest, own: &str) -> (u16, Value) {
    let form: HashMap<String, String> = form_urlencoded::parse(&request.content).into_owned().collect();
    // "app:the+secret".
    assert_eq!(request.field("Authorization"), Some("Basic YXBwOnRoZStzZWNyZXQ="));
    assert_eq!(form["grant_type"], "authorization_code");
    let Some(login) = state.codes.remove(&form["code"]) else {
        return (400, json!({ "error": "invalid_grant" }));
    };
    assert_eq!(form["redirect_uri"], login.redirect_uri);
    let hash = digest::digest(&digest::SHA256, form["code_verifier"].as_bytes());
    assert_eq!(base64url(hash.as_ref()), login.challenge);
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("a time")
        .as_secs();
    let claims = json!({
        "iss": own, "aud": CLIENT.0, "sub": "user-1", "nonce": login.nonce, "iat": now, "exp": now + 300,
        "name": "Ann Ä", "email": "ann@a.test", "email_verified": true, "groups": ["staff", "b"],
    });
    let mut claims = claims.as_object().expect("an object").clone();
    claims.extend(state.claims.clone());
    claims.retain(|_, value| !value.is_null());
    (
        200,
        json!({ "id_token": sign(state, &Value::Object(claims)), "access_token": "access", "token_type": "Bearer" }),
    )
}

fn sign(state: &State, claims: &Value) -> String {
    let header = json!({ "alg": state.algorithm, "kid": state.key_id });
    let message = format!(
        "{}.{}",
        base64url(header.to_string().as_bytes()),
        base64url(claims.to_string().as_bytes())
    );
    let signature = match state.algorithm {
        "none" => Vec::new(),
        "HS256" => {
            let key = hmac::Key::new(hmac::HMAC_SHA256, state.key.public_key().as_ref());
            hmac::sign(&key, message.as_bytes()).as_ref().to_vec()
        }
        _ => {
            let signed = state.key.sign(&SystemRandom::new(), message.as_bytes());
            signed.expect("a signature").as_ref().to_vec()
        }
    };
    format!("{message}.{}", base64url(&signature))
}

impl State {
    /// Replaces the key of the provider. `is_announced`: its keys have a new identifier.
    pub fn replace_key(&mut self, is_announced: bool) {
        self.key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key");
        if is_announced {
            self.key_id.push('+');
        }
    }
}
