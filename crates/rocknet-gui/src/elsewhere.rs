//! Place of the server that the window shows: on this computer, or on another computer that SSH connects to.
//!
//! SSH forwards the control socket (`ssh -L /run/user/1000/rocknet.sock:/var/lib/rocknet/admin/control.sock host`), or
//! the TCP address of the server (`ssh -L 7625:127.0.0.1:7625 host`), which needs a token. A token is sent only to
//! an address of this computer, because the connection is not encrypted.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use rocknet_control::ServerAddress;

/// Port that the documentation names for the TCP address of a server.
const DEFAULT_PORT: u16 = 7625;

/// Maximum length of a token. Tokens of the server have 64 characters.
const MAX_TOKEN: usize = 512;

/// Way to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServerPlace {
    /// The server of this computer.
    #[default]
    Here,
    /// A control socket that SSH forwards.
    Socket,
    /// A port that SSH forwards, or the TCP address of a server of this computer.
    Address,
}

impl ServerPlace {
    /// All places.
    pub const ALL: [ServerPlace; 3] = [ServerPlace::Here, ServerPlace::Socket, ServerPlace::Address];

    /// Returns the name in `server.toml`, the file of the place.
    pub fn name(self) -> &'static str {
        match self {
            ServerPlace::Here => "here",
            ServerPlace::Socket => "socket",
            ServerPlace::Address => "address",
        }
    }
}

/// Problem with what the user has typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceProblem {
    /// The socket is not an absolute path.
    Socket,
    /// The text is not an address with a port.
    Address,
    /// The address belongs to another computer.
    NotLocal,
    /// The token is missing, or has characters that no token has.
    Token,
}

/// Place of the server, with what the user has typed. The worker keeps it in the file `server.toml`.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Elsewhere {
    pub place: ServerPlace,
    pub socket: String,
    pub address: String,
    pub token: String,
}

/// Leaves the token out, because jobs and reports may be printed.
impl fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elsewhere")
            .field("place", &self.place)
            .field("socket", &self.socket)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Elsewhere {
    /// Parses the text of the file. Unknown lines are ignored.
    pub fn parse(text: &str) -> Elsewhere {
        let mut elsewhere = Elsewhere::default();
        for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
            let value = value.trim().trim_matches('"').to_owned();
            match key.trim() {
                "place" => elsewhere.set_place(&value),
                "socket" => elsewhere.socket = value,
                "address" => elsewhere.address = value,
                "token" => elsewhere.token = value,
                _ => {}
            }
        }
        elsewhere
    }

    /// Returns the text of the file.
    pub fn text(&self) -> String {
        // Quotes and line ends are in no valid value.
        let plain = |value: &str| value.trim().replace(['"', '\n', '\r'], "");
        format!(
            "# Server that the RockNet window shows. The token is a password: keep this file to yourself.\nplace = \
             \"{}\"\nsocket = \"{}\"\naddress = \"{}\"\ntoken = \"{}\"\n",
            self.place.name(),
            plain(&self.socket),
            plain(&self.address),
            // A token that is no longer used is not kept.
            plain(if self.place == ServerPlace::Address {
                &self.token
            } else {
                ""
            })
        )
    }

    /// Chooses a place by its name. An unknown name changes nothing.
    pub fn set_place(&mut self, name: &str) {
        if let Some(place) = ServerPlace::ALL.into_iter().find(|place| place.name() == name) {
            self.place = place;
        }
    }

    /// Returns true if the server may be on another computer.
    pub fn is_elsewhere(&self) -> bool {
        self.place != ServerPlace::Here
    }

    /// Returns the address of the server; `None` for a server of this computer, which the worker finds by itself.
    ///
    /// # Errors
    ///
    /// Returns the first problem with what the user has typed.
    pub fn server(&self) -> Result<Option<ServerAddress>, PlaceProblem> {
        match self.place {
            ServerPlace::Here => Ok(None),
            ServerPlace::Socket => {
                let path = Path::new(self.socket.trim());
                match path.is_absolute() {
                    true => Ok(Some(ServerAddress::Socket(path.to_owned()))),
                    false => Err(PlaceProblem::Socket),
                }
            }
            ServerPlace::Address => {
                let address = address(self.address.trim()).ok_or(PlaceProblem::Address)?;
                if !address.ip().is_loopback() {
                    return Err(PlaceProblem::NotLocal);
                }
                let token = self.token.trim();
                let is_plain = token.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
                if token.is_empty() || token.len() > MAX_TOKEN || !is_plain {
                    return Err(PlaceProblem::Token);
                }
                Ok(Some(ServerAddress::Tcp {
                    address,
                    token: token.to_owned(),
                }))
            }
        }
    }
}

