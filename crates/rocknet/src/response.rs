//! An answer as handlers give it: free of any HTTP version.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use rocknet_proto::fields::Field;
use rocknet_proto::status::Status;

use crate::open_file::OpenFile;
use crate::tunnel::Tunnel;

/// A field value or name: mostly known beforehand.
pub type Text = Cow<'static, str>;

/// The fields of an answer, in order. `Date`, framing and connection fields are the protocol's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldList(Vec<(Text, Text)>);

impl FieldList {
    pub fn add(&mut self, name: impl Into<Text>, value: impl Into<Text>) {
        self.0.push((name.into(), value.into()));
    }

    /// One value alone, in the place of the first it had.
    pub fn set(&mut self, name: impl Into<Text>, value: impl Into<Text>) {
        let (name, value) = (name.into(), value.into());
        let Some(at) = self.0.iter().position(|(known, _)| known.eq_ignore_ascii_case(&name)) else {
            return self.0.push((name, value));
        };
        self.0[at].1 = value;
        let mut place = 0;
        self.0.retain(|(known, _)| {
            place += 1;
            place - 1 <= at || !known.eq_ignore_ascii_case(&name)
        });
    }

    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
    }

    /// Keeps those whose names are wanted.
    pub fn retain(&mut self, wanted: impl Fn(&str) -> bool) {
        self.0.retain(|(name, _)| wanted(name));
    }

    pub fn value(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| &**value)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    pub fn bytes(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Of fields as they came. Values are UTF-8 mostly; what is not is taken for Latin-1, as HTTP once had it (RFC 9110
    /// §5.5). Names are tokens.
    pub fn copied<'f>(fields: impl IntoIterator<Item = Field<'f>>) -> FieldList {
        let mut all = FieldList::default();
        for Field { known, name, value } in fields {
            let name = match known.and_then(|known| known.spelled_as(name)) {
                Some(name) => Text::Borrowed(name),
                None => Text::Owned(String::from_utf8_lossy(name).into_owned()),
            };
            let value = match std::str::from_utf8(value) {
                Ok(text) => text.to_owned(),
                Err(_) => value.iter().copied().map(char::from).collect(),
            };
            all.add(name, value);
        }
        all
    }
}

#[derive(Debug)]
pub struct Response {
    pub status: Status,
    pub fields: FieldList,
    pub body: Body,
}

impl Response {
    pub fn new(status: Status) -> Response {
        Response {
            status,
            fields: FieldList::default(),
            body: Body::Empty,
        }
    }

    /// Agrees to speak `protocol` with a client that has asked for it: 101, or what stands for it in HTTP/2. `Upgrade` and
    /// `Connection` are the protocol's, as with every answer.
    pub fn tunnel(protocol: impl Into<Text>, tunnel: impl Tunnel + 'static) -> Response {
        Response {
            status: Status::SWITCHING_PROTOCOLS,
            fields: FieldList::default(),
            body: Body::Tunnel(Switch {
                protocol: protocol.into(),
                tunnel: Box::new(tunnel),
            }),
        }
    }

    pub fn with(mut self, name: impl Into<Text>, value: impl Into<Text>) -> Response {
        self.fields.add(name, value);
        self
    }

    pub fn body(mut self, body: impl Into<Body>) -> Response {
        self.body = body.into();
        self
    }
}

/// A stretch of an open file.
#[derive(Debug, Clone)]
pub struct FilePart {
    pub file: Arc<OpenFile>,
    pub offset: u64,
    pub length: u64,
}

#[derive(Default)]
pub enum Body {
    #[default]
    Empty,
    Bytes(Bytes),
    File(FilePart),
    /// Several stretches one after the other: multipart/byteranges.
    Parts(Vec<Part>),
    Stream(Box<dyn Stream>),
    /// No content: the connection, or the stream, is the handler's from now on.
    Tunnel(Switch),
}

/// What comes behind the answer that agrees to another protocol.
pub struct Switch {
    /// The one that was agreed on.
    pub protocol: Text,
    pub tunnel: Box<dyn Tunnel>,
}

#[derive(Debug, Clone)]
pub enum Part {
    Bytes(Bytes),
    File(FilePart),
}

/// Content made bit by bit. Each piece is asked for when there is room for it: that is the back-pressure.
pub trait Stream {
    /// The next piece; `None` at the end; an error cuts the answer off so that the client notices.
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<std::io::Result<Bytes>>> + '_>>;

    /// How long all of it is, where that is known before it is sent: it gives so many bytes, or an error.
    fn length(&self) -> Option<u64> {
        None
    }

    /// Fields behind the content (RFC 9110 §6.5), asked for once at its end. Where there is no place for them, as behind
    /// content whose length was told in HTTP/1.1, they are left out.
    fn trailers(&mut self) -> Option<FieldList> {
        None
    }
}

impl Body {
    /// How long it is, if that is known before it is sent.
    pub fn length(&self) -> Option<u64> {
        match self {
            Body::Empty => Some(0),
            Body::Bytes(bytes) => Some(bytes.len() as u64),
            Body::File(part) => Some(part.length),
            Body::Parts(parts) => Some(parts.iter().map(Part::length).sum()),
            Body::Stream(stream) => stream.length(),
            Body::Tunnel(_) => None,
        }
    }
}

impl Part {
    pub fn length(&self) -> u64 {
        match self {
            Part::Bytes(bytes) => bytes.len() as u64,
            Part::File(part) => part.length,
        }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.length() {
            Some(length) => write!(f, "Body({length} bytes)"),
            None => f.write_str("Body(stream)"),
        }
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Body {
        Body::Bytes(bytes.into())
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Body {
        Body::Bytes(Bytes::from_static(text.as_bytes()))
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Body {
        Body::Bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_a_field_leaves_one() {
        let mut fields = FieldList::default();
        for (name, value) in [("A", "1"), ("b", "2"), ("a", "3"), ("C", "4"), ("A", "5")] {
            fields.add(name, value);
        }
        fields.set("a", "new");
        assert_eq!(
            fields.iter().collect::<Vec<_>>(),
            [("A", "new"), ("b", "2"), ("C", "4")]
        );
        fields.set("d", "5");
        fields.remove("B");
        assert_eq!(
            fields.iter().collect::<Vec<_>>(),
            [("A", "new"), ("C", "4"), ("d", "5")]
        );
    }
}
