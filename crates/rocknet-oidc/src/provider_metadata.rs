//! Metadata of a provider (OpenID Connect Discovery 1.0 §3).

use std::fmt;

use serde::Deserialize;

/// Maximum length of a URL in bytes.
const MAX_URL: usize = 2_000;

/// Metadata of a provider, as far as logins need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderMetadata {
    /// Endpoint to which browsers are redirected.
    pub authorization_endpoint: String,
    /// Endpoint that exchanges codes for tokens.
    pub token_endpoint: String,
    /// Address of the keys that sign tokens.
    pub jwks_uri: String,
    /// Endpoint with further claims about a user, if there is one.
    pub userinfo_endpoint: Option<String>,
    /// Endpoint to which browsers are redirected to log out, if there is one.
    pub end_session_endpoint: Option<String>,
    /// Way in which the client secret is sent.
    pub secret_method: SecretMethod,
    /// True if each callback has a parameter `iss` (RFC 9207).
    pub sends_issuer: bool,
}

/// Way in which the client secret is sent to the token endpoint (OpenID Connect Core 1.0 §9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretMethod {
    /// `client_secret_basic`: in `Authorization`.
    Basic,
    /// `client_secret_post`: in the body.
    Post,
}

/// Reason why the metadata of a provider cannot be used. In the texts, “it” is the provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetadataError {
    /// The text is not a JSON object, or a required member is missing.
    Malformed(String),
    /// The metadata is that of another issuer.
    Issuer(String),
    /// A member is not the URL of an endpoint.
    Endpoint(&'static str),
}

impl fmt::Display for MetadataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MetadataError::Malformed(error) => write!(f, "its metadata cannot be read: {error}"),
            MetadataError::Issuer(issuer) => write!(
                f,
                "it calls itself {issuer:?}; set `oidc` to exactly this text, because a slash at the end counts"
            ),
            MetadataError::Endpoint(name) => {
                write!(
                    f,
                    "its `{name}` is not a URL with https (or with http if `oidc` has http)"
                )
            }
        }
    }
}

#[derive(Deserialize)]
struct MetadataFile {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    userinfo_endpoint: Option<String>,
    end_session_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    authorization_response_iss_parameter_supported: Option<bool>,
}

/// Returns the address of the metadata of an issuer.
pub fn discovery_url(issuer: &str) -> String {
    let issuer = issuer.strip_suffix('/').unwrap_or(issuer);
    format!("{issuer}/.well-known/openid-configuration")
}

impl ProviderMetadata {
    /// Reads the metadata of `issuer`.
    ///
    /// # Errors
    ///
    /// Returns the reason why the metadata cannot be used.
    pub fn parse(issuer: &str, json: &[u8]) -> Result<ProviderMetadata, MetadataError> {
        let file: MetadataFile =
            serde_json::from_slice(json).map_err(|error| MetadataError::Malformed(error.to_string()))?;
        if file.issuer != issuer {
            return Err(MetadataError::Issuer(file.issuer.chars().take(200).collect()));
        }
        let allows_http = issuer.starts_with("http://");
        let check = |name, url: String| match is_endpoint(&url, allows_http) {
            true => Ok(url),
            false => Err(MetadataError::Endpoint(name)),
        };
        let check_optional = |name, url: Option<String>| url.map(|url| check(name, url)).transpose();
        let methods = file.token_endpoint_auth_methods_supported;
        let has = |method: &str| {
            methods
                .as_ref()
                .is_some_and(|methods| methods.iter().any(|own| own == method))
        };
        Ok(ProviderMetadata {
            authorization_endpoint: check("authorization_endpoint", file.authorization_endpoint)?,
            token_endpoint: check("token_endpoint", file.token_endpoint)?,
            jwks_uri: check("jwks_uri", file.jwks_uri)?,
            userinfo_endpoint: check_optional("userinfo_endpoint", file.userinfo_endpoint)?,
            end_session_endpoint: check_optional("end_session_endpoint", file.end_session_endpoint)?,
            secret_method: match has("client_secret_post") && !has("client_secret_basic") {
                true => SecretMethod::Post,
                // Also the default for a provider that names no method.
                false => SecretMethod::Basic,
            },
            sends_issuer: file.authorization_response_iss_parameter_supported == Some(true),
        })
    }
}

/// Returns true for a URL of an endpoint: with https, or http if that is allowed, with a host and without a user.
pub fn is_endpoint(url: &str, allows_http: bool) -> bool {
    let rest = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(rest), _) => rest,
        (None, Some(rest)) if allows_http => rest,
        _ => return false,
    };
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    let is_url = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}#".contains(&byte);
    url.len() <= MAX_URL && !host.is_empty() && !host.contains('@') && url.bytes().all(is_url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(issuer: &str, more: &str) -> Result<ProviderMetadata, MetadataError> {
        let json = format!(
            "{{\"issuer\": \"https://id.test/\", \"authorization_endpoint\": \"https://id.test/a\", \
             \"token_endpoint\": \"https://id.test/t\", \"jwks_uri\": \"https://keys.test/k\"{more}}}"
        );
        ProviderMetadata::parse(issuer, json.as_bytes())
    }

    #[test]
    fn the_issuer_is_compared_exactly() {
        let found = metadata("https://id.test/", "").expect("metadata");
        assert_eq!(found.jwks_uri, "https://keys.test/k");
        assert_eq!((found.secret_method, found.sends_issuer), (SecretMethod::Basic, false));
        for other in [
            "https://id.test",
            "https://ID.test/",
            "https://id.test//",
            "http://id.test/",
            "",
        ] {
            assert_eq!(
                metadata(other, ""),
                Err(MetadataError::Issuer("https://id.test/".to_owned())),
                "{other}"
            );
        }
    }

    #[test]
    fn endpoints_are_urls_with_https() {
        for url in [
            "http://id.test/u",
            "ftp://a",
            "/u",
            "https://",
            "https://a@b/",
            "https://a/\\u0000",
            "https://a/#f",
        ] {
            let more = format!(", \"userinfo_endpoint\": \"{url}\"");
            let refused = Err(MetadataError::Endpoint("userinfo_endpoint"));
            assert_eq!(metadata("https://id.test/", &more), refused, "{url}");
        }
        assert!(is_endpoint("http://127.0.0.1:1/", true) && !is_endpoint("http://127.0.0.1:1/", false));
        let post = ", \"token_endpoint_auth_methods_supported\": [\"client_secret_post\", \"none\"]";
        let found = metadata("https://id.test/", post).expect("metadata");
        assert_eq!(found.secret_method, SecretMethod::Post);
    }

    #[test]
    fn the_metadata_is_below_the_issuer() {
        for issuer in ["https://id.test/realms/a", "https://id.test/realms/a/"] {
            assert_eq!(
                discovery_url(issuer),
                "https://id.test/realms/a/.well-known/openid-configuration"
            );
        }
        for junk in ["", "[]", "{}", "{\"issuer\": 1}"] {
            let parsed = ProviderMetadata::parse("https://id.test/", junk.as_bytes());
            assert!(matches!(parsed, Err(MetadataError::Malformed(_))), "{junk}");
        }
    }
}