/// Parses an address such as `127.0.0.1:7625`, `localhost`, or the URL of the dashboard.
fn address(text: &str) -> Option<SocketAddr> {
    let text = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    if let Ok(ip) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Some((ip, DEFAULT_PORT).into());
    }
    let (host, port) = text.split_once(':').unwrap_or((text, ""));
    let port = if port.is_empty() {
        DEFAULT_PORT
    } else {
        port.parse().ok()?
    };
    // Another name would have to be resolved, and could lead to another computer.
    let is_local = host == "localhost" || host == "rocknet.localhost";
    is_local.then(|| (Ipv4Addr::LOCALHOST, port).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str, token: &str) -> Elsewhere {
        Elsewhere {
            place: ServerPlace::Address,
            address: address.to_owned(),
            token: token.to_owned(),
            ..Elsewhere::default()
        }
    }

    #[test]
    fn places_survive_their_file() {
        let elsewhere = Elsewhere {
            socket: "/run/user/1000/a b.sock".to_owned(),
            ..at("[::1]:7625", "abc")
        };
        assert_eq!(Elsewhere::parse(&elsewhere.text()), elsewhere);
        for place in [ServerPlace::Here, ServerPlace::Socket] {
            let other = Elsewhere {
                place,
                ..elsewhere.clone()
            };
            let kept = Elsewhere::parse(&other.text());
            assert_eq!(
                (&*kept.token, &kept.address, kept.place),
                ("", &elsewhere.address, place)
            );
        }
        assert_eq!(Elsewhere::parse("place = \"moon\"\nx\ntoken"), Elsewhere::default());
        let hostile = at("a\"\nplace = \"here", "b");
        assert_eq!(Elsewhere::parse(&hostile.text()).place, ServerPlace::Address);
        assert!(!format!("{:?}", at("a", "secret")).contains("secret"));
    }

    #[test]
    fn addresses_are_those_of_this_computer() {
        for (text, expected) in [
            ("127.0.0.1:7625", Ok("127.0.0.1:7625")),
            ("http://127.0.0.1:7625/", Ok("127.0.0.1:7625")),
            ("http://rocknet.localhost:17625/", Ok("127.0.0.1:17625")),
            ("localhost", Ok("127.0.0.1:7625")),
            ("[::1]", Ok("[::1]:7625")),
            ("10.0.0.1:7625", Err(PlaceProblem::NotLocal)),
            ("10.0.0.1", Err(PlaceProblem::NotLocal)),
            ("example.com:7625", Err(PlaceProblem::Address)),
            ("localhost:port", Err(PlaceProblem::Address)),
            ("", Err(PlaceProblem::Address)),
        ] {
            let found = at(text, "t").server();
            let shown = found.map(|server| server.unwrap().shown().to_string_lossy().into_owned());
            assert_eq!(shown, expected.map(str::to_owned), "{text}");
        }
        for token in ["", " ", "a b", "a\nb", "\"", &"x".repeat(MAX_TOKEN + 1)] {
            assert_eq!(at("localhost", token).server(), Err(PlaceProblem::Token), "{token:.9}");
        }
    }

    #[test]
    fn sockets_are_absolute() {
        let socket = |path: &str| Elsewhere {
            place: ServerPlace::Socket,
            socket: path.to_owned(),
            ..Elsewhere::default()
        };
        assert_eq!(socket("/s ").server(), Ok(Some(ServerAddress::Socket("/s".into()))));
        assert_eq!(socket("s").server(), Err(PlaceProblem::Socket));
        assert_eq!(Elsewhere::default().server(), Ok(None));
    }
}
